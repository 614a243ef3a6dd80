"""Scenario files with mistakes: every one is reported, at its line, with its key and what would be right."""

import re
from importlib import resources
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swarmgate.config.problems import FileError, key_lines
from swarmgate.lab import scenario, scenario_file
from swarmgate.lab.faults import RULES
from swarmgate.lab.scenario import Scenario
from swarmgate.lab.scenario_file import load, parse, shipped
from swarmgate.lab.workload import KINDS

GOOD = """\
# story
duration_s = 10
gates = 2

[[targets]]
name = "archive"
latency = "web"

[[targets.limits]]
kind = "token_bucket"
limit = 5
window_ms = 1_000

[[targets]]
name = "models"
keys = 2
scopes = 2
[[targets.limits]]
kind = "concurrency"
limit = 4

[[loads]]
name = "readers"
kind = "fetch"
target = "archive"
agents = 3

[[faults]]
kind = "gate_crash"
where = "gate-1"
at_ms = 5
for_ms = 1

[[checks]]
metric = "over_limit"
at_most = 0
load = "readers"
"""


def problems(text):
    with pytest.raises(FileError) as caught:
        parse(text, "mine", source="mine.toml")
    return caught.value.problems


def problems_of(text):
    """The problems of a text that may also be good."""
    try:
        parse(text, "any")
    except FileError as error:
        return error.problems
    return ()


def test_the_good_file_is_good():
    assert isinstance(parse(GOOD, "mine"), Scenario)
    assert parse(GOOD, "mine").story == "story"


@pytest.mark.parametrize(
    ("good", "bad", "field", "says"),
    [
        ("gates = 2", "gats = 2", "gats", "nearest is 'gates'"),
        ("gates = 2", 'gates = "2"', "gates", "whole number"),
        ("gates = 2", "seed = -1", "seed", "at least 0"),
        ("gates = 2", 'name = "x"', "name", "leave it out"),
        ("gates = 2", "warmup_s = 10", "warmup_s", "leaves nothing"),
        ('latency = "web"', 'latency = "gpt-4o-minni"', "targets[0].latency", "nearest is 'gpt-4o-mini'"),
        ('latency = "web"', 'latencey = "web"', "targets[0].latencey", "nearest is 'latency'"),
        ('kind = "token_bucket"', 'kind = "token_buckt"', "targets[0].limits[0].kind", "nearest is 'token_bucket'"),
        ("limit = 5", "limit = 0", "targets[0].limits[0].limit", "at least 1"),
        ("limit = 5", f"limit = {2**53}", "targets[0].limits[0].limit", "between 0 and 2^51 - 1"),
        ("limit = 4", "limit = 4\nwindow_ms = 5", "targets[1].limits[0].window_ms", "is unknown"),
        ("scopes = 2", "scopes = 3", "targets[1].scopes", "as many keys"),
        ('name = "models"', 'name = "archive"', "targets[1].name", "more than once"),
        ('name = "models"', 'name = "My Models"', "targets[1].name", "is no name"),
        ('target = "archive"', 'target = "archives"', "loads[0].target", "nearest is 'archive'"),
        ('kind = "fetch"', 'kind = "fetsch"', "loads[0].kind", "nearest is 'fetch'"),
        ("agents = 3", "agents = 3\nfrom_s = 4\nuntil_s = 4", "loads[0].until_s", "not after"),
        ('where = "gate-1"', 'where = "gate-3"', "faults[0].where", "nearest is 'gate-"),
        ("at_ms = 5", "at_ms = 5\namont = 4", "faults[0].amont", "nearest is 'amount'"),
        ('kind = "gate_crash"', 'kind = "gate_crahs"', "faults[0].kind", "nearest is 'gate_crash'"),
        ('metric = "over_limit"', 'metric = "overlimit"', "checks[0].metric", "nearest is 'over_limit'"),
        ('load = "readers"', 'load = "reader"', "checks[0].load", "nearest is 'readers'"),
    ],
)
def test_one_mistake_is_one_problem_at_its_line(good, bad, field, says):
    assert GOOD.count(good) == 1
    found = problems(GOOD.replace(good, bad))
    line = GOOD[: GOOD.index(good)].count("\n") + bad.count("\n") + 1
    assert [(problem.line, problem.field) for problem in found] == [(line, field)]
    assert says in found[0].reason


