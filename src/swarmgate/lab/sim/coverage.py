"""
Which faults have struck calls in which states: a pair that never happened proves nothing (reliability 3: coverage).

Seeds hit pairs as they come. `aimed` makes a trial for one pair: it watches a world without that fault until some call in
its reach is in that state, and strikes at that very instant; until then both worlds are the same.
"""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import NamedTuple, get_args

from swarmgate.core.record import State
from swarmgate.lab.faults import RULES, Fault, FaultKind
from swarmgate.lab.scenario_file import parse
from swarmgate.lab.sim.world import World

# A new call moves on in the instant in which it comes, and an ended one is out of every reach.
STATES = tuple(state for state in State if state not in {State.NEW, State.ENDED})
PAIRS = tuple((kind, state) for kind in get_args(FaultKind) for state in STATES)
Pairs = Counter[tuple[FaultKind, State]]

_SCENE = """
# Two gates on one store, streamed answers, more demand than there is room for, and a moment in which the target is unwell.
duration_s = 14
warmup_s = 1
gates = 2

[[targets]]
name = "model"
latency = "gpt-4o-mini"
keys = 2
scopes = 2
honours_keys = true
[[targets.limits]]
kind = "sliding_log"
limit = 40
window_ms = 10_000

[[targets]]
name = "other"
[[targets.limits]]
kind = "token_bucket"
limit = 60
window_ms = 10_000

[[loads]]
name = "dense"
kind = "hypotheses"
target = "model"
agents = 12
per_minute = 60
prompt_tokens = 500
output_tokens = 400

[[loads]]
name = "writes"
kind = "protocol"
target = "model"
agents = 4
per_minute = 20

[[loads]]
name = "reads"
kind = "fetch"
target = "other"
agents = 6
per_minute = 60
"""
_FROM_MS, _UNTIL_MS = 3_000, 16_000
_ALWAYS = (  # so that calls are in backoff, and dial anew, at all
    Fault("brownout", 2_500, 9_000, "model", 600),
    Fault("stale", 2_500, 10_000, "model", 300),
    Fault("latency_spike", 6_000, 3_000, "other", 300),
    Fault("store_lag", 7_000, 500, "store", 20),
)
_FOR_MS = 700
_PLACES = {"target": "model", "gate": "gate-1", "store": "store", "agents": "agents"}


class Aim(NamedTuple):
    """A fault that strikes calls of one state, and the world in which it does."""

    fault: Fault
    world: World


@cache
def _instants() -> dict[tuple[str, State], int]:
    """When a call of a place is first in a state, where nothing but the usual happens; two gates, two targets."""
    world = World(parse(_SCENE, "coverage"), 1, _ALWAYS)
    found: dict[tuple[str, State], int] = {}

    def look(at_ms: int) -> None:
        for gate in world.gates:
            for call in gate.pump.open:
                for place in (gate.name, call.rungs[call.rung].target, "store", "agents"):
                    found.setdefault((place, call.state), at_ms)

    for at_ms in range(_FROM_MS, _UNTIL_MS):
        world.time.at(at_ms, look, at_ms)
    world.run()
    return found


def aimed(kind: FaultKind, state: State) -> Aim:
    """
    A world in which a fault of that kind strikes a call in that state; run it, then judge it.

    Callers leave at any instant of their calls' lives, so that one long fault must do for all states.
    """
    rule = RULES[kind]
    where = _PLACES[rule.place]
    at_ms = _instants()[where, state]
    amount = {"clock_step": 30_000, "gate_stop": 0, "revision": 50, "store_failover": 500}.get(kind, rule.most // 2)
    fault = Fault(kind, at_ms, _FOR_MS if rule.lasts else 0, where, amount)
    if rule.place == "agents":
        fault = replace(fault, at_ms=0, for_ms=_UNTIL_MS)
    return Aim(fault, World(parse(_SCENE, "coverage"), 1, (*_ALWAYS, fault)))


def table(pairs: Pairs) -> list[tuple[str, ...]]:
    """A row for each kind: how often it struck calls in each state; a header first."""
    rows = [(kind, *(f"{pairs[kind, state]:,}" for state in STATES)) for kind in get_args(FaultKind)]
    return [("fault", *(state.value for state in STATES)), *rows]


def never(pairs: Pairs) -> list[str]:
    """The pairs that did not happen."""
    return [f"{kind} x {state.value}" for kind, state in PAIRS if not pairs[kind, state]]
