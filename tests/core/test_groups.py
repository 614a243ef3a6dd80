import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.groups import group_table, registrable_group, suffix_rules
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import BadPattern

RULES = suffix_rules(
    """
// a comment
com
co.uk
uk and what follows a blank is ignored
jp
*.kawasaki.jp
!city.kawasaki.jp
公司.cn
cn
github.io
io
s3.amazonaws.com
""".splitlines()
)
GROUPS = group_table(
    {"*.Example.com.": "example", "api.example.com": "example-api", "*.eu.example.com": "eu", "10.0.0.1": "lab"}
)
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,8}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("a.example.co.uk", "example.co.uk"),
        ("a.example.uk", "example.uk"),
        ("com", "com"),
        ("co.uk", "co.uk"),
        ("swarm.github.io", "swarm.github.io"),
        ("a.swarm.github.io", "swarm.github.io"),
        ("github.io", "github.io"),
        ("bucket.s3.amazonaws.com", "bucket.s3.amazonaws.com"),
        ("ec2.amazonaws.com", "amazonaws.com"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("c.kawasaki.jp", "c.kawasaki.jp"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("a.b.unlisted", "b.unlisted"),
        ("postgres", "postgres"),
        ("93.184.216.34", "93.184.216.34"),
        ("2606:4700::1111", "2606:4700::1111"),
    ],
)
def test_the_group_of_a_host(host, group):
    assert registrable_group(host, RULES) == group


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("api.example.com", "example-api"),
        ("v2.api.example.com", "example"),
        ("a.b.eu.example.com", "eu"),
        ("eu.example.com", "example"),
        ("example.com", "example.com"),
        ("example.com.evil.com", "evil.com"),
        ("notexample.com", "notexample.com"),
        ("10.0.0.1", "lab"),
    ],
)
def test_the_longest_pattern_of_the_operator_wins(host, group):
    assert registrable_group(host, RULES, GROUPS) == group


@given(st.lists(LABEL, max_size=6))
def test_rotating_subdomains_stays_in_the_group(labels):
    assert registrable_group(".".join([*labels, "example", "co", "uk"]), RULES) == "example.co.uk"


@pytest.mark.parametrize("url", ["http://a.example.com", "https://a.example.com:8443", "https://B.A.example.com./x"])
def test_scheme_and_port_play_no_part(url):
    assert registrable_group(parse_target(url).target.host, RULES) == "example.com"


@given(st.lists(LABEL, min_size=1, max_size=6).map(".".join))
def test_a_group_is_a_suffix_of_the_host_and_its_own_group(host):
    group = registrable_group(host, RULES)
    assert host == group or host.endswith("." + group)
    assert registrable_group(group, RULES) == group


@pytest.mark.parametrize(
    "patterns", [{"a..b": "x"}, {"*": "x"}, {"*.": "x"}, {"a.*.com": "x"}, {"a.com": ""}, {"[a.com]": "x"}]
)
def test_a_pattern_that_means_nothing_is_refused(patterns):
    with pytest.raises(BadPattern):
        group_table(patterns)


def test_a_host_cannot_be_in_two_groups():
    with pytest.raises(BadPattern, match="already in group 'x'"):
        group_table({"a.com": "x", "A.com.": "y"})


@given(st.lists(st.text(max_size=10), max_size=5))
def test_any_lines_are_rules_or_refused(lines):
    try:
        rules = suffix_rules(lines)
    except BadPattern:
        return
    assert registrable_group("a.example.com", rules).endswith("com")
