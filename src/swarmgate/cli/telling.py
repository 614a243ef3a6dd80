"""Long work, told on stderr: a bar where somebody looks at a terminal, a line every few seconds where nobody does."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

EVERY_S = 5.0


class Telling:
    """One bar, or one line at a time, for each named piece of work."""

    def __init__(self, console: Console | None = None, every_s: float = EVERY_S) -> None:
        self._console = console or Console(stderr=True)
        self._every_s = every_s
        self._said_s = monotonic()
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[now]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def at(self, what: str, share: float, now: str = "") -> None:
        """How far a piece of work is, from 0 to 1, and what there is to say about it."""
        if self._console.is_terminal:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=1.0, now=now)
            self._bars.update(self._tasks[what], completed=share, now=now)
        elif monotonic() >= self._said_s + self._every_s:
            self._said_s = monotonic()
            said = f"{what}: {share * 100:.0f} %" + (f", {now}" if now else "")
            self._console.print(said, highlight=False, markup=False, soft_wrap=True)
