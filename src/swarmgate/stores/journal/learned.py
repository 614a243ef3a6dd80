"""
What was learned of hosts: kept in a file over restarts, and each change told to the journal as a revision.

Unlike what was used, what was learned stays true whatever way a run ended, and a host that asked to be left alone for an
hour meant the next run too. So the file is written while the gate runs, in a thread, at most once in ten seconds. One that
cannot be read is kept beside, and learning begins anew.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from swarmgate.core.compiler import Unit
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Learned, Quantity, Revision
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import Limits
from swarmgate.engine.disk import DISK
from swarmgate.stores.journal import rows

FILE: Final = "learned.json"
AUTHOR: Final = "learned"
EVERY_S: Final = 10.0


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What outlives a run: what was learned, by lesson, and until when (unix ms) hosts asked to be left alone."""

    lessons: dict[str, Learned] = {}
    pauses: dict[str, int] = {}


NOTHING: Final = Kept()


def load(folder: Path, say: Callable[[str], None] = lambda _: None) -> Kept:
    """What earlier runs kept; `say` hears that nobody can read it. Errors: OSError."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return NOTHING
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        aside = path.replace(path.with_suffix(".broken"))
        say(f"{path} cannot be read ({error}) and is kept as {aside.name}; hosts are learned anew")
        return NOTHING


def save(folder: Path, kept: Kept) -> None:
    """Put it on file, whole. Errors: OSError."""
    DISK.write(folder / FILE, msgspec.json.encode(kept))


class Keeping:
    """Writes what `gather` tells while the gate runs, if it is something else by now; `end` does so for the last time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, folder: Path, gather: Callable[[], Kept], say: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._folder = folder
        self._gather = gather
        self._say = say
        self._lock = Lock()  # one writes at a time
        self._written = NOTHING
        self._timer = loop.call_later(EVERY_S, self._look)

    def end(self) -> None:
        """The gate has stopped."""
        self._timer.cancel()
        self._write(self._gather())

    def _look(self) -> None:
        self._timer = self._loop.call_later(EVERY_S, self._look)
        kept = self._gather()
        if kept != self._written:
            self._written = kept
            self._loop.run_in_executor(None, self._write, kept)

    def _write(self, kept: Kept) -> None:
        try:
            with self._lock:
                save(self._folder, kept)
        except OSError as error:
            self._written = NOTHING  # it is tried again
            self._say(f"what was learned of hosts cannot be kept: {error.strerror}")


def row(number: tuple[int, int], policy: int, lesson: Lesson, limits: Limits, revision: Revision) -> rows.Revision:
    """What the journal says of one change; `number` is that of its row and its instant."""
    capped = revision.quantity is Quantity.CAP
    return rows.Revision(
        *number,
        policy,
        lesson.cap_budget if capped else lesson.rate_budget,
        limits.revision,
        lesson.target,
        (Unit.CONCURRENT if capped else Unit.REQUESTS).value,
        revision.value_micro // MICRO,
        0 if capped else lesson.learner.window_ms,
        limits.kind.name.lower(),
        limits.burst,
        limits.quota,
        limits.window_ms,
        AUTHOR,
        f"{revision.quantity.value}: {revision.reason.value}",
        number[1],
    )
