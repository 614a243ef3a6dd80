"""
What can go wrong in a simulated world, as data: a plan is a tuple of faults, made by hand or from a seed.

Two kinds are no faults but happen as unforeseen: callers that leave, and operators that change a limit under load. The
world that applies a plan lives elsewhere; here is only what a fault is, which amounts it may have, and how a plan is
drawn and shrunk. A failing seed is shrunk by leaving out one fault after another (`without`) while it still fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from swarmgate.lab.errors import LabError, at_least

FaultKind = Literal[
    "latency_spike",
    "loss",
    "reset",
    "stall",
    "brownout",
    "reorder",
    "stale",
    "lie",
    "revision",
    "client_leaves",
    "gate_crash",
    "gate_pause",
    "gate_stop",
    "power_loss",
    "disk_full",
    "disk_error",
    "disk_lie",
    "store_cut",
    "store_lag",
    "store_frozen",
    "store_down",
    "store_flush",
    "store_failover",
    "store_evict",
    "clock_step",
]
Place = Literal["target", "gate", "store", "agents"]

HOUR_MS = 3_600_000
ALONE: tuple[Place, ...] = ("store", "agents")  # places of which there is one, named as its kind


class FaultRule(NamedTuple):
    """Where a kind strikes, whether it lasts (`for_ms` > 0) or is an instant, and the range of its `amount`."""

    place: Place
    lasts: bool
    least: int
    most: int
    meaning: str


RULES: dict[FaultKind, FaultRule] = {
    "latency_spike": FaultRule("target", True, 1, 600_000, "`amount` ms more before each first byte"),
    "loss": FaultRule("target", True, 1, 1000, "`amount` per mille of requests or answers vanish without a sign"),
    "reset": FaultRule("target", True, 1, 1000, "`amount` per mille of connections break, before or in the answer"),
    "stall": FaultRule("target", True, 0, 0, "no byte moves either way; at the end all of them arrive at once"),
    "brownout": FaultRule("target", True, 1, 1000, "`amount` per mille of requests are answered 503"),
    "reorder": FaultRule(
        "target", True, 1, 10_000, "each message takes up to `amount` ms longer, so that others overtake"
    ),
    "stale": FaultRule("target", True, 1, 1000, "`amount` per mille of kept connections prove closed when used again"),
    "lie": FaultRule(
        "target", True, 1, 1000, "`amount` per mille of answers lie: absurd quotas, sudden 429s, absurd waits"
    ),
    "revision": FaultRule(
        "target", False, 10, 100, "the operator sets its limits to `amount` per cent of the compiled ones"
    ),
    "client_leaves": FaultRule("agents", True, 1, 1000, "`amount` per mille of callers leave, each at any instant"),
    "gate_crash": FaultRule("gate", True, 0, 0, "kill -9: memory and connections are gone; restart after `for_ms`"),
    "gate_pause": FaultRule("gate", True, 0, 0, "SIGSTOP: nothing runs, bytes and timers pile up; SIGCONT at the end"),
    "gate_stop": FaultRule(
        "gate",
        True,
        0,
        16,
        "SIGTERM: open calls are given up, budgets saved; restart after `for_ms`; power is lost at disk write `amount` of it",
    ),
    "power_loss": FaultRule(
        "gate", True, 0, 0, "the machine: as kill -9, and of what was not synced any part is lost; back after `for_ms`"
    ),
    "disk_full": FaultRule("gate", True, 0, 0, "no file gets more room (ENOSPC)"),
    "disk_error": FaultRule("gate", True, 1, 1000, "`amount` per mille of reads, writes and syncs fail (EIO)"),
    "disk_lie": FaultRule("gate", True, 0, 0, "syncs that were not done are reported as done"),
    "store_cut": FaultRule(
        "gate", True, 0, 0, "this gate and the store do not reach each other; bytes arrive at the end"
    ),
    "store_lag": FaultRule("store", True, 1, 60_000, "`amount` ms more before each reply of the store"),
    "store_frozen": FaultRule("store", True, 0, 0, "the store takes commands but replies only at the end"),
    "store_down": FaultRule("store", True, 0, 0, "connections to the store are refused; its data survive"),
    "store_flush": FaultRule("store", False, 0, 0, "every key is gone"),
    "store_failover": FaultRule("store", False, 1, 60_000, "a replica takes over; it lacks the last `amount` ms"),
    "store_evict": FaultRule("store", False, 1, 1000, "one budget is gone, the one at `amount` per mille of all"),
    "clock_step": FaultRule("store", False, -HOUR_MS, HOUR_MS, "the store's clock jumps by `amount` ms, never 0"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """
    One fault: `kind` strikes at `at_ms` of virtual time and is over at `at_ms + for_ms`.

    `where` is the name of a target, `gate-1` ... `gate-n`, `store` or `agents`. LabError if the kind has no such amount or length.
    """

    kind: FaultKind
    at_ms: int
    for_ms: int = 0
    where: str = "store"
    amount: int = 0

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # in scenario files a misspelt key is an error

    def __post_init__(self) -> None:
        rule = RULES[self.kind]
        at_least("at_ms", self.at_ms, 0)
        if rule.lasts:
            at_least("for_ms", self.for_ms, 1)
        elif self.for_ms:
            raise LabError("for_ms", f"{self.kind} is an instant: leave it out")
        if not rule.least <= self.amount <= rule.most or (self.kind == "clock_step" and not self.amount):
            allowed = f"{rule.least} to {rule.most}" if rule.most else "only 0"
            raise LabError("amount", f"{self.kind} takes {allowed}, not {self.amount}: {rule.meaning}")
        if self.where != rule.place if rule.place in ALONE else self.where in ALONE:
            raise LabError("where", f"{self.kind} strikes a {rule.place}, not {self.where!r}")

    @property
    def jumps_forward(self) -> bool:
        """Whether the store's clock steps over time that has not passed."""
        return self.kind == "clock_step" and self.amount > 0

    @property
    def ends_ms(self) -> int:
        """The instant from which the fault no longer acts."""
        return self.at_ms + self.for_ms


