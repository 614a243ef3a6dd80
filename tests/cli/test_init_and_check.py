"""`init` writes what `check` accepts; `check` tells every mistake at once and what each limit yields."""

import json
import resource
import tomllib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from swarmgate import __version__
from swarmgate.cli import app
from swarmgate.config import load
from swarmgate.control.orders import limits_of
from swarmgate.stores.journal.in_force import AT_START, InForce, Why
from swarmgate.wiring import plan

ANN = Why("ann", "they asked")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
URLS = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")


def run(*arguments, **environment):
    return CliRunner().invoke(app, arguments, env=dict.fromkeys(KEYS + URLS) | environment)


@pytest.mark.parametrize(
    ("set_keys", "targets", "routes"),
    [
        ((), ["openai"], {"*"}),
        (("OPENAI_API_KEY",), ["openai"], {"*"}),
        (("ANTHROPIC_API_KEY",), ["anthropic"], {"*"}),
        (KEYS, ["openai", "anthropic"], {"*", "claude-*"}),
    ],
)
def test_what_init_writes_passes_check(tmp_path, set_keys, targets, routes):
    file = str(tmp_path / "gate.toml")
    environment = dict.fromkeys(set_keys, "sk-1")
    assert run("init", file, **environment).exit_code == 0
    done = run("check", file, "--json", **environment)
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert told["missing"] == ([] if set_keys else ["OPENAI_API_KEY"])
    assert list(dict.fromkeys(row["of"].partition(",")[0] for row in told["limits"])) == [*targets, "each agent"]
    text = (tmp_path / "gate.toml").read_text()
    assert {line.partition("=")[0].strip(' "') for line in text.splitlines() if line.startswith('"')} == routes


def test_init_writes_the_upstreams_that_the_environment_names(tmp_path):
    file = tmp_path / "gate.toml"
    keys = dict.fromkeys(KEYS, "sk-1")
    urls = {"OPENAI_BASE_URL": "http://10.1.2.3:4000/v1", "ANTHROPIC_BASE_URL": "http://10.1.2.3:4001"}
    told = run("init", str(file), **keys, **urls).stdout
    assert "openai go to http://10.1.2.3:4000/v1, as OPENAI_BASE_URL says" in told
    load(file, keys)
    targets = tomllib.loads(file.read_text())["targets"]
    assert {name: (one["base_url"], one["provider"]) for name, one in targets.items()} == {
        "openai": ("http://10.1.2.3:4000/v1", "openai"),
        "anthropic": ("http://10.1.2.3:4001/v1", "anthropic"),
    }


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "http://127.0.0.1:8787/v1", ""])
def test_init_leaves_the_provider_itself_where_no_other_upstream_is_named(tmp_path, url):
    file = tmp_path / "gate.toml"
    assert "go to" not in run("init", str(file), OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url).stdout
    assert tomllib.loads(file.read_text())["targets"]["openai"]["base_url"] == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://10.1.2.3:4000/v1", True),
        ("https://api.openai.com/v1/", False),
        ("http://127.0.0.1:8787/v1", False),
        ("nonsense", False),
        ("", False),
    ],
)
def test_check_says_when_the_environment_names_another_upstream(tmp_path, url, told):
    file = tmp_path / "gate.toml"
    run("init", str(file), OPENAI_API_KEY="sk-1")
    done = run("check", str(file), OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url)
    assert done.exit_code == 0
    assert ("OPENAI_BASE_URL of this environment is not where openai sends its calls" in done.stdout) is told


@pytest.mark.parametrize(("named", "told"), [("", True), ('provider = "openai"\n', False)])
def test_check_names_provider_where_money_is_capped_and_nobody_knows_the_host(tmp_path, named, told):
    file = tmp_path / "gate.toml"
    run("init", str(file), OPENAI_API_KEY="sk-1")
    text = file.read_text().replace('"https://api.openai.com/v1"\n', f'"http://10.1.2.3:4000/v1"\n{named}')
    file.write_text(text.replace('["5 per 1s"]', '["2.50 USD per 1d"]', 1))
    done = run("check", str(file), OPENAI_API_KEY="sk-1")
    assert done.exit_code == 0
    assert ("write provider =" in done.stdout) is told


def test_a_part_that_init_left_out_is_put_in_force_by_taking_its_signs_away(tmp_path):
    file = tmp_path / "gate.toml"
    run("init", str(file), OPENAI_API_KEY="sk-1")
    before, sign, after = file.read_text().partition("# [targets.anthropic]\n")
    part, end, after = after.partition("\n\n")
    lines = (sign + part).splitlines()
    assert all(line.startswith("# ") for line in lines)
    file.write_text(before + "\n".join(line[2:] for line in lines) + end + after.replace('# "claude', '"claude', 1))
    done = run("check", str(file), OPENAI_API_KEY="sk-1", ANTHROPIC_API_KEY="sk-1")
    assert done.exit_code == 0, done.stderr
    assert "50 requests" in done.stdout


