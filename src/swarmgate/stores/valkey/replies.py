"""
The answer of the script (stores/valkey/book.lua), typed: what came back for each operation of a batch.

Pure: no I/O. Whatever is not an answer of this script to this batch is `BadAnswer`, never half an answer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from swarmgate.core.answers import Blocker, BlockKind, Denied, Granted, Revised
from swarmgate.core.limits import Tier
from swarmgate.core.operations import Done, Reply, Undefined
from swarmgate.stores.valkey.wire import Batch

_unpack = msgspec.msgpack.Decoder().decode
_kinds = tuple(BlockKind)
_tiers = tuple(Tier)


class BadAnswer(ValueError):
    """The server's answer is not one of this script's."""


class Elsewhere(NamedTuple):
    """The budget stands in another line than the caller thought: another gate defined it. Ask again with that line."""

    now_ms: int
    budget: str
    line: str


class Names(NamedTuple):
    """What the indices of an answer mean, less 1."""

    budgets: list[str]
    lines: list[str]


class Answered(NamedTuple):
    """What the script answered: the instant it decided at, the birth of the store, and a reply per operation."""

    now_ms: int
    birth_ms: int
    clock_steps: int
    replies: list[Reply | Elsewhere]


def decode(batch: Batch, answer: bytes) -> Answered:
    """
    The replies to `batch`, in the order of its operations.

    Errors: `BadAnswer` if it is not this script's answer to as many operations.
    """
    names = Names(list(batch.budgets), list(batch.lines))
    try:
        now_ms, birth_ms, clock_steps, answers = _unpack(answer)
        replies = [_DECODERS[one[0]](names, now_ms, one) for one in answers]
    except (msgspec.DecodeError, TypeError, ValueError, LookupError) as error:
        raise BadAnswer(f"not an answer of this script: {error}") from error
    if len(replies) != len(batch):
        raise BadAnswer(f"{len(replies)} answers to {len(batch)} operations")
    return Answered(now_ms, birth_ms, clock_steps, replies)


def _granted(_: Names, now_ms: int, told: list[Any]) -> Granted:
    return Granted(now_ms, told[1], told[2])


def _denied(names: Names, now_ms: int, told: list[Any]) -> Denied:
    _, kind, ready_ms, certain_ms, due_ms, chosen, blockers, score, lines, position, depth = told
    blocking = tuple(
        [
            Blocker(names.budgets[one[0] - 1], _kinds[one[1]], *one[2:])._replace(tier=_tiers[one[-1]])
            for one in blockers
        ]
    )
    standing = tuple([names.lines[index - 1] for index in lines])
    return Denied(
        now_ms, _kinds[kind], ready_ms, certain_ms, due_ms, chosen, blocking, score, standing, position, depth
    )


def _revised(_: Names, now_ms: int, told: list[Any]) -> Revised:
    return Revised(now_ms, done=told[1], revision=told[2])


def _done(_: Names, now_ms: int, told: list[Any]) -> Done:
    return Done(now_ms, told[1])


def _undefined(names: Names, now_ms: int, told: list[Any]) -> Undefined:
    return Undefined(now_ms, names.budgets[told[1] - 1])


def _elsewhere(names: Names, now_ms: int, told: list[Any]) -> Elsewhere:
    return Elsewhere(now_ms, names.budgets[told[1] - 1], told[2])


_DECODERS: dict[str, Callable[[Names, int, list[Any]], Reply | Elsewhere]] = {
    "granted": _granted,
    "denied": _denied,
    "revised": _revised,
    "done": _done,
    "undefined": _undefined,
    "elsewhere": _elsewhere,
}
