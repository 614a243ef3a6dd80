"""
What an arm came to, computed from two files that know nothing of each other: the agents' rows and the witness's.

Goodput counts what agents got, waits end at the target's door (the witness's row of the send that passed), and whether a
limit was kept is asked of the witness alone. The first window is left out of rates and waits: it fills what is empty.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from swarmgate.core.price import Used
from swarmgate.facts.prices import cost_of
from swarmgate.lab.agents.records import CallRow, Fate
from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.machine import Machine
from swarmgate.lab.demo.plan import LATENCY, WINDOW_MS, DemoPlan, settled_ms
from swarmgate.lab.scenario import ConcurrencyLimit
from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import Left, Seen, witnesses

CLASSES = ("P0", "P1", "P2")


class Evidence(NamedTuple):
    """What was written down about an arm: by its agents, and by the witness at the targets."""

    calls: Sequence[CallRow]
    seen: Sequence[Seen | Left]


class Times(NamedTuple):
    """An arm on the machine's clock: its first wish, the end of its calm, what is measured from, its end."""

    zero_ms: int
    rush_ms: int
    from_ms: int
    end_ms: int

    @classmethod
    def of(cls, zero_ms: int, calm_s: float, seconds: float) -> Self:
        """The first window after the calm is not measured."""
        rush_ms = zero_ms + round(calm_s * 1_000)
        return cls(zero_ms, rush_ms, rush_ms + settled_ms(seconds), rush_ms + round(seconds * 1_000))

    @property
    def seconds(self) -> float:
        """How long is measured."""
        return (self.end_ms - self.from_ms) / 1_000


class Waits(NamedTuple):
    """Ms from a wish to the target's door, of calls that got there."""

    calls: int
    p50_ms: int
    p99_ms: int


class Calm(NamedTuple):
    """What happened below capacity; `deferred` counts deferrals of calls that were wanted then."""

    calls: int
    deferred: int
    waits: dict[str, Waits]


class Lines(NamedTuple):
    """Connections of an arm's agents: how many always had one open, of how many; heartbeats, and those without an answer."""

    kept: int
    agents: int
    heartbeats: int
    lost: int


class ArmFigures(NamedTuple):
    """
    One arm in numbers.

    `played_s` is how long all of it took; rates, shares of budgets and waits are those of `measured_s`, its end. QPS and TPM are those of model calls in the measured time, wanted and answered; `compiled_share` is the goodput in
    tokens against what the gate's budgets allow for all keys. `over_limit` counts arrivals beyond a published limit, by
    key and host; `refused` are the 403s, 429s and 503s of targets that agents saw; `series` are values per second.
    `lines` and `machine` are known of an arm that was run.
    """

    name: str
    keys: int
    played_s: float
    measured_s: float
    wanted_qps: float
    wanted_tpm: float
    qps: float
    tpm: float
    compiled_share: float
    fates: dict[str, int]
    refused: int
    sends: int
    deferrals: int
    deferral_share: float
    over_limit: dict[str, int]
    waits: dict[str, Waits]
    calm: Calm | None
    reuse: float
    connections: int
    cost_micro: int
    answered_tokens: int
    fetched: int
    hosts: int
    series: dict[str, list[float]]
    lines: Lines | None = None
    machine: Machine | None = None


def lines_of(told: Sequence[Progress]) -> Lines:
    """The fewest agents that were connected at any time after the first window, and their heartbeats."""
    last = told[-1]
    heartbeats, lost = last.counts.get("heartbeats", 0), last.counts.get("lost heartbeats", 0)
    kept = min(one.connected for one in told if one.t_s * 1_000 >= min(last.t_s * 1_000, settled_ms(last.t_s)))
    return Lines(kept, last.agents, heartbeats, lost)


