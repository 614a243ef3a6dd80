"""
Which limits are in force, and since which revision: remembered over restarts, told to the journal.

A budget's revision counts its own changes; the policy's number counts all of them, and every attempt carries it (design
2: P12). A limit that was changed while nobody ran is a revision too. The file is replaced whole; one that cannot be read is
kept beside, and numbers go on beyond any that it may have given out.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from swarmgate.core.compiler import Published
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.engine.disk import DISK
from swarmgate.stores.journal import rows

FILE: Final = "limits.json"
CONFIGURATION: Final = "configuration"
AHEAD: Final = 1_000  # numbers of a policy that are taken at once, where each change is not worth a file


class Why(NamedTuple):
    """Who set a limit, and what for."""

    author: str
    reason: str


AT_START: Final = Why(CONFIGURATION, "as the configuration says")


class Limit(NamedTuple):
    """A limit as it is enforced, as it was published if it was, and whose it is; `key` = of that key alone."""

    limits: Limits
    published: Published | None
    target: str
    key: str = ""


class Kept(msgspec.Struct, frozen=True):
    """One budget: its limits, since which policy, and whose word it was."""

    limits: dict[str, Any]
    policy: int
    target: str
    unit: str
    amount: int
    window_ms: int
    at_ms: int
    author: str
    reason: str
    key: str = ""


class _File(msgspec.Struct):
    policy: int
    budgets: dict[str, Kept]


class InForce:
    """
    The limits of one state folder. `policy` is the number of the newest revision, `replaced` what the last `adopt` changed.

    Errors: OSError if the file cannot be read.
    """

    def __init__(self, folder: Path, now_ms: int) -> None:
        self._path = folder / FILE
        self.sentence = ""
        self._kept: dict[str, Kept] = {}
        self.replaced: dict[str, tuple[str, str]] = {}  # what held before, and what holds now, by budget
        self.policy = self._reserved = 0
        self._is_new = True  # nothing held before in this folder
        try:
            found = _whole(msgspec.json.decode(self._path.read_bytes(), type=_File))
        except FileNotFoundError:
            return
        except (msgspec.DecodeError, BadInput) as error:
            aside = self._path.with_suffix(f".broken-{now_ms}")
            self._path.replace(aside)
            self.sentence = (
                f"{self._path} cannot be read ({error}) and is kept as {aside.name}; revisions are counted anew"
            )
            self.policy = now_ms // 1_000
            return
        self.policy, self._kept, self._is_new = found.policy, found.budgets, False

    def not_before(self, policy: int) -> None:
        """
        Go on beyond the number that a journal carries: a file that is older (a backup) or gone would give it out again, and
        what was sent under the one would stand beside the limits of the other.
        """
        if policy > self.policy:
            self.sentence = f"{self._path} is older than what was sent since, or gone; revisions are counted anew"
            self.policy, self._kept = policy, {}

    def adopt(self, told: Mapping[str, Limit], why: Why, now_ms: int) -> dict[str, Limits]:
        """
        The same limits with the revisions that they have from now on; what differs from what was kept is a new one.

        Nothing is on file before `save`.
        """
        policy, changed, adopted = self.policy + 1, False, {}
        self.replaced = {}
        for name, limit in told.items():
            kept = self._kept.get(name)
            revision = 1 if kept is None else int(kept.limits["revision"])
            if kept is None or _shape(kept.limits) != _shape(asdict(limit.limits)):
                revision += kept is not None
                changed = True
                self._kept[name] = now = _kept(limit, revision, policy, why, now_ms)
                if not self._is_new:
                    self.replaced[name] = "" if kept is None else _in_words(kept), _in_words(now)
            adopted[name] = replace(limit.limits, revision=revision)
        if changed:
            self.policy = policy
        self._is_new = False
        return adopted

    def rows(self, names: Mapping[str, object], seq: int, at_ms: int) -> list[rows.Revision]:
        """What the journal says of these budgets, numbered from `seq` on."""
        known = [(name, self._kept[name]) for name in names if name in self._kept]
        return [_row(name, kept, seq + index, at_ms) for index, (name, kept) in enumerate(known)]

    def next_policy(self) -> int:
        """The number of a change that is not kept here; none is given twice, whenever this process ends."""
        self.policy += 1
        if self.policy > self._reserved:
            with suppress(OSError):  # the journal says loudly that the disk is full; calls go on
                self.save(ahead=AHEAD)
        return self.policy

    def save(self, ahead: int = 0) -> None:
        """Put it on file, whole; the next `ahead` numbers are taken too. Errors: OSError."""
        self._reserved = self.policy + ahead
        DISK.write(self._path, msgspec.json.encode(_File(self._reserved, self._kept)))


class StandingLimit(NamedTuple):
    """A limit in force that is not the file's: budget, what holds, and whose word it is."""

    budget: str
    amount: int
    window_ms: int
    author: str
    reason: str
    unit: str


