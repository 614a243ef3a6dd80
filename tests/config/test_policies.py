"""Policies in the operator's file: presets and what differs, and every way to write one wrong."""

import pytest

from swarmgate.config import Pin, Quota, parse
from swarmgate.config.problems import FileError
from swarmgate.core.compiler import Unit

POLICY = """\
[policies.archive]
hosts = ["api.archive.org", "*.mirror.org"]
limits = ["5 per 1s", "100 concurrent", "1_000_000 bytes per 1m", "900 points per 60s"]
gap = "100ms"
wait = "2s"
[policies.archive.classes.search]
paths = ["/search*"]
methods = ["GET"]
limits = ["1 per 1s"]
points = 5
"""


def problems(text):
    with pytest.raises(FileError) as caught:
        parse(text, {})
    return [(problem.line, problem.field, problem.reason) for problem in caught.value.problems]


def test_a_policy():
    archive = parse(POLICY, {}).policies["archive"]
    assert archive.limits[3] == Quota(900, Unit.POINTS, 60_000)
    assert (archive.gap, archive.wait, archive.mode, archive.connect) == (100, 2_000, "enforce", "refuse")
    assert archive.classes["search"].points == 5


def test_what_the_file_does_not_say_comes_from_the_preset():
    polite = parse('[policies.crossref]\npreset = "crossref/polite"\nheadroom = 50', {}).policies["crossref"]
    assert polite.hosts == ("api.crossref.org",)
    assert polite.classes["lists"].limits == (Quota(3, Unit.REQUESTS, 1_000), Quota(3, Unit.CONCURRENT, 0))
    assert polite.headroom == 50


@pytest.mark.parametrize(
    ("good", "bad", "line", "field", "reason"),
    [
        ("hosts =", "host =", 2, "policies.archive.host", "nearest is 'hosts'"),
        ("5 per 1s", "5 tokens per 1s", 3, "policies.archive.limits[0]", "no unit that is metered"),
        ("5 per 1s", "0 per 1s", 3, "policies.archive.limits[0]", "at least 1"),
        ("900 points", "4 points", 3, "policies.archive.limits[3]", "one call needs 5"),
        ('"*.mirror.org"', '"a..b"', 2, "policies.archive.hosts", "no name"),
        ('"/search*"', '"search"', 6, "policies.archive.classes", "must start with /"),
        ('"GET"', '"get"', 6, "policies.archive.classes", "upper case"),
        ('"100ms"', '"100"', 4, "policies.archive.gap", "is no duration"),
        ("gap =", "preset =", 4, "policies.archive.preset", "is no preset"),
        ('wait = "2s"', 'connect = "open"', 5, "policies.archive.connect", "is unknown"),
    ],
)
def test_mistakes_are_told_with_their_line(good, bad, line, field, reason):
    told = problems(POLICY.replace(good, bad))
    found = [problem for problem in told if problem[1] == field and reason in problem[2]]
    assert found, told
    assert line in {problem[0] for problem in found}


def test_a_policy_that_matches_nothing():
    assert "matches nothing" in problems("[policies.x]\nlimits = []\n")[0][2]


def test_paths_have_classes_at_hosts_only():
    text = '[policies.x]\ndomains = ["x.org"]\n[policies.x.classes.search]\npaths = ["/s*"]\nlimits = ["1 per 1s"]\n'
    ((_, field, reason),) = problems(text)
    assert field == "policies.x.classes"
    assert "hosts" in reason


def test_a_pattern_belongs_to_one_policy():
    text = '[policies.a]\nhosts = ["x.org"]\n[policies.b]\nhosts = ["x.org"]\n'
    assert problems(text) == [(4, "policies.b.hosts", "'x.org' belongs to policy 'a' already")]


def test_pins():
    assert parse('[resolve]\n"api.x.org" = "127.0.0.1:9101"\n', {}).resolve == {"api.x.org": Pin("127.0.0.1", 9_101)}
    assert "write 'api.x.org'" in problems('[resolve]\n"API.x.org." = "127.0.0.1:1"\n')[0][2]
    assert "IP address and a port" in problems('[resolve]\n"api.x.org" = "localhost:1"\n')[0][2]


@pytest.mark.parametrize(
    ("said", "field", "reason"),
    [
        ('ceiling = "1 per 1m"', "egress.ceiling", "slower than the beginning"),
        ('unknown = "5 bytes per 1s"', "egress.unknown", "no unit that is metered"),
        ("most_in_flight = 1", "egress.most_in_flight", "less than in_flight"),
        ("most_per_group = 20_000", "egress.most_per_group", "more than most_targets"),
        ('without = ["crosref"]', "egress.without", "nearest is 'crossref'"),
        ('deny = ["a b"]', "egress.deny", "no name"),
        ('presets = "all"', "egress.presets", "is unknown"),
        ("ports = [0]", "egress.ports[0]", "at least"),
    ],
)
def test_mistakes_about_all_hosts(said, field, reason):
    (told,) = problems(f"[egress]\n{said}\n")
    assert told[1] == field
    assert reason in told[2]
