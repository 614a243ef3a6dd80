"""
The names behind which everything stands that the engine drives: small protocols, answered by events.

An adapter never returns a decision: it calls `fire(call, event)` again, at once or later, exactly once per request.
`call` is opaque to adapters. Instants are ms of the gate's monotonic clock unless said otherwise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from swarmgate.core.answers import Revised
from swarmgate.core.book import Book, Take, Used
from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.events import Event
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call

Fire = Callable[[Call, Event], None]


class Clock(Protocol):
    """The one place where time comes from."""

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        ...


class Timer(Protocol):
    """One alarm for everybody who waits; arming it again replaces it."""

    def arm(self, at_ms: int | None) -> None:
        """Ring at `at_ms`, never if None."""
        ...


class BudgetStore(Protocol):
    """
    Where budgets live. `take` fires Granted, Denied or StoreLost; the rest answers nobody.

    A store that cannot answer says so within 100 ms (design 2: P10).
    """

    def take(self, call: Call, request: Take) -> None:
        """Ask for one alternative, whole."""
        ...

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used; `last` ends the reservation."""
        ...

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        ...

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations."""
        ...

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        ...

    def define(self, budget: str, limits: Limits) -> None:
        """Make the budget known; nothing happens if it is."""
        ...

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits if their revision is still `expected`."""
        ...


@runtime_checkable
class NearStore(BudgetStore, Protocol):
    """A store whose budgets lie in this process, so that they can be read; units of debt it has counted."""

    book: Book
    debt_units: int

    def forget(self, budget: str) -> bool:
        """Let an idle budget go; False if something in it still counts. Shared stores let go by themselves."""
        ...


class Transport(Protocol):
    """What reaches targets. `connect` fires Ready or Lost; `send` fires Content, Progress, Ended or Lost."""

    def connect(self, call: Call) -> None:
        """Have a connection for `call.route` ready, from the pool or dialled."""
        ...

    def park(self, call: Call) -> None:
        """Give an unused connection back."""
        ...

    def send(self, call: Call) -> None:
        """Write the request; its first byte leaves in this loop turn."""
        ...

    def abort(self, call: Call) -> None:
        """Drop the connection; nothing is fired afterwards for this attempt."""
        ...


class AttemptFacts(NamedTuple):
    """
    What a transport saw of an attempt; -1 = not known.

    `content_ms` is the instant at which content began to pass, 0 where the answer came whole. `estimated`: its target did not
    tell all of its use; what it did not tell is what flowed, or what was likely.
    """

    status: int = 0
    prompt_tokens: int = -1
    output_tokens: int = -1
    cached_tokens: int = -1
    content_ms: int = 0
    sent_bytes: int = 0
    got_bytes: int = 0
    estimated: bool = False


class Told(Protocol):
    """What `call.wire` is from its attempt's intent on, to whoever keeps the evidence."""

    def facts(self) -> AttemptFacts:
        """What is known by now, also after the attempt's end."""
        ...


class Client(Protocol):
    """The caller's side of a call."""

    def relay(self, call: Call) -> None:
        """Let the caller see the answer from here on, beginning with what is held."""
        ...

    def answer(self, call: Call, answer: Answer) -> None:
        """Say how the call ended, if nothing was relayed yet; otherwise end the relay honestly."""
        ...


class Journal(Protocol):
    """Append-only memory of attempts and ends; never blocks, never raises."""

    def intent(self, call: Call, intent: Intent) -> None:
        """Note an attempt before its first byte leaves."""
        ...

    def note(self, call: Call, note: Note) -> None:
        """Note how an attempt ended."""
        ...

    def lost(self, call: Call, lose: Lose) -> None:
        """Note a grant of which nothing left."""
        ...

    def end(self, call: Call, answer: Answer) -> None:
        """Note how the call ended."""
        ...


class Alarms(Protocol):
    """Whoever calls back once, after so many seconds: an event loop, or virtual time."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Any:
        """What it returns has `cancel()`."""
        ...


class FileFacts(NamedTuple):
    """Bytes of a file, and when it was last changed (ms since the epoch)."""

    size: int
    changed_ms: int


class Reserved(Protocol):
    """A new file that has its whole room already; what is written outlives this process, not the machine."""

    write: Callable[[bytes], object]  # behind what was written; ValueError if there is no room for it

    def written(self) -> int:
        """How many bytes that was."""
        ...

    def is_there(self) -> bool:
        """Whether its file still has a name."""
        ...

    def sync(self) -> None:
        """Wait until the disk itself has it."""
        ...

    def apart(self) -> Callable[[], None]:
        """What a thread of its own may call instead, whatever becomes of this meanwhile."""
        ...

    def close(self) -> None:
        """It ends after what was written."""
        ...


class Disk(Protocol):
    """
    Where state lies; every method may raise OSError.

    A file that was written or synced survives a loss of power, a name once its folder was synced; all else may or may not.
    """

    def boot_id(self) -> str:
        """Which start of the machine this is: as long as it is the same, nothing that was written is lost."""
        ...

    def make(self, folder: Path) -> None:
        """A folder, if there is none."""
        ...

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder; nothing if there is none."""
        ...

    def exists(self, path: Path) -> bool:
        """Whether there is such a file."""
        ...

    def facts(self, path: Path) -> FileFacts:
        """How long it is, and when it was changed."""
        ...

    def read(self, path: Path, offset: int = 0, most: int = -1) -> bytes:
        """At most so many bytes (-1 = all) from `offset` on."""
        ...

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file whole: whatever happens it is the old one or this one, and this one when it returns."""
        ...

    def rename(self, path: Path, name: str) -> None:
        """Give a file another name in its folder."""
        ...

    def remove(self, path: Path) -> None:
        """Have it gone; nothing happens if it is."""
        ...

    def sync(self, folder: Path) -> None:
        """What was made, renamed and removed there survives a loss of power."""
        ...

    def lock(self, path: Path) -> int | None:
        """Make the file if there is none and hold it until the end of this process; None if another one does."""
        ...

    def unlock(self, lock: int) -> None:
        """Let it go."""
        ...

    def reserve(self, path: Path, size: int) -> Reserved:
        """A new file with room for so many bytes, or none."""
        ...
