"""
Everything that can happen to a call: a closed list of frozen events.

Events without content are one shared value each, so that firing them costs nothing. Granted and Denied
(core/answers.py) are events too.
"""

from enum import Enum
from typing import Final, NamedTuple

from swarmgate.core.answers import Denied, Granted
from swarmgate.core.commands import End
from swarmgate.core.outcome import Outcome, QuotaLeft
from swarmgate.core.reasons import Reason


class LostKind(Enum):
    """How an attempt died without an answer."""

    CONNECT_TIMEOUT = "connect_timeout"  # no answer to a dial within 5 s
    POOL_FULL = "pool_full"  # too many calls wait for a connection already; says nothing about the target
    CONNECT = "connect"  # no connection within 5 s, or refused
    TLS = "tls"  # the handshake was not accepted
    UNTRUSTED = "untrusted"  # the certificate was not accepted
    UNNAMED = "unnamed"  # there is no such name
    NAMES = "names"  # too many names of the target's domain were looked up lately; says nothing about the target
    DENIED = "denied"  # the name leads to an address that may not be dialled
    STALE = "stale"  # a kept connection was closed before the request left
    RESET = "reset"  # closed or reset after bytes had left
    FIRST_CONTENT = "first_content"  # no first content event in time: the trigger of degradation
    IDLE = "idle"  # content stopped
    BROKEN = "broken"  # bytes that are no HTTP, or a body that ends too early


class Arrived:
    """A call stands at the gate."""


class Ready:
    """A connection to the call's target is ready to be written."""


class Woken:
    """The instant came that the call waits for: its ticket is due, its turn came, or its backoff is over."""


class Content:
    """The first content of the answer is here; from now on the client may see it."""


class Delivered:
    """The request has arrived at the target: its bytes were acknowledged."""


class ClientLeft:
    """The caller closed its connection while its call was open."""


class DeadlinePassed:
    """The caller's total time is over."""


class GivenUp(NamedTuple):
    """The gate ends the call: it stops, met a bug, its caller's key is no longer good, or its answer has no end; `reason` says which."""

    reason: Reason


class OwnAnswer(NamedTuple):
    """The gate answers a call before it stands in any line: what it may not do, or what was done already."""

    end: End
    reason: Reason


class Lost(NamedTuple):
    """An attempt ended without an answer; `sent` = a byte had left, `used` = units of output seen."""

    kind: LostKind
    sent: bool
    used: int = 0


class Progress(NamedTuple):
    """
    Units of output that arrived since the last word; keeps the reservation alive.

    `cost`: micro-units of all that came, where money is counted and it may be the last word; 0 = not told.
    """

    used: int
    cost: int = 0


class Ended(NamedTuple):
    """
    The target's answer is whole: what it means, and the units of output it took (-1 = unknown, charge the estimate).

    `left`: what it says is left of its key's quota, if it says so. `status` is told of errors. `cost`: micro-units, where money
    is counted; -1 = unknown. `beyond`: how much of `used` is prompt beyond its estimate. `output`: tokens of the answer, whoever counts
    them; -1 = unknown.
    """

    outcome: Outcome
    used: int
    left: QuotaLeft | None = None
    status: int = 0
    cost: int = -1
    beyond: int = 0
    output: int = -1


class StoreLost(NamedTuple):
    """The store did not decide within 100 ms."""

    reason: Reason


Event = (
    Arrived
    | Ready
    | Woken
    | Content
    | Delivered
    | ClientLeft
    | DeadlinePassed
    | GivenUp
    | OwnAnswer
    | Granted
    | Denied
    | Lost
    | Progress
    | Ended
    | StoreLost
)

ARRIVED: Final = Arrived()
READY: Final = Ready()
WOKEN: Final = Woken()
CONTENT: Final = Content()
DELIVERED: Final = Delivered()
CLIENT_LEFT: Final = ClientLeft()
DEADLINE_PASSED: Final = DeadlinePassed()
