"""Whatever `check` says to people it says to programs; and where no price can be known, that is said."""

import json

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.unpriced import uncounted_costs, unpriced_targets
from swarmgate.cli.warned import WARNINGS
from swarmgate.config import from_environment, parse
from swarmgate.control import data
from test_docs import ROOT

TARGET = '[targets.{name}]\nbase_url = "{url}"\nkeys = {{ k = "env:KEY", same = "env:KEY" }}\n'
LOCAL = "http://10.1.2.3:8000/v1"
CAPPED = '[agents]\nlimits = ["5 USD per 1d"]\n'
EVERYTHING = (
    "connections = 900_000\n"
    + TARGET.format(name="openai", url="https://api.openai.com/v1")
    + 'key_limits = ["50_000 tokens per 60s"]\n'
    + TARGET.format(name="me", url="http://localhost:8787/v1").replace("KEY", "GONE", 1)
    + '[routes]\nlong = ["me/a", "me/b", "me/c", "me/d", "me/e"]\n"*" = "me/*"\n'
    + CAPPED
    + '[policies.papers]\nhosts = ["a.org"]\nlimits = ["600 per 60s"]\noutage = "closed"\n'
)


def check(file, *more, **environment):
    env = {
        "KEY": "sk-1",
        "GONE": None,
        "OPENAI_BASE_URL": "http://10.9.9.9/v1",
        "ANTHROPIC_BASE_URL": None,
    } | environment
    done = CliRunner().invoke(app, ["check", str(file), "--state", str(file.parent), *more], env=env)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_programs_are_told_every_sentence_that_people_are(tmp_path):
    file, key = tmp_path / "gate.toml", tmp_path / "key"
    key.write_text("sk-2")
    key.chmod(0o644)
    file.write_text(EVERYTHING.replace('same = "env:KEY"', f'same = "env:KEY", c = "file:{key}"', 1))
    told = json.loads(check(file, "--json"))
    lines = check(file).partition("What each limit yields")[0].strip().splitlines()
    assert [one["sentence"] for one in told["warnings"]] == lines[1:]
    kinds = {one["kind"] for one in told["warnings"]}
    assert kinds >= set(WARNINGS) | {"missing", "connections", "yields_little"}
    for kind in WARNINGS:
        assert told[kind] == [one["name"] for one in told["warnings"] if one["kind"] == kind]
    assert told["other_upstreams"] == ["OPENAI_BASE_URL"]
    assert (told["itself"], told["unpriced_targets"]) == (["me"], ["me"])


def test_beside_mistakes_programs_are_told_what_is_missing(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text("lisen = 1\n" + TARGET.format(name="up", url=LOCAL))
    done = CliRunner().invoke(app, ["check", str(file), "--json"], env={"KEY": None})
    (one,) = json.loads(done.stdout)["warnings"]
    assert (one["kind"], one["name"]) == ("missing", "KEY")


def test_the_guide_has_every_kind():
    guide = (ROOT / "docs/guide.md").read_text()
    assert [kind for kind in WARNINGS if f"`{kind}`" not in guide] == []


def of(*, url=LOCAL, provider="", routes="", prices="", capped=CAPPED):
    text = TARGET.format(name="local", url=url) + provider + "\n" + routes + prices + capped
    return parse(text, {"KEY": "sk-1"})


PRICE = '[prices."{}"]\ninput = 1\noutput = 2\n'
CLAUDE = '[routes]\n"claude-*" = "local/*"\n'


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, True),
        ({"prices": PRICE.format("other/*")}, True),
        ({"prices": PRICE.format("llama")}, True),
        ({"prices": PRICE.format("llama*")}, True),
        ({"prices": PRICE.format("local/*")}, False),
        ({"prices": PRICE.format("*")}, False),
        ({"provider": 'provider = "generic"'}, True),
        ({"provider": 'provider = "openai"'}, False),
        ({"url": "https://api.groq.com/openai/v1"}, False),
        ({"routes": CLAUDE}, True),
        ({"routes": CLAUDE, "prices": PRICE.format("claude-3*")}, True),
        ({"routes": CLAUDE, "prices": PRICE.format("claude*")}, False),
        ({"routes": CLAUDE, "prices": PRICE.format("local/claude-*")}, False),
        ({"routes": '[routes]\nsmall = "local/llama"\n'}, False),  # its models are told one by one
        ({"capped": ""}, False),
    ],
)
def test_a_price_of_something_else_does_not_silence_that_none_is_known(told, said):
    assert bool(unpriced_targets(of(**told))) is said


def test_what_to_write_is_what_would_help():
    assert 'write provider = "..." or [prices."local/MODEL"]' in unpriced_targets(of())["local"]
    named = unpriced_targets(of(provider='provider = "generic"'))["local"]
    assert 'write [prices."local/MODEL"], or a provider that has some' in named


@pytest.mark.parametrize(
    ("variable", "url", "said"),
    [
        ("OPENAI", "", False),
        ("OPENAI", "https://api.groq.com/openai/v1", False),
        ("OPENAI", LOCAL, True),
        ("ANTHROPIC", LOCAL, False),  # its SDK speaks one dialect, wherever it goes
    ],
)
def test_without_a_file_a_known_host_has_its_prices_and_of_others_it_is_said(variable, url, said):
    config = from_environment({f"{variable}_API_KEY": "sk-1", f"{variable}_BASE_URL": url})
    told = uncounted_costs(config)
    assert bool(told) is said
    assert all("10.1.2.3, so the cost of its calls is told as unknown" in one for one in told.values())


@pytest.mark.parametrize(("url", "said"), [(LOCAL, 1), ("https://api.openai.com/v1", 0)])
def test_up_without_a_file_says_it_in_one_line(tmp_path, monkeypatch, url, said):
    async def run(_self):
        return 0

    monkeypatch.setattr("swarmgate.cli.up.leave_no_dump", lambda: None)
    monkeypatch.setattr(data._Data, "run", run)  # it goes as soon as it has begun
    env = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": url, "ANTHROPIC_API_KEY": None}
    words = ["up", "--port", "0", "--no-control", "--state", str(tmp_path / "state")]
    done = CliRunner().invoke(app, words, env=env)
    assert done.exit_code == 0
    assert done.output.count("openai: nobody knows whose prices hold at 10.1.2.3") == said
