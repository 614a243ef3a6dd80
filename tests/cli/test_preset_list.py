"""`swarmgate presets`: what people and scripts read."""

import json

from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.facts.presets import in_force, load_presets


def test_scripts_get_everything():
    result = CliRunner().invoke(app, ["presets", "--json"])
    said = json.loads(result.stdout)
    assert {one["id"] for one in said} == set(load_presets())
    assert {one["id"] for one in said if one["on"]} == {one.id for one in in_force("high")}
    assert all(one["source"] for one in said)


def test_people_get_a_table():
    result = CliRunner().invoke(app, ["presets"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("crossref/polite", "api.crossref.org", "single: 10 per 1s", "60 query_seconds"):
        assert word in result.stdout


def test_an_unknown_confidence_is_a_usage_error():
    assert CliRunner().invoke(app, ["presets", "--confidence", "total"]).exit_code == 2
