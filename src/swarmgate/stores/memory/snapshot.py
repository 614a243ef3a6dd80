"""
What a process remembers over a clean stop, and whether it may (design 4: Cold start).

A file marks that a gate runs; a clean stop replaces it by the saved book. Where the mark is found without its gate, the
last run ended uncleanly: what it had used is unknown, so budgets start cold. A folder that never held either has never
sent anything: budgets start warm, unless its journal knows better (reliability LG-14). Instants are those of a clock that
goes on over restarts (ms since the epoch).
"""

import json
import os
from collections.abc import Callable, Mapping
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, NamedTuple

from swarmgate.core.book import Book, Lease
from swarmgate.core.kernel import define
from swarmgate.core.limits import Limits

RUNNING = "running"
SAVED = "budgets.json"
VERSION = 1
LONG_AGO_MS = -(2**51)
LimitsOf = Callable[[str], Limits | None]


def _nobody(_budget: str) -> Limits | None:
    return None


class FolderInUse(OSError):
    """Another gate runs on this folder; two gates that do not share a store must not share a target either."""


class Start(NamedTuple):
    """The book to start with, why it is as it is, and the lock that this gate holds on the folder."""

    book: Book
    sentence: str
    lock: int


def begin(
    folder: Path, now_ms: int, limits: Mapping[str, Limits], others: LimitsOf = _nobody, *, has_sent: bool = False
) -> Start:
    """
    Take the folder over: the book of the last clean stop, a cold one, or a warm one; then mark that a gate runs.

    `others` tells the limits of budgets that are made while a gate runs: those of agents. `has_sent`: a gate has worked here,
    whether or not its book is still there. A saved book that cannot be read is kept beside as `budgets.json.broken` and counts as an unclean stop. Errors:
    `FolderInUse`, OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    was_running = (folder / RUNNING).exists()
    lock = os.open(folder / RUNNING, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise FolderInUse(f"another gate runs on {folder}; stop it, or give this one a folder of its own") from None
    book, sentence = _found(folder, now_ms, limits, others, was_running=was_running, has_sent=has_sent)
    (folder / SAVED).unlink(missing_ok=True)
    return Start(book, sentence, lock)


def _found(
    folder: Path, now_ms: int, limits: Mapping[str, Limits], others: LimitsOf, *, was_running: bool, has_sent: bool
) -> tuple[Book, str]:
    saved = folder / SAVED
    cold = f"budgets start cold and are whole again within {-(-cold_ms(limits) // 1_000)} s"
    if was_running:
        return _empty(now_ms, now_ms), f"the last run did not stop cleanly: {cold}"
    if not saved.exists() and has_sent:
        return _empty(now_ms, now_ms), f"{saved} is gone, and a gate has worked here: {cold}"
    if not saved.exists():
        return _empty(LONG_AGO_MS, now_ms), "first run here: budgets start full"
    try:
        book = restored(json.loads(saved.read_text(encoding="utf-8")), now_ms, limits, others)
    except (ValueError, KeyError, TypeError, OSError) as error:
        saved.replace(folder / f"{SAVED}.broken")
        return _empty(now_ms, now_ms), f"{saved} cannot be read ({error}): {cold}"
    return book, "budgets go on from the last clean stop"


def cold_ms(limits: Mapping[str, Limits]) -> int:
    """How long a cold start is felt: until every bucket has drained and every hold that may be forgotten has ended."""
    waits = [-(-one.burst * one.scale // one.drain) if one.drain else one.lease_ms for one in limits.values()]
    return max(waits, default=0)


def finish(folder: Path, start: Start) -> None:
    """Save the book, remove the mark and let the folder go: the next start may go on from here."""
    text = json.dumps(saved_form(start.book), separators=(",", ":"))
    fresh = folder / f"{SAVED}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / SAVED)
    (folder / RUNNING).unlink(missing_ok=True)
    os.close(start.lock)


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
                "scale": cell.scale,
                "at_ms": cell.at_ms,
                "slices": sorted((cell.slices or {}).items()),
                "leases": [(key, one.amount, one.expires_ms, one.firm) for key, one in cell.leases.items()],
            }
            for name, cell in book.cells.items()
        },
    }


def restored(saved: dict[str, Any], now_ms: int, limits: Mapping[str, Limits], others: LimitsOf = _nobody) -> Book:
    """
    The saved book under the limits in force now; a budget whose unit of account changed starts cold.

    Errors: ValueError, KeyError, TypeError if it is no saved book, or of a version that is not known here.
    """
    if saved["version"] != VERSION:
        raise ValueError(f"version {saved['version']} is not {VERSION}")
    book = _empty(saved["birth_ms"], max(now_ms, saved["now_ms"]))
    book.sequence = saved["sequence"]
    for name, kept in saved["cells"].items():
        told = limits.get(name) or others(name)
        if told is None:
            continue
        define(book, name, told)
        cell = book.cells[name]
        if cell.scale != kept["scale"]:
            cell.level = told.burst * told.scale if told.drain else cell.level
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
