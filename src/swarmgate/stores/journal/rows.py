"""
What stands in the journal: one row per fact, an array in one line of JSON, named by its first element.

Rows only grow at their end, with defaults: an older row is read by newer code, and the other way round. `seq` counts the
rows of a journal and never goes back, over restarts either; a number that is missing is a row that was not recorded.
Instants are ms of the gate's clock (since the epoch, going on evenly); `""`, 0 and `()` mean: not said, -1: not known, and
-2 of tokens: what was told is no count. Who reads rows as they come (the ledger, metrics, log lines) may rely on: an `Intent`
precedes its request's first byte; each `Intent` is answered by one `Note`, or its gate died; each call ends once, in a `Note`
with `end` or in an `End`. In the file a note is a `Done`, which says nothing that its intent said; `noted` puts them together.
"""

from typing import Final

import msgspec

INTENT: Final = "intent"
DONE: Final = "done"


class Boot(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="boot"):
    """A gate began: its run's name, our version, its process, and the wall clock as it stood."""

    seq: int
    at_ms: int
    run: str
    version: str
    pid: int
    wall_ms: int


class Stop(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="stop"):
    """A gate ended in order, with `left` calls given up. A `Boot` without it before is a crash."""

    seq: int
    at_ms: int
    run: str
    left: int


class Intent(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=INTENT):
    """
    An attempt is about to leave: who caused it, where it goes, with which key, under which limits.

    `revision` is the policy in force (the number of the newest `Revision`). `prompt` and `reserve` are the units taken and
    reserved. `charges` are units that counters took (budget, units): what a restart must not grant again. `flat_micro` is
    what it costs whatever it uses, 0 = nobody bills it, -1 = it goes by its tokens, or nobody knows.
    """

    seq: int
    at_ms: int
    call: str
    attempt: int
    agent: str
    task: str
    goal: str
    step: str
    operation: str
    task_type: str
    team: str
    priority: int
    target: str
    model: str
    key: str
    rung: int
    revision: int
    arrived_ms: int
    prompt: int
    reserve: int
    effect: str
    trace: str = ""
    charges: tuple[tuple[str, int], ...] = ()
    client_request_id: str = ""
    flat_micro: int = -1


class Done(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=DONE):
    """
    An attempt ended, as its file has it: `Note` says what the words mean. `content_at_ms` is an instant, 0 = none.

    `charges` are units that counters took beyond what intents said (budget, units). `estimated`: as `Note` says.
    """

    seq: int
    at_ms: int
    call: str
    attempt: int
    kind: str
    reason: str
    status: int
    sent: bool
    used: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    content_at_ms: int
    sent_bytes: int
    got_bytes: int
    out_ms: int
    end: str = ""
    end_reason: str = ""
    charges: tuple[tuple[str, int], ...] = ()
    estimated: bool = False


class Note(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="note"):
    """
    An attempt ended: `kind` of core/outcome.py, `reason` of core/reasons.py, `end` if the call ended with it.

    `used` = units of output charged; tokens as the target told them, or, where it did not tell all of them, `estimated`. `content_ms` = from the send to the first content,
    `took_ms` = to the end, `queue_ms` = from arrival to the send. `sent` = a byte of the request had left.
    `out_ms` = for how long it put its key out of use, -1 = until a person acts.
    """

    seq: int
    at_ms: int
    call: str
    attempt: int
    kind: str
    reason: str
    status: int
    sent: bool
    used: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    content_ms: int
    took_ms: int
    queue_ms: int
    sent_bytes: int
    got_bytes: int
    out_ms: int
    priority: int
    target: str
    model: str
    key: str
    task_type: str
    team: str
    end: str = ""
    end_reason: str = ""
    charges: tuple[tuple[str, int], ...] = ()
    estimated: bool = False
    client_request_id: str = ""
    flat_micro: int = -1