Plan = tuple[Fault, ...]


def found_out(plan: Sequence[Fault]) -> int:
    """How many lies of disks are found out, by a loss of power at the same gate that comes after they began."""
    losses = [one for one in plan if one.kind == "power_loss" or (one.kind == "gate_stop" and one.amount)]
    return sum(
        any(loss.where == lie.where and loss.ends_ms >= lie.at_ms for loss in losses)
        for lie in plan
        if lie.kind == "disk_lie"
    )


def gate_names(gates: int) -> tuple[str, ...]:
    """The names by which faults know the gates: gate-1 ... gate-n."""
    return tuple(f"gate-{number}" for number in range(1, gates + 1))


def random_plan(
    rng: Random,
    horizon_ms: int,
    kinds: Sequence[FaultKind] = get_args(FaultKind),
    *,
    targets: Sequence[str] = (),
    gates: int = 1,
    most: int = 6,
) -> Plan:
    """
    Between 1 and `most` draws in order of time, all over by `horizon_ms`; kinds that have no place here are left out.

    Lengths run from ms to a fifth of the horizon, as often short as long; amounts likewise over their range.
    """
    at_least("horizon_ms", horizon_ms, 10)
    places = places_of(targets, gates)
    possible = [kind for kind in kinds if places[RULES[kind].place]]
    if not possible:
        raise LabError("kinds", "none of them has a place to strike: name targets or gates")
    faults: list[Fault] = []
    for _ in range(rng.randint(1, most)):
        kind = rng.choice(possible)
        where = places[RULES[kind].place]
        if kind == "store_cut":
            faults += _swizzle(rng, horizon_ms, where)
        else:
            faults.append(_drawn(rng, horizon_ms, kind, rng.choice(where)))
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def places_of(targets: Sequence[str], gates: int) -> dict[Place, Sequence[str]]:
    """The names of every place that a fault may strike."""
    return {"target": targets, "gate": gate_names(gates), **{place: (place,) for place in ALONE}}


def _drawn(rng: Random, horizon_ms: int, kind: FaultKind, where: str) -> Fault:
    rule = RULES[kind]
    for_ms = _any_scale(rng, 1, horizon_ms // 5) if rule.lasts else 0
    return Fault(kind, rng.randint(0, horizon_ms - for_ms), for_ms, where, _amount(rng, rule))


def _swizzle(rng: Random, horizon_ms: int, gates: Sequence[str]) -> list[Fault]:
    """Some gates are cut off one after another and come back in any order (reliability 3)."""
    cut = rng.sample(list(gates), rng.randint(1, len(gates)))
    first = _drawn(rng, horizon_ms, "store_cut", cut[0])
    later = [(rng.randint(first.at_ms, first.ends_ms), _any_scale(rng, 1, horizon_ms // 5)) for _ in cut[1:]]
    rest = [
        Fault("store_cut", at_ms, max(1, min(for_ms, horizon_ms - at_ms)), gate)
        for gate, (at_ms, for_ms) in zip(cut[1:], later, strict=True)
        if at_ms < horizon_ms
    ]
    return [first, *rest]


def without(plan: Plan, index: int) -> Plan:
    """The plan less its fault number `index` (from 0); LabError if there is none."""
    if not 0 <= index < len(plan):
        raise LabError("index", f"{index} is not within the {len(plan)} faults of the plan")
    return plan[:index] + plan[index + 1 :]


def _amount(rng: Random, rule: FaultRule) -> int:
    if not rule.most:
        return 0
    amount = _any_scale(rng, max(rule.least, 1), rule.most)
    if rule.least > 0:
        return amount
    return rng.choice((-amount, amount) if rule.least else (0, amount))


def _any_scale(rng: Random, least: int, most: int) -> int:
    """An integer of a random order of magnitude: small ones must come as often as large ones to find edges."""
    return rng.randint(least, min(most, least * 2 ** rng.randint(1, max(most // least, 1).bit_length())))
