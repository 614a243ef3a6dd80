"""The demo's result in words: one column an arm, the promises with their verdicts, and all of it as JSON."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table

from swarmgate.lab.demo.figures import CLASSES, ArmFigures, Lines, Waits
from swarmgate.lab.demo.plan import CALM_PERCENT, OVERLOAD_PERCENT, WHOLE_AGENTS, WHOLE_S, WINDOW_MS, DemoPlan

GOODPUT = 0.98
REUSE = 0.95
WAIT_MS = 50
SPANS = (
    "Arms were played for unequal times: compare rates and shares. Rates, what budgets allow, and waits are of an arm's end, "
    "without calm and first window; counts, deferrals and connections are of all of it."
)
Row = tuple[str, Callable[[ArmFigures], str]]


class Promise(NamedTuple):
    """
    What the demo is to show, what it came to, and whether that is enough.

    `always`: it holds on any machine and in a run of any length; the others are figures in time.
    """

    text: str
    came_to: str
    kept: bool
    always: bool = False


def in_time(ms: int) -> str:
    """Milliseconds as they are read: `44 ms`, `7.4 s`."""
    return f"{ms:,} ms" if ms < 1_000 else f"{ms / 1_000:,.1f} s"


def in_percent(share: float) -> str:
    """A share as it is read: `98.5 %`."""
    return f"{share * 100:.1f} %"


def _wait(rank: str, share: Literal["p50_ms", "p99_ms"]) -> Callable[[ArmFigures], str]:
    def cell(arm: ArmFigures) -> str:
        waits = arm.waits.get(rank)
        return "none served" if waits is None else in_time(getattr(waits, share))

    return cell


def _heartbeats(lines: Lines | None) -> str:
    """Where nobody listens, none are sent."""
    return "-" if lines is None or not lines.heartbeats else f"{lines.heartbeats - lines.lost:,}"


def _places(*, keys: bool) -> Callable[[ArmFigures], str]:
    """How many keys, or hosts, were over: a provider's scope is `provider/scope`."""
    return lambda arm: f"{sum(('/' in place) == keys for place in arm.over_limit):,}"


ROWS: tuple[Row, ...] = (
    ("played, for counts", lambda arm: f"{arm.played_s:,.0f} s"),
    ("measured, for rates", lambda arm: f"{arm.measured_s:,.0f} s"),
    ("model calls wanted", lambda arm: f"{arm.wanted_qps:,.0f}/s"),
    ("tokens wanted", lambda arm: f"{arm.wanted_tpm / 1e6:,.1f} M/min"),
    ("model calls answered", lambda arm: f"{arm.qps:,.0f}/s"),
    ("tokens answered", lambda arm: f"{arm.tpm / 1e6:,.1f} M/min"),
    ("of what budgets allow", lambda arm: in_percent(arm.compiled_share)),
    ("refusals agents saw", lambda arm: f"{arm.refused:,}"),
    ("arrivals over a limit", lambda arm: f"{sum(arm.over_limit.values()):,}"),
    ("  at how many keys", _places(keys=True)),
    ("  at how many hosts", _places(keys=False)),
    ("calls given up", lambda arm: f"{arm.fates['gave_up'] + arm.fates['failed']:,}"),
    *((f"{rank} waits, median", _wait(rank, "p50_ms")) for rank in CLASSES),
    *((f"{rank} waits, P99", _wait(rank, "p99_ms")) for rank in CLASSES),
    ("deferrals per send", lambda arm: in_percent(arm.deferral_share)),
    ("connections reused", lambda arm: in_percent(arm.reuse)),
    ("agents always connected", lambda arm: "-" if arm.lines is None else f"{arm.lines.kept:,}"),
    ("heartbeats answered", lambda arm: _heartbeats(arm.lines)),
    ("pages fetched", lambda arm: f"{arm.fetched:,}"),
    ("bill per M tokens", lambda arm: f"{arm.cost_micro / max(1, arm.answered_tokens):,.3f} USD"),
)


def as_table(plan: DemoPlan, found: Sequence[ArmFigures]) -> Table:
    """One column an arm."""
    keys = "one key allows" if plan.keys == 1 else f"{plan.keys} keys allow"
    title = f"{plan.agents:,} agents want {OVERLOAD_PERCENT} % of what the budgets of {keys}"
    caption = "One trace for all arms.\nLimits and waits are told by the witnesses at the targets."
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for arm in found:
        table.add_column(arm.name, justify="right")
    for label, cell in ROWS:
        table.add_row(label, *map(cell, found))
    return table