class Blocked(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One budget that did not admit: `kind` of core/answers.py (time, line, event, never), under which revision."""

    budget: str
    kind: str
    revision: int
    limit: int
    window_ms: int
    remaining: int


class End(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="end"):
    """
    A call ended while none of its attempts ran: deferred, refused, given up, left by its caller.

    `target` and `model` are those of the rung it stood at. A deferral says what blocked and when to come back, as instants.
    """

    seq: int
    at_ms: int
    call: str
    end: str
    reason: str
    attempts: int
    agent: str
    task: str
    goal: str
    step: str
    operation: str
    task_type: str
    team: str
    priority: int
    target: str
    model: str
    arrived_ms: int
    trace: str = ""
    not_before_ms: int = 0
    certain_ms: int = 0
    position: int = 0
    depth: int = 0
    blocked: tuple[Blocked, ...] = ()
    client_request_id: str = ""


class Unconnected(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="unconnected"):
    """A call had no connection to its target; nothing was taken and nothing left."""

    seq: int
    at_ms: int
    call: str
    target: str
    model: str
    kind: str
    reason: str


class Revision(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="revision"):
    """
    A limit is in force from here on: the budget's own `revision`, and the policy's number that attempts carry.

    `amount` of `unit` per `window_ms` is what was published or set (0 = nothing is known); the rest is what it compiled to.
    `key` = it holds for that key alone. `since_ms` is when it was set, which is earlier where a start only says again what holds.
    """

    seq: int
    at_ms: int
    policy: int
    budget: str
    revision: int
    target: str
    unit: str
    amount: int
    window_ms: int
    kind: str
    burst: int
    quota: int
    per_ms: int
    author: str
    reason: str
    since_ms: int = 0
    paused: bool = False
    key: str = ""


class CeilingSet(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="ceiling"):
    """The longest prompt of a task type from here on, in tokens (0 = any), and what becomes of a longer one."""

    seq: int
    at_ms: int
    task_type: str
    tokens: int
    over: str
    author: str
    reason: str


class Way(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="way"):
    """What attempts to a target with a key take from, from here on: the names of budgets that keep a limit."""

    seq: int
    at_ms: int
    target: str
    key: str
    budgets: tuple[str, ...]


class KeyEvent(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="key"):
    """
    An agent's key was created, rotated or revoked: `what`; `key` is its id, `target` empty, `reason` who did it.

    A provider's key that leaves is told with the attempt that put it out (`Note.out_ms`).
    """

    seq: int
    at_ms: int
    target: str
    key: str
    what: str
    reason: str = ""
    until_ms: int = 0


class LostToken(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="lost"):
    """A grant of which nothing left: neither spent at the target nor given back."""

    seq: int
    at_ms: int
    call: str
    target: str
    reason: str


class ClockStep(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="clock"):
    """The wall clock moved against ours: its reading now, and by how much it stepped."""

    seq: int
    at_ms: int
    wall_ms: int
    step_ms: int


class Gap(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="gap"):
    """So many rows could not be recorded since that instant, and why."""

    seq: int
    at_ms: int
    rows: int
    since_ms: int
    reason: str


class Counters(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="counters"):
    """
    What counters hold at this row: units by the last instant of their use; attempts after it add to it.

    `whole` = a counter that is not named holds nothing; otherwise it is as it was. `ahead` are units that may be used from here
    on before the disk itself is told, at the machine's start `boot`: if that is over, the rows that told of them may be lost.
    """

    seq: int
    at_ms: int
    held: dict[str, dict[int, int]]
    whole: bool = True
    ahead: dict[str, int] = {}
    boot: str = ""


Row = (
    Boot
    | Stop
    | Intent
    | Done
    | Note
    | End
    | Unconnected
    | Revision
    | CeilingSet
    | Way
    | KeyEvent
    | LostToken
    | ClockStep
    | Gap
    | Counters
)


_NOT_TOLD: Final = Intent(0, 0, "", 0, "", "", "", "", "", "", "", 0, "", "", "", 0, 0, 0, 0, 0, "")


def noted(done: Done, intent: Intent | None) -> Note:
    """The end of an attempt with what its intent said; without one (it was not recorded) nothing is said of that."""
    said = _NOT_TOLD if intent is None else intent
    took_ms = 0 if intent is None else max(0, done.at_ms - said.at_ms)
    content_ms = done.content_at_ms - said.at_ms if done.content_at_ms else took_ms if done.status else -1
    return Note(
        done.seq,
        done.at_ms,
        done.call,
        done.attempt,
        done.kind,
        done.reason,
        done.status,
        done.sent,
        done.used,
        done.prompt_tokens,
        done.output_tokens,
        done.cached_tokens,
        -1 if intent is None else content_ms,
        took_ms,
        max(0, said.at_ms - said.arrived_ms),
        done.sent_bytes,
        done.got_bytes,
        done.out_ms,
        said.priority,
        said.target,
        said.model,
        said.key,
        said.task_type,
        said.team,
        done.end,
        done.end_reason,
        estimated=done.estimated,
        client_request_id=said.client_request_id,
        flat_micro=said.flat_micro,
    )
