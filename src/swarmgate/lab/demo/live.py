"""
What is seen while the demo runs: agents by state, QPS and TPM, what is left at each key, deferrals, waits.

Its words are those of the table at the end (table.py).
"""

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.plan import DemoPlan
from swarmgate.lab.demo.run import CALLS, ArmSetup, Places
from swarmgate.lab.demo.table import in_time
from swarmgate.lab.demo.tail import Tail

TITLES = {
    "gate": "through the gate",
    "direct": "each agent by itself, backing off locally",
    "one budget": "one global budget for everything",
    "one key": "through the gate with one key",
}
QUIET_S = 5.0  # where nobody looks at a terminal, a line so often


class LiveScreen:
    """A `Screen` on a console."""

    def __init__(self, console: Console, plan: DemoPlan) -> None:
        self._console = console
        self._plan = plan
        self._live = Live(console=console, refresh_per_second=2, transient=True)
        self._tail: Tail | None = None
        self._setup: ArmSetup | None = None
        self._said_s = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def arm(self, setup: ArmSetup, places: Places) -> None:
        """An arm begins."""
        self._setup, self._tail, self._said_s = setup, Tail(places.witness, places.folder / CALLS), 0.0
        where = f", gate at http://127.0.0.1:{places.gate_port}" if places.gate_port else ""
        told = f"[bold]{TITLES[setup.name]}[/], {setup.calm_s + setup.seconds} s: {self._plan.agents:,} agents{where}"
        self._console.print(told, highlight=False)

    def progress(self, progress: Progress) -> None:
        """Draw what is known now."""
        assert self._tail is not None
        assert self._setup is not None
        self._tail.read()
        if self._console.is_terminal:
            self._live.update(self._picture(progress, self._tail, self._setup))
        elif progress.t_s >= self._said_s + QUIET_S:
            self._said_s = progress.t_s
            self._console.print(_line(progress), highlight=False)

    def _picture(self, now: Progress, tail: "Tail", setup: ArmSetup) -> Group:
        counts, states = now.counts, now.states
        busy = sum(states.values())
        rows = Table.grid(padding=(0, 2))
        rows.add_row("agents", _states(states, max(0, self._plan.agents - busy)))
        rows.add_row("model calls answered", f"{now.qps:,.0f}/s")
        rows.add_row("tokens answered", f"{now.tpm / 1e6:,.1f} M/min")
        waits = ", ".join(f"{rank} {in_time(ms)}" for rank, ms in tail.waits().items())
        rows.add_row("waits, P99", waits or "-")
        rows.add_row("deferrals", f"{counts.get('deferrals', 0):,}")
        refused = counts.get("refused", 0)
        rows.add_row("refusals agents saw", Text(f"{refused:,}", "red" if refused else "green"))
        rows.add_row(_keys(self._plan), _bars(tail.left(self._plan)))
        rows.add_row("arrivals at hosts", tail.hosts() or "-")
        title = f"{TITLES[setup.name]}: {_phase(now, setup)}"
        return Group(Text(title, "bold"), rows)


def _phase(now: Progress, setup: ArmSetup) -> str:
    if not now.zero_ms:
        return "agents connect"
    level = "below capacity" if now.t_s < setup.calm_s else "above capacity"
    return f"{now.t_s:.0f} of {setup.calm_s + setup.seconds} s, {level}"


def _states(states: dict[str, int], thinking: int) -> str:
    return ", ".join([*(f"{count:,} {name}" for name, count in sorted(states.items())), f"{thinking:,} thinking"])


def _keys(plan: DemoPlan) -> str:
    return "left at its key" if plan.keys == 1 else f"left at {plan.keys} keys"


def _bars(left: list[float]) -> Text:
    """One column a key: how much of its limit is left, in eighths."""
    bars = "".join("▁▂▃▄▅▆▇█"[min(7, int(share * 8))] for share in left)
    return Text(f"{bars}  {min(left) * 100:.0f} % to {max(left) * 100:.0f} % of the limit")


def _line(now: Progress) -> str:
    counts = now.counts
    return (
        f"  {now.t_s:2.0f} s: {now.qps:,.0f} calls/s, {now.tpm / 1e6:,.1f} M tokens/min answered; "
        f"{counts.get('deferrals', 0):,} deferrals, {counts.get('refused', 0):,} refusals"
    )
