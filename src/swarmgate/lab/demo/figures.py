"""
What an arm came to, computed from two files that know nothing of each other: the agents' rows and the witness's.

Goodput counts what agents got, waits end at the target's door (the witness's first row of a call that passed), and whether
a limit was kept is asked of the witness alone. The first window is left out of rates and waits: it fills what is empty.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from swarmgate.lab.agents.records import CallRow, Fate
from swarmgate.lab.demo.plan import WINDOW_MS, DemoPlan
from swarmgate.lab.scenario import ConcurrencyLimit
from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import Left, Seen, witnesses

CLASSES = ("P0", "P1", "P2")


class Waits(NamedTuple):
    """Ms from a wish to the target's door, of calls that got there."""

    calls: int
    p50_ms: int
    p99_ms: int


class ArmFigures(NamedTuple):
    """
    One arm in numbers.

    Rates are per second over the measured time; `compiled_share` is goodput in tokens against what the gate's budgets
    allow for all keys. `over_limit` counts arrivals beyond a published limit by place; `refused` are the 403s, 429s and
    503s that agents saw of targets. `seconds` is the time after the first window.
    """

    name: str
    keys: int
    seconds: float
    wanted_calls: int
    wanted_qps: float
    wanted_tpm: float
    answered_qps: float
    answered_tpm: float
    compiled_share: float
    answered: int
    gave_up: int
    failed: int
    open: int
    refused: int
    deferrals: int
    deferral_share: float
    sends: int
    over_limit: dict[str, int]
    waits: dict[str, Waits]
    reuse: float
    web_reuse: float
    cost_micro: int
    wasted_sends: int
    series: dict[str, list[float]]
    hosts: int
    fetched: int


def figures(  # noqa: PLR0913 - what an arm consists of
    name: str,
    plan: DemoPlan,
    rows: Sequence[CallRow],
    seen: Sequence[Seen | Left],
    *,
    began_ms: int,
    seconds: float,
    keys: int,
) -> ArmFigures:
    """The figures of one arm that began at `began_ms` of the machine's clock."""
    end_ms = began_ms + round(seconds * 1_000)
    from_ms = began_ms + min(WINDOW_MS, round(seconds * 1_000 / 3))
    measured_s = (end_ms - from_ms) / 1_000
    models = [row for row in rows if row.kind != "fetch"]
    good = [row for row in models if row.fate == Fate.ANSWERED]
    timely = [row for row in good if from_ms <= row.end_ms < end_ms]
    wished = [row for row in models if from_ms <= row.wanted_ms < end_ms]
    tokens = sum(row.prompt_tokens + row.output_tokens for row in timely)
    sends = sum(row.sends for row in rows)
    deferrals = sum(row.deferrals for row in rows)
    arrivals = [row for row in seen if isinstance(row, Seen)]
    compiled_per_s = plan.tokens_compiled * plan.keys * 1_000 / WINDOW_MS
    return ArmFigures(
        name=name,
        keys=keys,
        seconds=measured_s,
        wanted_calls=len(rows),
        wanted_qps=len(wished) / measured_s,
        wanted_tpm=sum(row.prompt_tokens for row in wished) * 60 / measured_s,
        answered_qps=len(timely) / measured_s,
        answered_tpm=tokens * 60 / measured_s,
        compiled_share=tokens / measured_s / compiled_per_s,
        answered=len([row for row in rows if row.fate == Fate.ANSWERED]),
        gave_up=sum(row.fate == Fate.GAVE_UP for row in rows),
        failed=sum(row.fate == Fate.FAILED for row in rows),
        open=sum(row.fate == Fate.OPEN for row in rows),
        refused=sum(row.refused for row in rows),
        deferrals=deferrals,
        deferral_share=deferrals / max(1, sends),
        sends=sends,
        over_limit=_over_limit(plan.stand_ins(), seen),
        waits=_waits(models, arrivals, from_ms, end_ms),
        reuse=_reuse([row for row in arrivals if row.place != WEB]),
        web_reuse=_reuse([row for row in arrivals if row.place == WEB]),
        cost_micro=0,
        wasted_sends=sum(row.status != 200 for row in arrivals),
        series=_series(good, arrivals, began_ms, end_ms),
        hosts=len({row.scope for row in arrivals if row.place == WEB}),
        fetched=sum(row.kind == "fetch" and row.fate == Fate.ANSWERED for row in rows),
    )


def _over_limit(plan: StandInPlan, seen: Sequence[Seen | Left]) -> dict[str, int]:
    """Arrivals beyond a published limit: of the provider by scope, of web hosts by name; only where there are any."""
    found: dict[str, int] = {}
    providers = {one.name: one for one in plan.providers}
    for (place, scope), witness in witnesses(iter(seen)).items():
        if place in providers:
            number = int(scope.removeprefix("scope-")) - 1
            limits = providers[place].limits_of(number)
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


def _waits(rows: Sequence[CallRow], arrivals: Sequence[Seen], from_ms: int, end_ms: int) -> dict[str, Waits]:
    passed = {row.call: row.t_ms for row in arrivals if row.status == 200}
    by_class: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if from_ms <= row.wanted_ms < end_ms and row.call in passed:
            by_class[row.priority].append(max(0, passed[row.call] - row.wanted_ms))
    return {rank: _quantiles(sorted(by_class[rank])) for rank in CLASSES if by_class[rank]}


def _quantiles(waits: list[int]) -> Waits:
    return Waits(len(waits), waits[len(waits) // 2], waits[min(len(waits) - 1, len(waits) * 99 // 100)])


def _reuse(arrivals: Sequence[Seen]) -> float:
    """The share of requests at the targets that came on a connection which had carried one before."""
    return 1 - len({row.connection for row in arrivals}) / len(arrivals) if arrivals else 0.0


def _series(good: Sequence[CallRow], arrivals: Sequence[Seen], began_ms: int, end_ms: int) -> dict[str, list[float]]:
    """Per second from the beginning: tokens answered (as TPM), refusals at targets."""
    length = max(1, (end_ms - began_ms) // 1_000)
    tpm, refusals = [0.0] * length, [0.0] * length
    for row in good:
        second = (row.end_ms - began_ms) // 1_000
        if 0 <= second < length:
            tpm[second] += (row.prompt_tokens + row.output_tokens) * 60
    for seen in arrivals:
        second = (seen.t_ms - began_ms) // 1_000
        if 0 <= second < length and seen.status != 200:
            refusals[second] += 1
    return {"tpm": tpm, "refusals": refusals}