def _in_words(kept: Kept) -> str:
    """A limit as people compare it with another; what it compiles to, where nothing is published."""
    window = f" per {kept.window_ms} ms" if kept.window_ms else ""
    return f"{kept.amount or kept.limits['burst']}{window}{' (paused)' if kept.limits['paused'] else ''}"


def standing(folder: Path, file: Mapping[str, Published]) -> list[StandingLimit]:
    """What operators have set in the gate of a state folder, where the file says otherwise; nothing where none has run."""
    try:
        kept = msgspec.json.decode((folder / FILE).read_bytes(), type=_File).budgets
    except (OSError, msgspec.DecodeError):
        return []
    return [
        StandingLimit(name, one.amount, one.window_ms, one.author, one.reason, str(file[name].unit))
        for name, one in kept.items()
        if name in file
        and one.author != CONFIGURATION
        and (one.amount, one.window_ms) != (file[name].amount, file[name].window_ms)
    ]


def _whole(file: _File) -> _File:
    """A file whose limits say all that is read of them. Errors: `BadInput`."""
    for name, kept in file.budgets.items():
        said = kept.limits
        if not (
            isinstance(said.get("paused"), bool) and all(type(said.get(one)) is int for one in ("burst", "revision"))
        ):
            raise BadInput(name, "does not say its burst, its revision, and whether it is paused")
    return file


def _shape(form: dict[str, Any]) -> dict[str, Any]:
    """What makes two limits the same; through JSON, which knows no tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in form.items() if name != "revision"
    }


def _kept(limit: Limit, revision: int, policy: int, why: Why, now_ms: int) -> Kept:
    form = asdict(limit.limits) | {"revision": revision}
    published = limit.published
    if published is None:
        return Kept(form, policy, limit.target, "", 0, 0, now_ms, *why, limit.key)
    unit, amount, window_ms = published.unit.value, published.amount, published.window_ms
    return Kept(form, policy, limit.target, unit, amount, window_ms, now_ms, *why, limit.key)


def row_of(name: str, limit: Limit, policy: int, why: Why, number: tuple[int, int]) -> rows.Revision:
    """What the journal says of a limit that is not kept here; `number` is that of its row and its instant."""
    return _row(name, _kept(limit, limit.limits.revision, policy, why, number[1]), *number)


def _row(name: str, kept: Kept, seq: int, at_ms: int) -> rows.Revision:
    limits = kept.limits
    kind = BudgetKind(limits["kind"]).name.lower()
    return rows.Revision(
        seq,
        at_ms,
        kept.policy,
        name,
        limits["revision"],
        kept.target,
        kept.unit,
        kept.amount,
        kept.window_ms,
        kind,
        limits["burst"],
        limits["quota"],
        limits["window_ms"],
        kept.author,
        kept.reason,
        kept.at_ms,
        limits["paused"],
        kept.key,
    )
