"""What is seen while the demo runs: agents by state, QPS and TPM, what is left at each key, deferrals, waits."""

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.plan import WINDOW_MS, DemoPlan
from swarmgate.lab.demo.run import ArmSetup, Places
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import Seen, rows_of

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
        self._setup, self._tail, self._said_s = setup, Tail(places.witness), 0.0
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
        rows.add_row("answered", f"{now.qps:,.0f} calls/s, {now.tpm / 1e6:,.1f} M tokens/min")
        waits = ", ".join(f"{rank} {ms:,} ms" for rank, ms in now.p99_ms.items())
        rows.add_row("first byte, P99", waits or "-")
        rows.add_row("deferred", f"{counts.get('deferrals', 0):,}")
        rows.add_row(
            "refused by targets", Text(f"{counts.get('refused', 0):,}", "red" if counts.get("refused") else "green")
        )
        rows.add_row(f"left at {self._plan.keys} keys", tail.bars(self._plan))
        rows.add_row("busiest hosts", tail.hosts() or "-")
        title = f"{TITLES[setup.name]}: {_phase(now, setup)}"
        return Group(Text(title, "bold"), rows)


class Tail:
    """The witness's file as it grows: tokens of the last window by key, arrivals by host."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._recent: deque[tuple[int, str, int]] = deque()
        self._tokens: dict[str, int] = {}
        self._hosts: dict[str, int] = {}

    def read(self) -> None:
        """What was appended since the last time; an unfinished line waits."""
        with self._path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        for row in rows_of(whole.splitlines(), self._path):
            if isinstance(row, Seen) and row.place == WEB:
                self._hosts[row.scope] = self._hosts.get(row.scope, 0) + 1
            elif row.place != WEB:
                self._recent.append((row.t_ms, row.scope, row.tokens))
                self._tokens[row.scope] = self._tokens.get(row.scope, 0) + row.tokens
        while self._recent and self._recent[0][0] <= self._recent[-1][0] - WINDOW_MS:
            _, scope, tokens = self._recent.popleft()
            self._tokens[scope] -= tokens

    def bars(self, plan: DemoPlan) -> Text:
        """One column a key: how much of its limit is left, in eighths."""
        left = [1 - self._tokens.get(f"scope-{n}", 0) / plan.tokens_limit for n in range(1, plan.keys + 1)]
        bars = "".join("▁▂▃▄▅▆▇█"[max(0, min(7, int(share * 8)))] for share in left)
        return Text(f"{bars}  least {min(left):.0%}, most {max(left):.0%} of the limit", "red" if min(left) < 0 else "")

    def hosts(self) -> str:
        """Those with the most arrivals so far."""
        most = sorted(self._hosts.items(), key=lambda item: -item[1])[:4]
        return ", ".join(f"{name} {count}" for name, count in most)


def _phase(now: Progress, setup: ArmSetup) -> str:
    if not now.zero_ms:
        return "agents connect"
    level = "below capacity" if now.t_s < setup.calm_s else "above capacity"
    return f"{now.t_s:.0f} of {setup.calm_s + setup.seconds} s, {level}"


def _states(states: dict[str, int], thinking: int) -> str:
    return ", ".join([*(f"{count:,} {name}" for name, count in sorted(states.items())), f"{thinking:,} thinking"])


def _line(now: Progress) -> str:
    counts = now.counts
    return (
        f"  {now.t_s:5.1f} s  {now.qps:5.0f} calls/s  {now.tpm / 1e6:5.1f} M TPM  "
        f"deferred {counts.get('deferrals', 0)}  refused by targets {counts.get('refused', 0)}"
    )
