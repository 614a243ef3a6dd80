"""What the files of an arm say while they grow: tokens of the last window by key, arrivals by host, waits of recent calls."""

from collections import defaultdict, deque
from pathlib import Path

from swarmgate.lab.agents.records import CallRow, calls_of
from swarmgate.lab.demo.figures import waits_of
from swarmgate.lab.demo.plan import WINDOW_MS, DemoPlan
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import Seen, rows_of

RECENT_MS = 5_000
MOST_HOSTS = 3


class Growing:
    """A file that others append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0

    def lines(self) -> list[bytes]:
        """Those that were appended since the last time; an unfinished one waits. None if there is no file yet."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return whole.splitlines()


class Tail:
    """The witness's file and the agents' rows."""

    def __init__(self, witness: Path, calls: Path) -> None:
        self._witness, self._calls = Growing(witness), Growing(calls)
        self._window: deque[tuple[int, str, int]] = deque()
        self._tokens: dict[str, int] = defaultdict(int)
        self._hosts: dict[str, int] = defaultdict(int)
        self._doors: dict[str, int] = {}
        self._rows: deque[CallRow] = deque()

    def read(self) -> None:
        """What is new in both."""
        for row in rows_of(self._witness.lines(), self._witness.path):
            if isinstance(row, Seen):
                self._arrived(row)
            elif row.place != WEB:
                self._used(row.t_ms, row.scope, row.tokens)
        while self._window and self._window[0][0] <= self._window[-1][0] - WINDOW_MS:
            _, scope, tokens = self._window.popleft()
            self._tokens[scope] -= tokens
        self._rows += (row for row in calls_of(self._calls.lines(), self._calls.path) if row.kind != "fetch")
        while self._rows and self._rows[0].end_ms < self._rows[-1].end_ms - RECENT_MS:
            self._doors.pop(self._rows.popleft().call, None)

    def _arrived(self, row: Seen) -> None:
        if row.place == WEB:
            self._hosts[row.scope] += 1
        elif row.status == 200:
            self._doors[row.call] = row.t_ms
            self._used(row.t_ms, row.scope, row.tokens)

    def _used(self, t_ms: int, scope: str, tokens: int) -> None:
        self._window.append((t_ms, scope, tokens))
        self._tokens[scope] += tokens

    def left(self, plan: DemoPlan) -> list[float]:
        """Of each key, the share of its limit that what was served in the last window has left."""
        used = (self._tokens[f"scope-{number}"] for number in range(1, plan.keys + 1))
        return [max(0.0, 1 - tokens / plan.tokens_limit) for tokens in used]

    def hosts(self) -> str:
        """Those with the most arrivals so far."""
        most = sorted(self._hosts.items(), key=lambda item: -item[1])[:MOST_HOSTS]
        return ", ".join(f"{name}\N{NO-BREAK SPACE}{count:,}" for name, count in most)

    def waits(self) -> dict[str, int]:
        """The P99 in ms by class, from a wish to the target's door, of model calls that ended just now."""
        return {rank: waits.p99_ms for rank, waits in waits_of(self._rows, self._doors).items()}