def figures(name: str, plan: DemoPlan, evidence: Evidence, times: Times, *, keys: int) -> ArmFigures:
    """The figures of one arm."""
    rows, seen = evidence
    models = [row for row in rows if row.kind != "fetch"]
    good = [row for row in models if row.fate == Fate.ANSWERED]
    timely = [row for row in good if times.from_ms <= row.end_ms < times.end_ms]
    wished = [row for row in models if times.from_ms <= row.wanted_ms < times.end_ms]
    tokens = sum(row.prompt_tokens + row.output_tokens for row in timely)
    wanted = sum(row.prompt_tokens + row.wanted_output for row in wished)
    arrivals = [row for row in seen if isinstance(row, Seen)]
    at_models = [row for row in arrivals if row.place != WEB]
    sends, deferrals = sum(row.sends for row in rows), sum(row.deferrals for row in rows)
    doors = {row.call: row.t_ms for row in arrivals if row.status == 200}
    compiled_per_s = plan.tokens_compiled * plan.keys * 1_000 / WINDOW_MS
    return ArmFigures(
        name=name,
        keys=keys,
        played_s=(times.end_ms - times.zero_ms) / 1_000,
        measured_s=times.seconds,
        wanted_qps=len(wished) / times.seconds,
        wanted_tpm=wanted * 60 / times.seconds,
        qps=len(timely) / times.seconds,
        tpm=tokens * 60 / times.seconds,
        compiled_share=tokens / times.seconds / compiled_per_s,
        fates={fate.value: sum(row.fate == fate for row in rows) for fate in Fate},
        refused=sum(row.refused for row in rows),
        sends=sends,
        deferrals=deferrals,
        deferral_share=deferrals / max(1, sends),
        over_limit=_over_limit(plan.stand_ins(), seen),
        waits=waits_of(wished, doors),
        calm=_calm(models, doors, times) if times.rush_ms > times.zero_ms else None,
        reuse=1 - len({row.connection for row in at_models}) / max(1, len(at_models)),
        connections=len({row.connection for row in arrivals}),
        cost_micro=_cost_micro(seen),
        answered_tokens=sum(row.prompt_tokens + row.output_tokens for row in good),
        fetched=sum(row.kind == "fetch" and row.fate == Fate.ANSWERED for row in rows),
        hosts=len({row.scope for row in arrivals if row.place == WEB}),
        series=_series(good, arrivals, times),
    )


def _over_limit(plan: StandInPlan, seen: Sequence[Seen | Left]) -> dict[str, int]:
    """Arrivals beyond a published limit in any window, by `provider/scope` or host; only where there are any."""
    found: dict[str, int] = {}
    providers = {one.name: one for one in plan.providers}
    for (place, scope), witness in witnesses(iter(seen)).items():
        if place in providers:
            limits = providers[place].limits_of(int(scope.removeprefix("scope-")) - 1)
        else:
            limits = plan.host(scope).limits
        over = sum(
            witness.refused
            if isinstance(limit, ConcurrencyLimit)
            else witness.over_limit(limit.limit, limit.window_ms, limit.unit)
            for limit in limits
        )
        if over:
            found[scope if place == WEB else f"{place}/{scope}"] = over
    return found


def waits_of(rows: Iterable[CallRow], doors: dict[str, int]) -> dict[str, Waits]:
    """The waits by class; `doors` are the instants at which calls passed at their targets."""
    by_class: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.call in doors:
            by_class[row.priority].append(max(0, doors[row.call] - row.wanted_ms))
    return {rank: _quantiles(sorted(by_class[rank])) for rank in CLASSES if by_class[rank]}


def _quantiles(waits: list[int]) -> Waits:
    return Waits(len(waits), waits[len(waits) // 2], waits[min(len(waits) - 1, len(waits) * 99 // 100)])


def _calm(rows: Sequence[CallRow], doors: dict[str, int], times: Times) -> Calm:
    calm = [row for row in rows if row.wanted_ms < times.rush_ms]
    return Calm(len(calm), sum(row.deferrals for row in calm), waits_of(calm, doors))


def _cost_micro(seen: Sequence[Seen | Left]) -> int:
    """What the provider bills for whatever passed, answered in time or not."""
    prompts = sum(row.tokens for row in seen if isinstance(row, Seen) and row.status == 200)
    outputs = sum(row.tokens for row in seen if isinstance(row, Left))
    cost = cost_of(LATENCY, "openai", Used(prompts, outputs))
    assert cost is not None  # the demo's model is one that the list knows
    return cost


def _series(good: Sequence[CallRow], arrivals: Sequence[Seen], times: Times) -> dict[str, list[float]]:
    """Per second from the first wish: tokens answered (as TPM), refusals at targets."""
    length = max(1, (times.end_ms - times.zero_ms) // 1_000)
    tpm, refusals = [0.0] * length, [0.0] * length
    for row in good:
        second = (row.end_ms - times.zero_ms) // 1_000
        if 0 <= second < length:
            tpm[second] += (row.prompt_tokens + row.output_tokens) * 60
    for seen in arrivals:
        second = (seen.t_ms - times.zero_ms) // 1_000
        if 0 <= second < length and seen.status != 200:
            refusals[second] += 1
    return {"tpm": tpm, "refusals": refusals}
