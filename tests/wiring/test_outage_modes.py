"""From `outage` in a policy to what its host's calls are told while a shared store is lost."""

from cut_off import Gates
from swarmgate.config import parse
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.events import StoreLost
from swarmgate.core.target import parse_target
from swarmgate.gate.egress.hosts import Hosts
from swarmgate.wiring.egress import budgets_of, egress_plan, outage_modes

MODES = ("local-share", "closed", "open")
CONFIG = parse(
    "".join(
        f'[policies.{mode}]\nhosts = ["{mode}.example.com"]\nlimits = ["600 per 60s"]\noutage = "{mode}"\n'
        for mode in MODES
    ),
    {},
)


def demands_and_limits():
    """What a call to each host takes, and every budget in it."""
    plan = egress_plan(CONFIG)
    limits = dict(pair for one in budgets_of(plan.policies).values() for pair in one.limits())
    hosts = Hosts(plan, Gates().time, limits.setdefault, lambda _: False, {})
    targets = {mode: parse_target(f"https://{mode}.example.com/").target for mode in MODES}
    rungs = {mode: hosts.place(target, "GET", "/").rung for mode, target in targets.items()}
    return {mode: rung.routes[""].demands(0, 0) for mode, rung in rungs.items()}, limits


def test_each_host_s_calls_are_decided_by_its_policy_s_mode():
    demands, limits = demands_and_limits()
    gates = Gates(2, limits, **outage_modes(CONFIG))
    gates.lose(600_000)
    told = {mode: [gates.answer(*demands[mode]) for _ in range(40)] for mode in MODES}
    assert {type(one) for one in told["closed"]} == {StoreLost}
    assert {type(one) for one in told["open"]} == {Granted}
    assert isinstance(told["local-share"][0], Denied)  # its share begins cold
    gates.run(60_000)
    told = [gates.answer(*demands["local-share"]) for _ in range(40)]
    granted = sum(isinstance(one, Granted) for one in told)
    assert 0 < granted < 40  # a burst's share, and no more at once
