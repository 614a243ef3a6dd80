"""`swarmgate explain URL`: identity, policies, refusals, and what a running gate has left."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.exits import Exit
from swarmgate.core.lesson import CAP, RATE
from swarmgate.core.target import parse_target

sys.path.append(str(Path(__file__).parents[1] / "gate"))
from stage import stage

CONFIGURATION = """
[egress]
deny = ["*.bad.example"]
ports = [80, 443, 8443]

[policies.papers]
hosts = ["papers.example", "*.papers.example"]
limits = ["30 per 60s", "4 concurrent"]

[policies.owner]
domains = ["owned.example"]
limits = ["100 per 60s"]

[policies.trial]
hosts = ["one.owned.example", "free.example"]
limits = ["2 per 1s"]
mode = "shadow"
"""


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["explain", *words])


@pytest.fixture
def nobody():
    """The URL of a gate that is not there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text(CONFIGURATION)
    return str(path)


def told(nobody, *words):
    result = call(*words, "--gate", nobody, "--json")
    assert result.exit_code == Exit.OK, result.output
    return json.loads(result.stdout)


def test_a_policy_that_holds_and_what_it_yields(nobody, file):
    said = told(nobody, "HTTPS://www.Papers.example.:443/a/../b?q=1#x", "--config", file)
    assert (said["target"], said["url"]) == ("https://www.papers.example", "https://www.papers.example/b?q=1")
    assert (said["group"], said["policies"], said["unknown"]) == ("papers.example", ["papers"], None)
    assert [row["budget"] for row in said["budgets"]] == ["papers: requests per 60s", "papers: concurrent"]
    assert {row["state"] for row in said["budgets"]} == {None}
    assert all(0 < row["yields_permille"] <= 1_000 for row in said["budgets"])


def test_what_only_watches_is_told_apart_and_counts_nothing(nobody, file):
    said = told(nobody, "https://one.owned.example/", "--config", file)
    assert (said["policies"], said["watching"], said["unknown"]) == (["trial", "owner"], ["trial"], None)
    assert [(row["budget"], row["state"]) for row in said["budgets"]] == [
        ("owner: requests per 60s", None),
        ("trial: requests per 1s", "only watches"),
    ]
    assert told(nobody, "https://free.example/", "--config", file)["unknown"] is not None


def test_a_preset_counts_what_it_knows(nobody):
    said = told(nobody, "https://export.arxiv.org/api/query?search_query=all:x")
    assert said["policies"] == ["arxiv-api/anonymous"]
    assert said["path_class"] == "api"
    assert {row["unit"] for row in said["budgets"]} == {"requests", "concurrent"}


def test_an_unknown_host_begins_cautiously(nobody):
    said = told(nobody, "http://unheard-of.example/")
    assert (said["policies"], said["budgets"]) == ([], [])
    assert said["unknown"] == {"begins_at": "1 requests per 1s", "ceiling": "10 requests per 1s"}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://x.bad.example/", "deny"),
        ("http://127.0.0.1/", "this machine"),
        ("http://169.254.169.254/latest/", "metadata"),
        ("http://papers.example:81/", "Port 81"),
    ],
)
def test_why_a_url_would_not_be_called(nobody, file, url, why):
    assert why in told(nobody, url, "--config", file)["refused"]


@pytest.mark.parametrize("url", ["ftp://x.example/", "http://a..b/", "http://x.example:99999/", "http://x\ty/"])
def test_what_is_no_url_of_a_target_is_said(nobody, url):
    result = call(url, "--gate", nobody)
    assert result.exit_code == Exit.USAGE
    assert "caller_" in result.output


def test_people_read_a_table_and_that_no_gate_answers(nobody, file):
    result = call("https://papers.example/", "--config", file, "--gate", nobody)
    assert result.exit_code == Exit.OK
    for words in ("papers: requests per 60s", "no gate", "no gate answers", "policies"):
        assert words in result.output


