"""
The contract of the script (stores/valkey/book.lua), typed: operations to KEYS and ARGV. `replies.py` is the way back.

Pure: no I/O. Names cross the wire once per batch and stand as an index from 1 everywhere else; integers are below 2^53,
so that Lua's doubles hold them; names are ASCII. What does not fit is refused before anything is sent.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from swarmgate.core.book import Take
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import CLASSES, EXACT, Limits
from swarmgate.core.operations import Define, Operation, Revise, Withdraw

SERVER_TIME = -1
DOUBLE = 2**53  # integers below it are exact in Lua
LONGEST_NAME = 512
MOST_OPERATIONS = 64  # a batch stays below 1 ms of the server
MOST_BUDGETS = 512

_pack = msgspec.msgpack.Encoder().encode
_json = msgspec.json.Encoder().encode


class BadOperation(BadInput):
    """An operation that cannot cross the wire; names the field and the rule."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(field, f"{value!r:.80} {reason}")


def meta_key(deployment: str) -> str:
    """The deployment's hash tag, which is also the key of its meta record. Errors: `BadOperation`."""
    if "{" in deployment or "}" in deployment:
        raise BadOperation("deployment", deployment, "braces would end the hash tag")
    return "{sg:" + _text("deployment", deployment) + "}"


class Batch:
    """
    Operations for one call of the script, encoded as they come; `add` refuses what does not fit and keeps the rest.

    `line_of` tells the line of a budget; one that it does not know has its own.
    """

    __slots__ = ("_line_of", "_lined", "_operations", "budgets", "lines")

    def __init__(self, line_of: Mapping[str, str]) -> None:
        self._line_of = line_of
        self._lined: list[int] = []
        self._operations: list[tuple[Any, ...]] = []
        self.budgets: dict[str, int] = {}
        self.lines: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def full(self) -> bool:
        """Whether one call of the script should take no more."""
        return len(self._operations) >= MOST_OPERATIONS or len(self.budgets) >= MOST_BUDGETS

    def add(self, operation: Operation) -> None:
        """Errors: `BadOperation` names the first field that does not fit."""
        self._operations.append(_ENCODERS[type(operation)](self, operation))

    def keys(self, deployment: str) -> list[str]:
        """Every key the script may touch; `deployment` is the hash tag."""
        tag = meta_key(deployment)
        keys = [tag]
        for name in self.budgets:
            keys += (f"{tag}b:{name}", f"{tag}h:{name}")
        for name in self.lines:
            keys += (f"{tag}q:{name}", f"{tag}t:{name}")
        return keys

    def argument(self, run: str, now_ms: int = SERVER_TIME) -> bytes:
        """The one argument; `run` is the server process that the connection reaches."""
        return _pack((now_ms, run, list(self.budgets), self._lined, list(self.lines), self._operations))

    def budget(self, name: str) -> int:
        """The budget's index."""
        index = self.budgets.get(name)
        if index is None:
            line = self.line(self._line_of.get(_text("budget", name)) or name)
            index = self.budgets[name] = len(self.budgets) + 1
            self._lined.append(line)
        return index

    def line(self, name: str) -> int:
        """The line's index."""
        index = self.lines.get(name)
        if index is None:
            index = self.lines[_text("line", name)] = len(self.lines) + 1
        return index


def _take(batch: Batch, it: Take) -> tuple[Any, ...]:
    budget = batch.budget
    alternatives = []
    for demands in it.alternatives:
        wanted: list[int] = []
        for name, cost, reserve in demands:
            if not (0 <= cost < DOUBLE and 0 <= reserve < DOUBLE):
                raise BadOperation("cost, reserve", (cost, reserve), f"must lie between 0 and {DOUBLE - 1}")
            wanted += (budget(name), cost, reserve)
        alternatives.append(wanted)
    return (
        "take",
        _text("ticket", it.ticket),
        _text("lease", it.lease),
        _whole("rank", it.rank, CLASSES),
        _whole("score", it.score, DOUBLE),
        alternatives,
        _whole("lease_ms", it.lease_ms),
        [batch.line(name) for name in it.standing],
        it.waits,
        _whole("expires_after_ms", it.expires_after_ms),
    )


def _settle(batch: Batch, it: Settle) -> tuple[Any, ...]:
    told = [
        (batch.budget(name), _whole("reserved", reserved), min(max(0, used), EXACT - 1))
        for name, reserved, used in it.usage
    ]
    return ("settle", _text("lease", it.lease), told, it.last)


def _release(batch: Batch, it: Release) -> tuple[Any, ...]:
    return ("release", _text("lease", it.lease), [batch.budget(name) for name in it.budgets])


def _renew(batch: Batch, it: Renew) -> tuple[Any, ...]:
    return (
        "renew",
        _text("lease", it.lease),
        [batch.budget(name) for name in it.budgets],
        _whole("lease_ms", it.lease_ms),
    )


def _withdraw(batch: Batch, it: Withdraw) -> tuple[Any, ...]:
    return ("leave", _text("ticket", it.ticket), [batch.line(name) for name in it.lines])


def _define(batch: Batch, it: Define) -> tuple[Any, ...]:
    return ("define", batch.budget(it.budget), limits_text(it.limits))


def _revise(batch: Batch, it: Revise) -> tuple[Any, ...]:
    return ("revise", batch.budget(it.budget), _whole("expected", it.expected), limits_text(it.limits))


_ENCODERS: dict[type, Callable[[Batch, Any], tuple[Any, ...]]] = {
    Take: _take,
    Settle: _settle,
    Release: _release,
    Renew: _renew,
    Withdraw: _withdraw,
    Define: _define,
    Revise: _revise,
}


def limits_text(limits: Limits) -> str:
    """Limits as they lie in the budget's hash: JSON with the names of core/limits.py."""
    return _json(limits).decode()


def _whole(field: str, value: int, end: int = EXACT) -> int:
    if not 0 <= value < end:
        raise BadOperation(field, value, f"must lie between 0 and {end - 1}")
    return value


def _text(field: str, value: str) -> str:
    if not value.isascii() or not 0 < len(value) <= LONGEST_NAME:
        raise BadOperation(field, value, f"must have 1 to {LONGEST_NAME} characters, all of them ASCII")
    return value