def as_words(found: Sequence[ArmFigures]) -> str:
    """What the columns mean: what agents without the gate paid for, and who waits behind it, on purpose."""
    gate = found[0]
    lines = [SPANS] if len(found) > 1 else []
    lines += [
        f"[bold]{arm.name}[/]: {arm.refused:,} refusals, {sum(arm.over_limit.values()):,} arrivals over a limit, "
        f"{arm.fates['gave_up'] + arm.fates['failed']:,} calls given up. Its waits are those of the calls that were answered."
        for arm in found[1:]
        if arm.refused or arm.over_limit
    ]
    late = gate.waits.get("P2")
    if late is not None:
        lines.append(
            f"[bold]{gate.name}[/]: no limit is broken, so somebody waits: P2 (cleaning), {in_time(late.p50_ms)} at the median."
        )
    lines.append(
        "P0 are hypotheses, P1 literature and protocols, P2 cleaning. Deferred: told when to come back, and not sent."
    )
    return "\n".join(lines)


def promises(plan: DemoPlan, found: Sequence[ArmFigures]) -> list[Promise]:
    """What the gate's arm was to show."""
    gate, over = found[0], sum(found[0].over_limit.values())
    out = [
        Promise(
            "goodput >= 98 % of what budgets allow", in_percent(gate.compiled_share), gate.compiled_share >= GOODPUT
        ),
        Promise("no arrival over a published limit", f"{over:,}", not over, always=True),
        Promise("no agent sees a target's refusal", f"{gate.refused:,}", not gate.refused, always=True),
    ]
    if gate.calm is not None:
        at_rest = gate.calm.waits.get("P0", Waits(0, 0, 0)).p50_ms
        more = gate.waits.get("P0", Waits(0, 0, 10**9)).p99_ms - at_rest
        text = f"P0's P99 wait <= {WAIT_MS} ms above unloaded's {at_rest} ms"
        out.append(Promise(text, f"{more:+,} ms", more <= WAIT_MS))
        text = f"no deferral in its first {plan.lengths.calm} s, at {CALM_PERCENT} % load"
        out.append(Promise(text, f"{gate.calm.deferred:,} of {gate.calm.calls:,} calls", not gate.calm.deferred))
    out.append(Promise("connections reused >= 95 %", in_percent(gate.reuse), gate.reuse >= REUSE))
    if gate.lines is not None:
        kept, agents, heartbeats, lost = gate.lines
        came_to = f"{kept:,} of {agents:,}, {lost:,} lost"
        good = kept == agents and bool(heartbeats) and not lost
        out.append(Promise("agents stay connected, with heartbeats", came_to, good))
    single = next((arm for arm in found if arm.keys == 1 < plan.keys), None)
    if single is not None:
        times = gate.tpm / max(1.0, single.tpm)
        text = f"{plan.keys} keys >= {plan.keys * 9 // 10} times one key"
        out.append(Promise(text, f"{times:.1f} times", times >= plan.keys * 9 // 10))
    return out


def broken(plan: DemoPlan, found: Sequence[ArmFigures]) -> list[Promise]:
    """Promises that were not kept; of a run that is too small for figures in time, only those that always hold."""
    return [one for one in promises(plan, found) if not one.kept and (one.always or plan.is_whole)]


def verdict(plan: DemoPlan, found: Sequence[ArmFigures]) -> str:
    """What a "no" means: of the gate, of the machine, or of nothing; empty if there is none."""
    if all(promise.kept for promise in promises(plan, found)):
        return ""
    if not broken(plan, found):
        return f"Fewer than {WHOLE_AGENTS:,} agents, or {WHOLE_S} s, cannot show every promise; the limits were kept."
    running = found[0].machine
    return "" if running is None else running.verdict()


def as_promises(told: Sequence[Promise]) -> Table:
    """The promises, one a line."""
    table = Table(title="What the gate was to show", show_header=False, box=SIMPLE_HEAD, pad_edge=False)
    for promise in told:
        mark = "[green]yes[/]" if promise.kept else "[red]no[/]"
        table.add_row(promise.text, promise.came_to, mark)
    return table


def as_json(plan: DemoPlan, found: Sequence[ArmFigures]) -> dict[str, Any]:
    """All of it, for scripts."""
    told = promises(plan, found)
    world = plan._asdict() | {
        "lengths": plan.lengths._asdict(),
        "window_ms": WINDOW_MS,
        "compiled_tpm": plan.tokens_compiled * plan.keys * 60_000 // WINDOW_MS,
        "offered_tpm": plan.offered_tokens * 60_000 // WINDOW_MS,
    }
    return {
        "plan": world,
        "arms": [_arm(one) for one in found],
        "promises": [promise._asdict() for promise in told],
        "kept": not broken(plan, found),
        "verdict": verdict(plan, found),
    }


def _arm(arm: ArmFigures) -> dict[str, Any]:
    calm = None if arm.calm is None else arm.calm._asdict() | {"waits": _as_dicts(arm.calm.waits)}
    rest = {"lines": arm.lines, "machine": arm.machine}
    told = {name: None if one is None else one._asdict() for name, one in rest.items()}
    return arm._asdict() | {"waits": _as_dicts(arm.waits), "calm": calm} | told


def _as_dicts(waits: dict[str, Waits]) -> dict[str, dict[str, int]]:
    return {rank: one._asdict() for rank, one in waits.items()}
