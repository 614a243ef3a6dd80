"""Which policies hold: the most exact pattern over hosts, the first class, every domain around besides."""

import pytest

from swarmgate.core.groups import group_table
from swarmgate.core.path_class import path_class
from swarmgate.core.target_policy import NO_POLICY, Policy, PolicyTable, judge

CLASSES = (path_class("search", "/v1/search*", ("GET",)), path_class("rest", "/v1/*"))
TABLE = PolicyTable(
    {name: Policy(name, {}, CLASSES if name == "api" else ()) for name in ("api", "wild", "deep", "owner", "inner")},
    group_table({"api.a.org": "api", "*.a.org": "wild", "*.x.a.org": "deep", "both.b.org": "owner"}),
    group_table(
        {"a.org": "owner", "*.a.org": "owner", "x.a.org": "inner", "*.x.a.org": "inner"}
        | dict.fromkeys(("b.org", "*.b.org"), "owner")
    ),
)


@pytest.mark.parametrize(
    ("host", "method", "path", "found"),
    [
        ("api.a.org", "GET", "/v1/search", ("api", "search", "owner")),
        ("api.a.org", "POST", "/v1/search", ("api", "rest", "owner")),
        ("api.a.org", "GET", "/v2", ("api", "", "owner")),
        ("b.a.org", "GET", "/v1/search", ("wild", "", "owner")),
        ("b.x.a.org", "GET", "/", ("deep", "", "inner", "owner")),  # a domain within is no way out of the one around
        ("x.a.org", "GET", "/", ("wild", "", "inner", "owner")),
        ("a.org", "GET", "/", ("owner", "")),  # the domain's policy is the host's where it has none
        ("both.b.org", "GET", "/", ("owner", "")),  # and is not charged twice where it names both
        ("a.org.evil.com", "GET", "/", ("", "")),
        ("evila.org", "GET", "/", ("", "")),
    ],
)
def test_what_holds(host, method, path, found):
    judged = judge(TABLE, host, method, path)
    assert (judged.policy.name, judged.path_class, *[one.name for one in judged.domains]) == found


def test_no_policy_has_no_budget():
    assert NO_POLICY.budgets.get("", ()) == ()
