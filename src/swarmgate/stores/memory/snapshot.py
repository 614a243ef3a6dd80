"""
What a process remembers over a clean stop, and whether it may (design 4: Cold start).

A file marks that a gate runs; a clean stop replaces it by the saved book. Where the mark is found without its gate, the
last run ended uncleanly: what it had used is unknown, so budgets start cold. A folder that never held either has never
sent anything: budgets start warm. The newest file of the journal says which run a book was saved by: an older book, from a
backup or from a disk that forgot its last changes, is not believed, but what it counted is kept (reliability LG-14). Instants are those of a clock that
goes on over restarts (ms since the epoch).
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from swarmgate.core.book import Book, Lease
from swarmgate.core.kernel import chill, define
from swarmgate.core.limits import Limits
from swarmgate.core.passage import touch
from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk

RUNNING: Final = "running"
SAVED: Final = "budgets.json"
BROKEN: Final = f"{SAVED}.broken"
VERSION: Final = 2
LONG_AGO_MS: Final = -(2**51)
LimitsOf = Callable[[str], Limits | None]


def _nobody(_budget: str) -> Limits | None:
    return None


class FolderInUse(OSError):
    """Another gate runs on this folder; two gates that do not share a store must not share a target either."""


class OtherVersion(ValueError):
    """A saved book of an older or newer version."""

    def __init__(self, found: int) -> None:
        who = "an older" if found < VERSION else "a newer"
        super().__init__(f"was saved by {who} version of swarmgate (form {found}; this one reads {VERSION})")


class Start(NamedTuple):
    """The book to start with, why it is as it is, and the lock that this gate holds on the folder."""

    book: Book
    sentence: str
    lock: int


def begin(
    folder: Path,
    now_ms: int,
    limits: Mapping[str, Limits],
    others: LimitsOf = _nobody,
    *,
    journal: int = 0,
    disk: Disk = DISK,
) -> Start:
    """
    Take the folder over: the book of the last clean stop, a cold one, or a warm one; then mark that a gate runs.

    `others` tells the limits of budgets that are made while a gate runs: those of agents. `journal` is the number of its newest
    file; 0 = no gate has worked here. A saved book that cannot be read is kept beside as `budgets.json.broken` and counts as
    an unclean stop. When this returns, the mark survives a loss of power and the saved book does not. Errors: `FolderInUse`,
    OSError; then the next start is cold, unless this one had not begun.
    """
    disk.make(folder)
    was_running = disk.exists(folder / RUNNING)
    lock = disk.lock(folder / RUNNING)
    if lock is None:
        raise FolderInUse(f"another gate runs on {folder}; stop it, or give this one a folder of its own")
    try:
        cold = f"budgets start cold (used up) and are whole again within {-(-cold_ms(limits) // 1_000)} s"
        if was_running:
            book, sentence = _empty(now_ms, now_ms), f"the last run did not stop cleanly: {cold}"
        else:
            book, sentence = _found(
                folder / SAVED, now_ms, journal, disk, lambda name: limits.get(name) or others(name)
            )
            sentence += f": {cold}" if book.birth_ms == now_ms else ""
        disk.remove(folder / SAVED)
        disk.sync(folder)
    except OSError:
        disk.unlock(lock)
        raise
    return Start(book, sentence, lock)


def _found(saved: Path, now_ms: int, journal: int, disk: Disk, limits: LimitsOf) -> tuple[Book, str]:
    """The book of a clean stop, and what is to be said of it; an empty one if it is missing, damaged or not the last one."""
    if not disk.exists(saved):
        if journal:
            return _empty(now_ms, now_ms), f"{saved} is gone, and a gate has worked here"
        return _empty(LONG_AGO_MS, now_ms), "first run here: budgets start full"
    try:
        form = _as_written(json.loads(disk.read(saved)))
        book = restored(form, now_ms, limits)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        disk.rename(saved, BROKEN)
        why = str(error) if isinstance(error, OtherVersion) else f"cannot be read ({error})"
        return _empty(now_ms, now_ms), f"{saved} {why} and is kept as {BROKEN}; nothing needs to be done"
    if form.get("journal", journal) != journal:
        _forget(book, now_ms)
        return book, f"{saved} is older than what a gate has sent since"
    return book, "budgets go on from the last clean stop"


def _forget(book: Book, now_ms: int) -> None:
    """What was used since is not known: as cold as if the store had begun now, with what it remembers."""
    book.birth_ms = book.now_ms = now_ms
    for cell in book.cells.values():
        touch(cell, max(now_ms, cell.at_ms))
        chill(cell, now_ms)


def cold_ms(limits: Mapping[str, Limits]) -> int:
    """How long a cold start is felt: until every bucket has drained and every hold that may be forgotten has ended."""
    waits = [-(-one.burst * one.scale // one.drain) if one.drain else one.lease_ms for one in limits.values()]
    return max(waits, default=0)


def finish(folder: Path, start: Start, *, journal: int = 0, disk: Disk = DISK) -> None:
    """
    Save the book, remove the mark and let the folder go: the next start may go on from here.

    `journal` is the number of its newest file. Errors: OSError; then the mark stays, and the next start is cold.
    """
    form = {**saved_form(start.book), "journal": journal}
    try:
        disk.write(folder / SAVED, _text({**form, "sum": _sum(form)}))
        disk.remove(folder / RUNNING)
    finally:
        disk.unlock(start.lock)


def _text(form: Mapping[str, Any]) -> bytes:
    return json.dumps(form, separators=(",", ":")).encode()


def _as_written(form: dict[str, Any]) -> dict[str, Any]:
    """The form without its checksum. Errors: ValueError where that does not fit."""
    if form.pop("sum", None) != _sum(form) and form["version"] == VERSION:
        raise ValueError("its checksum does not fit")
    return form


def _sum(form: Mapping[str, Any]) -> int:
    """A digit that changed would grant anew what was used (reliability LG-08); integers and names come back as they were written."""
    return crc32(_text(form))


def saved_form(book: Book) -> dict[str, Any]:
    """A book as plain values; who waits is not saved, for nobody waits after a stop."""
    return {
        "version": VERSION,
        "birth_ms": book.birth_ms,
        "now_ms": book.now_ms,
        "sequence": book.sequence,
        "cells": {
            name: {
                "level": cell.level,
                "kind": cell.limits.kind,
                "scale": cell.scale,
                "at_ms": cell.at_ms,
                "slices": sorted((cell.slices or {}).items()),
                "leases": [(key, one.amount, one.expires_ms, one.firm) for key, one in cell.leases.items()],
            }
            for name, cell in book.cells.items()
        },
    }


def restored(saved: dict[str, Any], now_ms: int, limits: LimitsOf) -> Book:
    """
    The saved book under the limits in force now; a budget of another kind than before, or of another scale, starts cold.

    Errors: ValueError, KeyError, TypeError if it is no saved book, or of a version that is not known here.
    """
    if saved["version"] != VERSION:
        raise OtherVersion(saved["version"])
    book = _empty(saved["birth_ms"], max(now_ms, saved["now_ms"]))
    book.sequence = saved["sequence"]
    for name, kept in saved["cells"].items():
        told = limits(name)
        if told is None:
            continue
        define(book, name, told)
        cell = book.cells[name]
        if (kept.get("kind", told.kind), kept["scale"]) != (told.kind, cell.scale):
            chill(cell, cell.at_ms)
            continue
        cell.level = kept["level"]
        cell.at_ms = kept["at_ms"]
        if cell.slices is not None:
            cell.slices.update({int(index): int(units) for index, units in kept["slices"]})
        for key, amount, expires_ms, firm in kept["leases"]:
            lease = cell.leases[key] = Lease()
            lease.amount, lease.expires_ms, lease.firm = int(amount), int(expires_ms), bool(firm)
        cell.pending = sum(lease.amount for lease in cell.leases.values())
        cell.due_ms = min((lease.expires_ms for lease in cell.leases.values()), default=cell.due_ms)
    return book


def _empty(birth_ms: int, now_ms: int) -> Book:
    book = Book(birth_ms)
    book.now_ms = now_ms
    return book
