"""No mistake hides another: those of two are told of a file that has both."""

from itertools import combinations

import pytest

from swarmgate.config import parse
from swarmgate.config.problems import FileError

TARGET = {"base_url": '"http://127.0.0.1:9/v1"', "keys": '{ k = "env:KEY" }'}
SECTIONS = {
    "targets.a": (
        TARGET,
        {
            "foo": "1",
            "headroom": "300",
            "accounts": '{ q = ["zz"] }',
            "limits": '["5 per 1s", "0 per 1s", "abc"]',
            "key_limits": '["0 tokens per 1s", "abc"]',
            "largest_tokens": "0",
            "agents": "7",
            "keys": '{ k = "env:NONE" }',
            "base_url": "7",
            "provider": '"opena"',
            "windows": "{ m = 0 }",
        },
    ),
    "agents": ({}, {"foo": "1", "limits": '["5 per 1s", "0 per 1s", "abc"]'}),
    "teams.t": (
        {"agents": '["*"]'},
        {"foo": "1", "limits": '["0 per 1s", "abc"]', "largest_tokens": "0", "agents": "[]", "share": "0"},
    ),
    "task_types.t": ({}, {"foo": "1", "limits": '["0 per 1s", "abc"]', "over": '"x"', "context": "0"}),
    "tls": ({}, {"foo": "1", "certificate": '"/none/x"', "target_ca": '"/none/y"'}),
    "egress": (
        {},
        {
            "foo": "1",
            "ceiling": '"1 per 9s"',
            "most_in_flight": "1",
            "without": '["zz", "arxiv-api/anonymos"]',
            "allow": '["x..y"]',
            "deny": '["["]',
            "wait": "9",
            "presets": '"no"',
        },
    ),
    "policies.b": (
        {"hosts": '["x.org"]'},
        {
            "foo": "1",
            "hosts": '["x..y"]',
            "gap": '"zz"',
            "mode": '"no"',
            "limits": '["5 per 1s", "0 per 1s", "abc"]',
            "classes": '{ c = { paths = ["x"], limits = ["0 per 1h"] } }',
        },
    ),
}  # fmt: skip
PAIRS = [(section, pair) for section, (_, wrong) in SECTIONS.items() for pair in combinations(wrong, 2)]


def told(section, names):
    good, wrong = SECTIONS[section]
    table = good | {name: wrong[name] for name in names}
    text = f"[{section}]\n" + "".join(f"{name} = {value}\n" for name, value in table.items())
    with pytest.raises(FileError) as caught:
        parse(text, {"KEY": "sk-1"})
    return {problem[1:] for problem in caught.value.problems}


@pytest.mark.parametrize(("section", "pair"), PAIRS)
def test_each_of_two_mistakes_is_told_as_if_it_were_alone_and_nothing_else(section, pair):
    first, second = pair
    assert told(section, pair) == told(section, [first]) | told(section, [second])


@pytest.mark.parametrize("section", SECTIONS)
def test_all_mistakes_of_a_section_are_told(section):
    wrong = SECTIONS[section][1]
    assert told(section, wrong) == set().union(*(told(section, [name]) for name in wrong))


@pytest.mark.parametrize("section", ["agents", "teams.t", "targets.a", "policies.b"])
def test_items_of_a_list_are_judged_one_by_one(section):
    assert {where.partition("limits")[2] for where, _ in told(section, ["limits"])} >= (
        {"[0]", "[1]"} if section == "teams.t" else {"[1]", "[2]"}
    )


def test_what_follows_from_a_mistake_alone_is_not_told():
    text = '[tls]\ncertificate = 7\nkey = "/none"\nclient_ca = 8\n[agents]\nlargest_tokens = "4"\nlimits = ["9 tokens per 1s"]\n'
    with pytest.raises(FileError) as caught:
        parse(text, {})
    assert [problem.field for problem in caught.value.problems] == [
        "tls.certificate",
        "tls.key",
        "tls.client_ca",
        "agents.largest_tokens",
    ]
    assert "cannot be read" in caught.value.problems[1].reason


@pytest.mark.parametrize("gap", ["0s", "0ns", "0ms"])
def test_a_gap_of_no_time_is_a_mistake_at_its_line(gap):
    with pytest.raises(FileError) as caught:
        parse(f'[policies.b]\nhosts = ["x.org"]\ngap = "{gap}"\n', {})
    assert [problem[:2] for problem in caught.value.problems] == [(3, "policies.b.gap")]
    assert "without `gap`" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "field", "reason"),
    [
        ("x = 1\ny = " + "[" * 3_000 + "]" * 3_000, 2, "file", "too deep"),
        ("x = 1\nconnections = " + "9" * 5_000, 2, "file", "3,000 digits"),
        ("x = 1\n[agents]\nlimits = [0x" + "f" * 5_000 + "]", 3, "file", "3,000 digits"),
        ("[policies.b]\npreset = ['x']", 2, "policies.b.preset", "is no preset"),
        ("[policies.b]\npreset = { a = 1 }", 2, "policies.b.preset", "is no preset"),
    ],
)
def test_op_01_what_no_reader_can_take_is_told_and_no_traceback(text, line, field, reason):
    with pytest.raises(FileError) as caught:
        parse(text, {})
    assert (line, field) in [problem[:2] for problem in caught.value.problems]
    assert reason in str(caught.value)