def test_a_running_gate_says_what_is_left(file):
    text = CONFIGURATION + '\n[targets.up]\nbase_url = "http://127.0.0.1:{port}/v1"\nkeys = {{ only = "env:KEY" }}\n'

    async def play():
        async with stage(text=text) as running:
            return await asyncio.to_thread(
                call,
                "https://papers.example/",
                "--config",
                file,
                "--gate",
                f"http://127.0.0.1:{running.port}",
                "--json",
            )

    result = asyncio.run(play())
    assert result.exit_code == Exit.OK, result.output
    rows = json.loads(result.output)["budgets"]
    assert [(row["budget"], row["state"]) for row in rows] == [
        ("papers: requests per 60s", "ready"),
        ("papers: concurrent", "ready"),
    ]


def test_a_running_gate_says_what_it_has_learned_of_a_host_and_what_an_operator_has_set(file):
    text = CONFIGURATION + '\n[targets.up]\nbase_url = "http://127.0.0.1:{port}/v1"\nkeys = {{ only = "env:KEY" }}\n'

    async def play():
        async with stage(text=text) as running:
            running.gate.operator.limit("papers: requests per 60s", 12)
            for host in (*[f"h{number}.example" for number in range(100)], "new.example"):  # more than `budgets` lists
                running.gate.egress.hosts.place(parse_target(f"http://{host}/").target, "GET", "/")
            gate = "--gate", f"http://127.0.0.1:{running.port}"
            unknown = await asyncio.to_thread(call, "https://new.example/", *gate, "--json")
            known = await asyncio.to_thread(call, "https://papers.example/", "--config", file, *gate)
            return json.loads(unknown.output)["budgets"], known.output

    rows, known = asyncio.run(play())
    names = ("new.example", "group new.example")
    learned = [name + kind for name in names for kind in (RATE, CAP)]
    assert sorted(row["budget"] for row in rows) == sorted([*learned, "group new.example: concurrent"])
    assert all(row["remaining"] and row["state"] in {"ready", "backoff"} for row in rows)
    assert "12 per 60s" in known


def test_without_a_file_a_running_gate_answers_for_its_own_policies():
    text = CONFIGURATION.replace("[egress]", '[egress]\npresets = "off"')
    text += '[policies.papers.classes.search]\npaths = ["/search*"]\nmethods = ["POST"]\nlimits = ["1 per 1s"]\n'
    text += '[targets.up]\nbase_url = "http://127.0.0.1:{port}/v1"\nkeys = {{ only = "env:KEY" }}\n'
    asked = {
        "policy": ("https://papers.example/search",),
        "class": ("https://papers.example/search", "--method", "post"),
        "unknown": ("https://export.arxiv.org/api/query",),
        "denied": ("https://x.bad.example/",),
    }

    async def play():
        async with stage(text=text) as running:
            gate = "--gate", f"http://127.0.0.1:{running.port}", "--json"
            said = {name: await asyncio.to_thread(call, *words, *gate) for name, words in asked.items()}
            return {name: json.loads(one.output) for name, one in said.items()}, len(running.gate.egress.hosts.hosts)

    said, known = asyncio.run(play())
    assert [said[name]["policies"] for name in asked] == [["papers"], ["papers"], [], []]
    assert [said[name]["path_class"] for name in asked] == [None, "search", None, None]
    assert [row["budget"] for row in said["class"]["budgets"] if not row["budget"].startswith("papers:")] == [
        "papers#search: requests per 1s"
    ]
    assert all(row["state"] == "ready" for row in said["policy"]["budgets"])
    assert [said[name]["unknown"] is None for name in asked] == [True, True, False, True]
    assert "policy_host" in said["denied"]["refused"]
    assert known == 0  # who asks makes no host known


def test_without_a_file_it_is_said_that_only_presets_were_looked_at(nobody):
    assert "none of the presets" in call("https://papers.example/", "--gate", nobody).output
