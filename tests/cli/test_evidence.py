"""`why`, `costs` and `report` over one ledger: what people see, what programs get, and what is wrong with what was asked."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.evidence import as_csv, plain
from swarmgate.stores.journal.rows import Blocked

sys.path.insert(0, str(Path(__file__).parents[1] / "control"))
from story import Story, import_all

FROM = "2026-09-21T00:00"
TO = "2026-09-30T00:00+02:00"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    story = Story(folder)
    story.boot()
    story.revision()
    first = story.leaves("req-1", trace="ab" * 16, client_request_id="own-1")
    story.ends(first, kind="rate", end="", status=429, reason="target_rate", prompt_tokens=-1, output_tokens=-1)
    story.ends(story.leaves("req-1", attempt=2, key="k2"), took_ms=4_000)
    story.deferred("req-2")
    story.leaves("req-3", effect="write")
    story.answered("req-4", team="=cmd|x", agent="a\x1b[31m", note={"prompt_tokens": 60_000}, took_ms=11_800)
    story.boot("run2")
    story.write()
    import_all(folder, lambda _t, _m, sent, got, _c, _at: 1_000 * (sent + got)).close()
    return folder


def run(*arguments, folder):
    return CliRunner().invoke(app, [*arguments, "--state", str(folder)])


def test_why_tells_a_life(folder):
    done = run("why", "req-1", folder=folder)
    assert done.exit_code == 0, done.output
    for told in (
        "a1",
        "caller's own id own-1",
        "g1",
        "s1",
        "attempt 1 left",
        "attempt 1: rate",
        "attempt 2 left",
        "first content",
        "ended: answered",
        "up: 4 per 60s",
    ):
        assert told in " ".join(done.output.split()), told
    found = json.loads(run("why", "req-1", "--json", folder=folder).output)
    assert [row["key"] for row in found["attempts"]] == ["k1", "k2"]
    assert found["attempts"][0]["limits"][0]["revision"] == 1
    assert "come back in 5,000 ms" in " ".join(run("why", "req-2", folder=folder).output.split())
    assert "crash" in run("why", "req-3", folder=folder).output


def test_why_of_the_unknown(folder):
    for name in ("req-9", "' OR 1=1 --", "\x1b[2J", "x" * 5_000):
        done = run("why", name, folder=folder)
        assert done.exit_code == 1
        assert "\x1b" not in done.output
        assert len(done.output) < 300


def test_costs_by_everything(folder):
    for by in ("team", "agent", "task", "task_type", "target", "model", "key", "context"):
        done = run("costs", "--by", by, "--from", FROM, "--to", TO, folder=folder)
        assert done.exit_code == 0, done.output
        assert "\x1b[31m" not in done.output
    rows = json.loads(run("costs", "--by", "team", "--from", FROM, "--to", TO, "--json", folder=folder).output)
    assert {row["team"]: (row["attempts"], row["cost_micro"], row["unpriced"]) for row in rows} == {
        "=cmd|x": (1, 60_003_000, 0),
        "blue": (3, 12_000, 2),
    }
    text = run("costs", "--by", "team", "--from", FROM, "--to", TO, "--csv", folder=folder).output
    assert "'=cmd|x,1,1,60000,3,0,60003000,0" in text
    bands = json.loads(run("costs", "--by", "context", "--from", FROM, "--to", TO, "--json", folder=folder).output)
    assert [(row["band"], row["calls"], row["mean_ms"]) for row in bands] == [
        ("up to 4K", 1, 4_000),
        ("32K to 64K", 1, 11_800),
    ]
    assert json.loads(run("costs", "--from", "1h", "--json", folder=folder).output) == []


def test_keys_of_two_targets_are_two_whatever_they_are_called(tmp_path):
    story = Story(tmp_path)
    story.boot()
    for number, target in enumerate(("up", "down", "down")):
        story.answered(f"c{number}", target=target, key="key-1")
    story.answered("web", target="http://x.org", key="", model="")
    import_all(story.write().folder).close()
    rows = json.loads(run("costs", "--by", "key", "--from", FROM, "--to", TO, "--json", folder=tmp_path).output)
    assert {row["key"]: row["attempts"] for row in rows} == {"down/key-1": 2, "up/key-1": 1, "": 1}


def test_why_tells_what_blocked_as_its_owner_states_it(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.revision("up: requests per 60s", 4)
    story.revision("up: concurrent", 2, revision=3, unit="concurrent", window_ms=0, paused=True)
    story.deferred(
        "req-1",
        blocked=(
            Blocked("up: requests per 60s", "time", 1, 3_200, 60_000_000, 0),  # as the kernel keeps it
            Blocked("up: concurrent", "event", 3, 0, 0, 0),
            Blocked("http://x.org", "time", 0, 0, 0, 0),  # it rests
        ),
    )
    import_all(story.write().folder).close()
    told = " ".join(run("why", "req-1", folder=tmp_path).output.split())
    assert "up: requests per 60s: 0 left of 4 requests per 60s (revision 1; room comes with time)" in told
    assert "up: concurrent (revision 3: paused)" in told
    assert "http://x.org (room comes with time)" in told
    (deferral,) = json.loads(run("why", "req-1", "--json", folder=tmp_path).output)["deferrals"]
    assert (deferral["blocked"][0]["amount"], deferral["blocked"][2]["amount"]) == (4, None)


def test_what_has_no_price_is_not_free(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("c1", agent="a1")
    story.write()
    import_all(tmp_path).close()
    shown = run("costs", "--by", "agent", "--from", FROM, "--to", TO, folder=tmp_path).output
    assert "unknown" in shown
    assert "0.000000" not in shown
    shown = run("report", "--target", "up", "--from", FROM, "--to", TO, folder=tmp_path).output
    assert "cost, USD unknown cut off" in " ".join(shown.split())


def test_report_tells_and_writes_a_page(folder, tmp_path):
    page = tmp_path / "report.html"
    done = run("report", "--target", "up", "--from", FROM, "--to", TO, "--html", str(page), folder=folder)
    assert done.exit_code == 0, done.output
    assert "kept a wrong budget" in done.output
    assert "unattributed" not in done.output
    assert page.read_text().startswith("<!doctype html>")
    told = json.loads(run("report", "--target", "up", "--from", FROM, "--to", TO, "--json", folder=folder).output)
    assert (told["sent"], told["refused"], told["put_off"], told["crashed"]) == (4, 1, 1, 1)
    assert told["rulings"][0]["verdict"] == "kept a wrong budget"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("report", "--target", "nowhere"), "is unknown here; known: up"),
        (("report", "--target", "UP1"), "nearest is 'up'; known: up"),
        (("report", "--target", "up", "--from", "yesterday"), "--from"),
        (("report", "--target", "up", "--from", "1h", "--to", "2h"), "not before"),
        (("report", "--target", "up", "--html", "/nowhere/at/all.html"), "--html"),
        (("costs", "--by", "moon"), "none of"),
        (("costs", "--to", "-5s"), "--to"),
    ],
)
def test_what_cannot_be_asked(folder, arguments, word):
    done = run(*arguments, folder=folder)
    assert done.exit_code == 2
    assert word in done.output


def test_without_a_ledger(tmp_path):
    for arguments in (("why", "x"), ("costs",), ("report", "--target", "x")):
        done = run(*arguments, folder=tmp_path)
        assert done.exit_code == 2
        assert "--state" in done.output
        assert not list(tmp_path.iterdir())


def test_nothing_is_told_of_a_folder_that_is_not_there(tmp_path):
    done = run("audit", folder=tmp_path / "gone")
    assert (done.exit_code, "--state names the folder" in done.output) == (2, True), done.output
    assert run("audit", folder=tmp_path).exit_code == 0  # nobody has changed anything yet


def test_az_11_12_text_of_others_is_inert():
    assert plain("a\x1b]0;x\x07\nb\u202e") == "a\ufffd]0;x\ufffd\ufffdb\ufffd"
    assert as_csv(("a",), [("=1+1",), ("@x",), (5,), ("fine",)]) == "a\n'=1+1\n'@x\n5\nfine\n"


@pytest.mark.parametrize("name", ["why", "costs", "report"])
def test_help_ends_with_an_example(name):
    assert f"Example: swarmgate {name}" in CliRunner().invoke(app, [name, "--help"]).output
