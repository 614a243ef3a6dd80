"""Which policy holds: the most exact pattern, the first class, the domain besides."""

import pytest

from swarmgate.core.groups import group_table
from swarmgate.core.path_class import path_class
from swarmgate.core.target_policy import NO_POLICY, Policy, PolicyTable, judge

CLASSES = (path_class("search", "/v1/search*", ("GET",)), path_class("rest", "/v1/*"))
TABLE = PolicyTable(
    {name: Policy(name, {}, CLASSES if name == "api" else ()) for name in ("api", "wild", "deep", "owner")},
    group_table({"api.a.org": "api", "*.a.org": "wild", "*.x.a.org": "deep"}),
    group_table({"a.org": "owner", "*.a.org": "owner"}),
)


@pytest.mark.parametrize(
    ("host", "method", "path", "found"),
    [
        ("api.a.org", "GET", "/v1/search", ("api", "search", "owner")),
        ("api.a.org", "POST", "/v1/search", ("api", "rest", "owner")),
        ("api.a.org", "GET", "/v2", ("api", "", "owner")),
        ("b.a.org", "GET", "/v1/search", ("wild", "", "owner")),
        ("b.x.a.org", "GET", "/", ("deep", "", "owner")),
        ("a.org", "GET", "/", ("", "", "owner")),
        ("a.org.evil.com", "GET", "/", ("", "", "")),
        ("evila.org", "GET", "/", ("", "", "")),
    ],
)
def test_what_holds(host, method, path, found):
    judged = judge(TABLE, host, method, path)
    assert (judged.policy.name, judged.path_class, judged.domain.name) == found


def test_no_policy_has_no_budget():
    assert NO_POLICY.budgets.get("", ()) == ()
