"""
Policies that only watch: what they would have held back, by the kernel's own rules on a book of their own.

Each send is judged as if its policy were in force: it takes, holds its places while it is in flight, and is charged what
it came to. A send that would have been held back takes nothing, as it would not have left; it is counted, and goes on.
What is on its way to the host is not watched: every request counts as delivered at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from swarmgate.core import kernel
from swarmgate.core.answers import Denied
from swarmgate.core.book import Book, Take, Used
from swarmgate.core.commands import Note
from swarmgate.core.record import Call, Route
from swarmgate.core.routing import Budget
from swarmgate.core.target_policy import PolicyTable

LEASE_MS: Final = 86_400_000  # every attempt is told its end; this is for one whose end a bug has lost


class Watching(NamedTuple):
    """What one policy saw: sends that it would have let through and held back, and its budgets with how many each held back."""

    policy: str
    passed: int
    held_back: int
    budgets: tuple[tuple[Budget, int], ...]


class Shadow:
    """The policies of a table that only watch (engine/teacher.py: Watcher)."""

    def __init__(self, table: PolicyTable, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._book = Book(-(2**51))  # it remembers that nothing was used before
        self._book.now_ms = now_ms()
        self._open: dict[str, list[Route]] = {}  # what sends in flight took, by call
        self._passed: Counter[str] = Counter()
        self._held_back: Counter[str] = Counter()
        self._blocked: Counter[str] = Counter()
        self.replace(table)

    def replace(self, table: PolicyTable) -> None:
        """Watch for these policies from now on; what has changed begins anew."""
        self._table = {one.name: _budgets(one.budgets.values()) for one in table.by_name.values() if one.shadow}
        limits = {one.name: one.compiled.limits for own in self._table.values() for one in own}
        cells = self._book.cells
        for name in [name for name, cell in cells.items() if cell.limits != limits.get(name)]:
            del cells[name]
        for name, told in limits.items():
            kernel.define(self._book, name, told)

    def sent(self, call: Call) -> None:
        """An attempt leaves: whether it would have, by each policy that watches it."""
        now_ms, taken = self._now_ms(), []
        for policy, made in call.rungs[call.rung].watched:
            demands = made.demands(call.prompt, call.reserve)
            if any(name not in self._book.cells for name, *_ in demands):
                continue  # its policy was reloaded away while it waited
            take = Take(call.id, call.id, call.rank, call.score, (demands,), LEASE_MS, waits=False)
            found = kernel.take(self._book, take, now_ms)
            if isinstance(found, Denied):
                self._held_back[policy] += 1
                self._blocked.update({blocker.budget for blocker in found.blockers})
            else:
                self._passed[policy] += 1
                taken.append(made)
        if taken:
            self._open[call.id] = taken

    def began(self, call: Call) -> None:
        """Its answer begins: slots of a window are free from their time on."""
        self._settle(call, [(name, 0, 0) for made in self._open.get(call.id, ()) for name in made.first_byte])

    def ended(self, call: Call, note: Note) -> None:
        """The attempt is over: its places are free, and bytes are charged as they were (as estimated where nobody knows)."""
        used = call.reserve if note.used < 0 else note.used
        taken = self._open.pop(call.id, ())
        places = [(name, 0, 0) for made in taken for name in (*made.first_byte, *made.whole)]
        self._settle(call, places + [(name, call.reserve, used) for made in taken for name in made.metered], last=True)

    def seen(self) -> list[Watching]:
        """What each policy saw until now."""
        return [
            Watching(
                name,
                self._passed[name],
                self._held_back[name],
                tuple([(one, self._blocked[one.name]) for one in budgets]),
            )
            for name, budgets in self._table.items()
        ]

    def _settle(self, call: Call, usage: list[Used], *, last: bool = False) -> None:
        if usage:
            kernel.settle(self._book, call.id, tuple(usage), self._now_ms(), last=last)


def _budgets(by_class: Iterable[tuple[Budget, ...]]) -> tuple[Budget, ...]:
    return tuple({one.name: one for budgets in by_class for one in budgets}.values())
