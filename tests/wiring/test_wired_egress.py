"""From policies and presets to tables and budgets."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.config import parse
from swarmgate.core.compiler import Unit
from swarmgate.core.limits import BudgetKind
from swarmgate.core.routing import route
from swarmgate.core.target_policy import judge
from swarmgate.wiring.egress import budgets_of, outage_modes, policy_table

TEXT = """
[policies.sec]
hosts = ["www.sec.gov", "data.sec.gov"]
limits = ["10 per 1s", "90 points per 1m", "1_000_000 bytes per 1m"]
burst = 1
gap = "50ms"
outage = "closed"
[policies.sec.classes.write]
paths = ["/*"]
methods = ["POST"]
points = 5
limits = ["2 concurrent"]

[policies.watched]
domains = ["example.org"]
limits = ["1 per 1s"]
mode = "shadow"
"""
TABLE = policy_table(parse(TEXT, {}))


def test_hosts_of_one_policy_share_its_budgets():
    first, second = (judge(TABLE, host, "GET", "/") for host in ("www.sec.gov", "data.sec.gov"))
    assert first == second
    assert first.policy.name == "sec"  # and not the preset's


def test_a_class_has_the_limits_of_the_whole_too_at_its_cost():
    read, write = (TABLE.by_name["sec"].budgets[kind] for kind in ("", "write"))
    assert [one.name for one in write] == [*[one.name for one in read], "sec#write: concurrent"]
    points = "sec: points per 60s"
    assert [one.cost for one in (*read, *write) if one.name == points] == [1, 5]
    assert len({one.compiled for one in (*read, *write) if one.name == points}) == 1


def test_the_way_of_each_unit_into_a_route():
    made = route("", TABLE.by_name["sec"].budgets["write"])
    assert ("sec: points per 60s", 5, 0) in made.fixed
    assert made.metered == ("sec: bytes per 60s",)
    assert made.whole == ("sec#write: concurrent",)


def test_a_gap_is_a_bucket_of_one():
    gap = next(one for one in TABLE.by_name["sec"].budgets[""] if one.name == "sec: gap").compiled.limits
    assert (gap.kind, gap.burst, gap.quota, gap.window_ms) == (BudgetKind.LEVEL, 1, 1, 50)


@given(st.integers(1, 40), st.integers(4, 400))
def test_a_burst_is_never_exceeded(burst, amount):
    text = f'[policies.x]\nhosts = ["x.org"]\nlimits = ["{amount} per 60s"]\nburst = {burst}'
    made = policy_table(parse(text, {})).by_name["x"].budgets[""][0].compiled.limits
    assert made.burst <= max(burst, 1) or (made.kind is BudgetKind.LEASES and amount <= burst)


def test_shadow_policies_have_no_budget_in_force():
    assert all(not name.startswith("watched") for name in budgets_of(TABLE))
    assert judge(TABLE, "www.example.org", "GET", "/").policy.shadow


def test_presets_are_on_unless_the_operator_says_otherwise():
    policy = judge(TABLE, "api.crossref.org", "GET", "/works/10.1").policy
    assert policy.name == "crossref/public"
    assert [one.unit for one in policy.budgets["single"]] == [Unit.REQUESTS, Unit.CONCURRENT]
    without = policy_table(parse('[egress]\nwithout = ["crossref"]\n', {}))
    assert judge(without, "api.crossref.org", "GET", "/works/10.1").policy.name == ""


def test_presets_for_other_paths_of_one_host_hold_together():
    table = policy_table(parse('[egress]\npresets = "low"\n', {}))
    found = {
        path: [one.name for one in judged.policy.budgets[judged.path_class]]
        for path in ("/chembl/api/data/x", "/proteins/api/features", "/europepmc/webservices/rest/search", "/else")
        for judged in [judge(table, "www.ebi.ac.uk", "GET", path)]
    }
    assert found == {
        "/chembl/api/data/x": ["www.ebi.ac.uk#chembl-api: requests per 1s"],
        "/proteins/api/features": ["www.ebi.ac.uk#ebi-proteins-api: requests per 1s"],
        "/europepmc/webservices/rest/search": ["www.ebi.ac.uk#europepmc-api: requests per 1s"],
        "/else": [],
    }


def test_what_a_budget_does_without_its_store_is_told_for_each():
    modes = outage_modes(parse(TEXT, {}))
    assert modes["sec: requests per 1s"] == "closed"
    assert modes["sec: requests per 1s:learned:rate"] == "closed"
    assert {mode for name, mode in modes.items() if not name.startswith("group ")} == {"closed", "local-share"}