def test_init_leaves_a_file_alone(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text("mine")
    done = run("init", str(file))
    assert done.exit_code == 2
    assert "left as it is" in done.stderr
    assert file.read_text() == "mine"
    assert run("init", str(tmp_path / "none" / "gate.toml")).exit_code == 2


def test_check_tells_what_each_limit_yields(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text(
        """
        [targets.up]
        base_url = "http://127.0.0.1:9/v1"
        keys = { only = "env:OPENAI_API_KEY" }
        limits = ["500 per 60s", "2 per 1s", "1_000 per 1d", "7 concurrent"]
        """
    )
    done = run("check", str(file))
    assert done.exit_code == 0
    assert "no mistakes" in done.stdout
    assert "no OPENAI_API_KEY" in done.stdout
    rows = json.loads(run("check", str(file), "--json").stdout)["limits"]
    assert [row["kind"] for row in rows] == ["bucket", "slots", "counter", "slots"]
    assert rows[0] == {
        "of": "up",
        "kind": "bucket",
        "published": {"amount": 500, "unit": "requests", "window_ms": 60_000},
        "compiled": {"burst": 33, "quota": 400_000, "window_ms": 60_000_000, "hold_ms": 0},
        "lets_through": "33 at once, 400 per 60s",
        "yield_percent": 80.0,
        "reserve": 8,
    }
    assert [row["lets_through"] for row in rows[1:]] == [
        "2 slots, each busy for 1.25s from its answer on",
        "800 in any 86400s",
        "7 in progress",
    ]


def test_a_variable_that_is_missing_is_told_beside_mistakes(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text('[targets.up]\nbase_url = "http://h/v1"\nheadroom = 101\nkeys = { a = "env:OPENAI_API_KEY" }\n')
    assert "no OPENAI_API_KEY" in run("check", str(file)).stderr
    assert json.loads(run("check", str(file), "--json").stdout)["missing"] == ["OPENAI_API_KEY"]


def test_a_limit_that_yields_little_says_why(tmp_path):
    file = tmp_path / "gate.toml"
    text = '[targets.up]\nbase_url = "http://h/v1"\nkeys = { a = "env:A" }\nkey_limits = ["50_000 tokens per 60s"]\n'
    file.write_text(text)
    assert "must fit at once; a smaller largest_tokens lets more through" in run("check", str(file)).stdout
    file.write_text(text + "largest_tokens = 2_000\n")
    assert "must fit" not in run("check", str(file)).stdout


def test_check_tells_every_mistake(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text('lisen = 1\n[targets.up]\nbase_url = "x"\nkeys = {}\nlimits = "5 per 60s"\n')
    done = run("check", str(file))
    assert done.exit_code == 2
    assert [line.removeprefix(str(file)).split(": ")[:2] for line in done.stderr.splitlines()] == [
        [":1", "lisen"],
        [":3", "targets.up.base_url"],
        [":4", "targets.up.keys"],
        [":5", "targets.up.limits"],
    ]
    told = json.loads(run("check", str(file), "--json").stdout)
    assert [problem["line"] for problem in told["problems"]] == [1, 3, 4, 5]
    assert run("check", str(tmp_path / "none.toml")).exit_code == 2


def test_check_tells_which_prices_a_cap_in_money_would_miss(tmp_path):
    file = tmp_path / "gate.toml"
    text = """
        [targets.openai]
        base_url = "https://api.openai.com/v1"
        keys = { only = "env:OPENAI_API_KEY" }
        [routes]
        a = "openai/gpt-4o-mini"
        b = ["openai/no-such-model", "openai/*"]
        """
    file.write_text(text)
    assert json.loads(run("check", str(file), "--json").stdout)["unpriced"] == []
    file.write_text(text + '[agents]\nlimits = ["5 USD per 1d"]\n')
    assert json.loads(run("check", str(file), "--json").stdout)["unpriced"] == ["openai/no-such-model"]
    assert "no price is known for openai/no-such-model" in run("check", str(file)).stdout


POLICIES = """
[policies.papers]
hosts = ["a.org"]
limits = ["600 per 60s"]
outage = "closed"
[policies.other]
hosts = ["b.org"]
limits = ["60 per 60s"]
"""


def test_check_tells_what_has_no_effect(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text(POLICIES)
    state = "--state", str(tmp_path)
    assert json.loads(run("check", str(file), *state, "--json").stdout)["without_effect"] == ["policies.papers.outage"]
    assert "policies.papers.outage has no effect" in run("check", str(file), *state).stdout


def test_check_tells_which_rungs_may_never_be_reached(tmp_path):
    file, state = tmp_path / "gate.toml", ("--state", str(tmp_path))
    target = '[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = { k = "env:KEY" }\n'
    rungs = ", ".join(f'"up/m{number}"' for number in range(6))
    file.write_text(f'{target}[routes]\nlong = [{rungs}]\nshort = "up/m0"\n')
    done = run("check", str(file), *state)
    assert done.exit_code == 0
    assert "routes.long: up/m4, up/m5 may never be reached: a call is sent at most 4 times" in done.stdout
    assert json.loads(run("check", str(file), *state, "--json").stdout)["out_of_reach"] == ["routes.long"]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('a = "env:KEY", b = "env:KEY"', ["targets.up.keys.b"]),
        ('a = "env:KEY", b = "env:SAME"', ["targets.up.keys.b"]),
        ('a = "env:GONE", b = "env:GONE"', ["targets.up.keys.b"]),
        ('a = "env:GONE", b = "env:GONE_TOO"', []),
        ('a = "env:KEY", b = "env:OTHER"', []),
        ('a = "env:KEY", b = "env:KEY" }\naccounts = { lab = ["a", "b"]', []),
    ],
)
def test_check_tells_which_names_are_one_key_and_not_the_key(tmp_path, keys, told):
    file, secret = tmp_path / "gate.toml", "sk-canary-7"
    file.write_text(f'[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = {{ {keys} }}\n')

    def said(*more):
        state = "--state", str(tmp_path)
        return run("check", str(file), *state, *more, KEY=secret, SAME=secret, OTHER="sk-2").stdout

    assert json.loads(said("--json"))["same_key"] == told
    assert ("up: a, b are one key" in said()) == bool(told)
    assert secret not in said() + said("--json")


def test_check_tells_which_hosts_ask_for_a_contact(tmp_path):
    file = tmp_path / "gate.toml"

    def said(text):
        file.write_text(text)
        return json.loads(run("check", str(file), "--state", str(tmp_path), "--json").stdout)["without_contact"]

    asking = said(POLICIES + '[policies.nominatim]\npreset = "nominatim/anonymous"\n')
    assert {"nominatim", "sec-edgar/anonymous"} <= set(asking)
    assert "arxiv-api/anonymous" not in asking
    assert "ask for a contact" in run("check", str(file), "--state", str(tmp_path)).stdout
    assert said('[egress]\nuser_agent = "swarm/1 (mailto:me@example.org)"\n') == []
    assert "sec" not in said('[policies.sec]\npreset = "sec-edgar/anonymous"\nuser_agent = "Lab me@example.org"\n')
    assert said('listen = "127.0.0.1:8787"\n') == []


def test_check_shows_what_an_operator_has_set_over_the_file(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text(POLICIES)
    served = plan(load(file, {}))
    kept, told = InForce(tmp_path, 0), limits_of(served)
    kept.adopt(told, AT_START, 1)
    name = "papers: requests per 60s"
    published = replace(told[name].published, amount=300)
    kept.adopt({name: told[name]._replace(published=published, limits=replace(told[name].limits, quota=3))}, ANN, 2)
    kept.save()
    state = "--state", str(tmp_path)
    (row,) = json.loads(run("check", str(file), *state, "--json").stdout)["standing"]
    told = {"budget": name, "amount": 300, "window_ms": 60_000, "author": "ann", "reason": "they asked"}
    assert row == told | {"unit": "requests"}
    assert (
        "300 per 60s stands over the file until a restart; ann set it: they asked"
        in run("check", str(file), *state).stdout
    )
    file.write_text(POLICIES.replace("600 per", "300 per"))
    assert json.loads(run("check", str(file), *state, "--json").stdout)["standing"] == []


def test_the_version():
    assert run("--version").stdout == f"swarmgate {__version__}\n"


def test_p12_check_says_what_no_call_may_leave_unsaid(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text('[access]\nidentity = ["agent", "goal"]\n')
    assert "does not say its agent, goal is refused" in run("check", str(file)).stdout
    assert json.loads(run("check", str(file), "--json").stdout)["identity"] == ["agent", "goal"]
    file.write_text('[access]\nidentity = ["agnt"]\n')
    assert "'agnt' is unknown; nearest is 'agent'" in run("check", str(file)).stderr


def test_sc_04_a_key_that_everybody_can_read_is_told(tmp_path):
    key, file = tmp_path / "key", tmp_path / "gate.toml"
    key.write_text("sk-1")
    file.write_text(f'[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = {{ k = "file:{key}" }}\n')
    for mode, told in ((0o644, [str(key)]), (0o604, [str(key)]), (0o600, []), (0o440, [])):
        key.chmod(mode)
        assert json.loads(run("check", str(file), "--json").stdout)["exposed"] == told
        assert (f"chmod 600 {key}" in run("check", str(file)).stdout) == bool(told)


def test_check_tells_how_many_connections_this_machine_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1_024, 4_096))
    file = tmp_path / "gate.toml"
    file.write_text("connections = 3_073\n")
    shown = run("check", str(file))
    assert shown.exit_code == 0
    assert "no mistakes, but this machine cannot serve it" in shown.stdout
    assert "on this machine `swarmgate up` refuses the file: connections: 3073 do not fit" in shown.stdout
    assert "write at most 3072" in json.loads(run("check", str(file), "--json").stdout)["connections"][0]
    file.write_text("connections = 3_072\n")
    assert json.loads(run("check", str(file), "--json").stdout)["connections"] == []
