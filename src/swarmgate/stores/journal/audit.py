"""
Who changed what as an operator: one line of JSON per change, each with the hash of the one before (reliability AZ-13).

Every process of a state folder writes to the one file, in turn; a line is on disk when the change is answered. A line that was
edited, moved or taken out breaks the chain at that place. Whoever may write the file can make the whole chain anew, or cut its
end off: against that, keep the newest hash elsewhere (`swarmgate audit --since HASH` asks whether it still stands there).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from swarmgate.core.errors import BadInput

FILE: Final = "audit.jsonl"
FIRST: Final = "0" * 64  # what stands before the first line
MOST_PARTS: Final = 100  # of what something is like
MOST_LINE_BYTES: Final = 4 * 1024 * 1024  # all parts at their longest, in any script
LONGEST: Final = 2_000  # letters of one value
LONGEST_NAME: Final = 200
LONGEST_HASH: Final = 64
_CUT: Final = "..."

Parts = dict[str, str]  # what something is like, by the names of its parts


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change: `who` as he said, `what` was done to which `subject`, what it was like before and after."""

    number: int
    at_ms: int
    who: str
    what: str
    subject: str
    old: Parts
    new: Parts
    reason: str
    before: str  # the hash of the line before
    hash: str = ""  # of everything above


class Chain(msgspec.Struct, frozen=True):
    """What stands in the file: whole lines in order, and the first place that is not as it was written (0 = none)."""

    changes: list[Change]
    broken_at: int = 0
    why: str = ""

    @property
    def newest(self) -> str:
        """The hash that stands for the whole file."""
        return self.changes[-1].hash if self.changes else FIRST

    def verdict(self, since: str = "") -> str:
        """What is wrong, in words; empty = every line stands as it was written, and the one with the hash `since` among them."""
        if self.broken_at:
            return f"line {self.broken_at} {self.why}"
        if since and since not in {FIRST, *(change.hash for change in self.changes)}:
            return (
                f"no line has the hash {since[:LONGEST_HASH]}: lines are missing at the end, or all were written anew"
            )
        return ""

    def told(self, since: str = "") -> dict[str, object]:
        """As JSON carries it."""
        changes = [msgspec.structs.asdict(change) for change in self.changes]
        return {"changes": changes, "newest": self.newest, "wrong": self.verdict(since)}


class Audit:
    """The changes of one state folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def add(  # noqa: PLR0913  a change has so many parts
        self, at_ms: int, who: str, what: str, subject: str, *, old: Parts, new: Parts, reason: str = ""
    ) -> str:
        """
        Write a change; the hash that stands for the file from now on.

        Errors: `BadInput` where it cannot be written, which whoever made the change is told.
        """
        told = Change(0, at_ms, who[:LONGEST], what, subject[:LONGEST], _short(old), _short(new), reason[:LONGEST], "")
        try:
            with self._locked() as descriptor:
                return _append(descriptor, told)
        except OSError as error:
            raise BadInput(FILE, f"what was done holds, and cannot be put on file: {error.strerror}") from None

    def read(self) -> Chain:
        """Every change, and whether all of them stand as they were written. Errors: OSError but for a missing file."""
        changes: list[Change] = []
        wrong: tuple[int, str] = (0, "")
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return Chain(changes)
        with file:
            for number, line in enumerate(file, 1):
                found = _read(line)
                why = _why_not(found, changes[-1] if changes else None)
                if why and not wrong[0]:
                    wrong = number, why
                if found is not None:
                    changes.append(found)
        return Chain(changes, *wrong)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            flock(descriptor, LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _append(descriptor: int, told: Change) -> str:
    last, ends_whole = _last(descriptor)
    number, before = (last.number + 1, last.hash) if last else (1, FIRST)
    told = msgspec.structs.replace(told, number=number, before=before)
    whole = msgspec.structs.replace(told, hash=_hash(told))
    _write(descriptor, (b"" if ends_whole else b"\n") + msgspec.json.encode(whole) + b"\n")
    return whole.hash


def _write(descriptor: int, line: bytes) -> None:
    """All of it or, where there is no room, nothing."""
    before = os.fstat(descriptor).st_size
    try:
        while line:  # a full disk takes a part of it first, and says why with the next
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


def _last(descriptor: int) -> tuple[Change | None, bool]:
    """The newest line that can be read, None if there is none; and whether the file ends with a whole line."""
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, MOST_LINE_BYTES, max(0, size - MOST_LINE_BYTES))
    found = (change for line in reversed(tail.split(b"\n")) if (change := _read(line)) is not None)
    return next(found, None), not tail or tail.endswith(b"\n")


def _read(line: bytes) -> Change | None:
    try:
        return msgspec.json.decode(line, type=Change)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _why_not(change: Change | None, before: Change | None) -> str:
    """Why a line is not what was written there; empty if it is."""
    if change is None:
        return "is no whole line"
    if change.hash != _hash(change):
        return "was changed after it was written"
    if change.before != (before.hash if before else FIRST) or change.number != (before.number if before else 0) + 1:
        return "does not follow the line before it: lines are missing, or stand elsewhere"
    return ""


def _hash(change: Change) -> str:
    return sha256(msgspec.json.encode(msgspec.structs.replace(change, hash=""))).hexdigest()


def _short(state: Parts) -> Parts:
    """What fits a line; what was cut shows it."""
    parts = {name[:LONGEST_NAME]: said for name, said in islice(state.items(), MOST_PARTS)}
    told = {name: said if len(said) <= LONGEST else said[:LONGEST] + _CUT for name, said in parts.items()}
    return told if len(state) <= MOST_PARTS else told | {_CUT: f"and {len(state) - MOST_PARTS} more"}