@pytest.mark.parametrize(
    ("good", "table", "field", "says"),
    [
        ("duration_s = 10\n", "# story", "duration_s", "is missing"),
        ('kind = "token_bucket"\n', "[[targets.limits]]", "targets[0].limits[0].kind", "is missing"),
        ("for_ms = 1\n", "[[faults]]", "faults[0].for_ms", "below 1"),
        ("at_most = 0\n", "[[checks]]", "checks[0].at_least", "exactly one"),
        ('target = "archive"\n', "[[loads]]", "loads[0].target", "is missing"),
    ],
)
def test_what_is_missing_is_a_problem_of_its_table(good, table, field, says):
    assert GOOD.count(good) == 1
    found = problems(GOOD.replace(good, ""))
    line = GOOD[: GOOD.index(table)].count("\n") + 1
    assert [(problem.line, problem.field) for problem in found] == [(line, field)]
    assert says in found[0].reason


@pytest.mark.parametrize("empty", ["targets", "loads"])
def test_a_world_needs_targets_and_loads(empty):
    found = problems(f"{empty} = []\nduration_s = 1\n")
    assert (1, empty, "is empty: at least one is needed") in found


def test_all_mistakes_are_told_at_once_in_order_of_lines():
    text = (
        GOOD.replace("gates = 2", "gats = 2")
        .replace("limit = 5", "limit = 0")
        .replace('target = "archive"', 'target = "x"')
    )
    with pytest.raises(FileError) as caught:
        parse(text.replace("gate-1", "gate-2"), "mine", source="mine.toml")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["mine.toml:3", "gats"],
        ["mine.toml:11", "targets[0].limits[0].limit"],
        ["mine.toml:25", "loads[0].target"],
        ["mine.toml:30", "faults[0].where"],
    ]
    assert caught.value.field == "gats"


def test_what_is_not_toml_names_the_line():
    assert problems("a = 1\nb = = 2\n")[0].line == 2


def test_a_file_is_named_by_its_path(tmp_path):
    path = tmp_path / "my-world.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load(path).name == "my-world"
    path.write_bytes(b"\xff")
    with pytest.raises(FileError, match="not UTF-8"):
        load(path)
    bad_name = tmp_path / "My World.toml"
    bad_name.write_text(GOOD, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load(bad_name)
    assert caught.value.field == "name"


@given(st.sampled_from(shipped()), st.data())
def test_a_shipped_file_with_a_line_lost_is_read_or_refused_by_type(name, data):
    text = (resources.files("swarmgate.lab") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lost = data.draw(st.integers(0, len(lines) - 1))
    reported = problems_of("".join(lines[:lost] + lines[lost + 1 :]))
    assert all(1 <= problem.line < len(lines) and problem.reason for problem in reported)


toml_values = st.recursive(
    st.integers(-5, 5).map(str)
    | st.sampled_from(['"a"', '"fetch"', "true", "1.5", "1979-05-27", '"store"', "inf"])
    | st.just("[]"),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(
            st.tuples(st.sampled_from(["kind", "name", "limits", "target"]), inner),
            max_size=3,
            unique_by=lambda p: p[0],
        ).map(lambda pairs: "{" + ", ".join(f"{key} = {value}" for key, value in pairs) + "}")
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*Scenario.model_fields, "x"]), toml_values, max_size=6))
@example({"targets": "[1]", "loads": "[[]]", "faults": "[{}]"})
@example({"targets": '[{kind = "a", limits = [1]}]', "gates": "true"})
def test_any_toml_is_read_or_refused_by_type(raw):
    reported = problems_of("".join(f"{key} = {value}\n" for key, value in raw.items()))
    assert all(1 <= problem.line <= max(1, len(raw)) for problem in reported)


@given(st.text(max_size=200))
def test_any_text_is_refused_by_type(text):
    with pytest.raises(FileError):
        parse(text, "any")


def test_key_lines_follow_tables_arrays_and_quotes():
    text = '[a]\nb.c = 1\n[[a.d]]\n[[a.d]]\n"e" = 2\n[a.d.f]  # note\ng = 3\n'
    assert key_lines(text) == {
        ("a",): 1,
        ("a", "b", "c"): 2,
        ("a", "d"): 3,
        ("a", "d", 0): 3,
        ("a", "d", 1): 4,
        ("a", "d", 1, "e"): 5,
        ("a", "d", 1, "f"): 6,
        ("a", "d", 1, "f", "g"): 7,
    }


def test_every_key_kind_and_metric_stands_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs/scenarios.md").read_text()
    told = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"[\w-]+", code)}
    keys = {key for table in scenario_file._KEYS.values() for key in table}
    assert keys | set(RULES) | set(get_args(scenario.Metric)) <= told
    assert set(KINDS) <= told
