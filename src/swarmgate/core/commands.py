"""
Everything the core may ask for: a closed list of frozen commands, run in order by the pump.

`Take` (core/book.py) asks the store for one alternative, whole. Commands without content are one shared value each.
None of them returns anything: what comes of it is an event.
"""

from enum import Enum, StrEnum
from typing import Final, NamedTuple

from swarmgate.core.answers import Denied
from swarmgate.core.book import Take, Used
from swarmgate.core.outcome import Outcome
from swarmgate.core.reasons import Reason


class End(Enum):
    """The seven ends, one of which every accepted call reaches exactly once (design 2: P4)."""

    ANSWERED = "answered"
    FAILED = "failed"
    DEFERRED = "deferred"
    REFUSED = "refused"
    DEAD_LETTERED = "dead_lettered"
    UNKNOWN_EFFECT = "unknown_effect"
    CANCELLED = "cancelled"


class Connect:
    """Have a connection ready for the call's target."""


class Park:
    """Give the unused connection back."""


class Send:
    """Write the request."""


class Abort:
    """Drop the connection and whatever is on its way."""


class Relay:
    """Let the client see the answer, from what is held on."""


class Settle(NamedTuple):
    """Tell the store what was used of a lease."""

    lease: str
    usage: tuple[Used, ...]
    last: bool


class Release(NamedTuple):
    """Tell the store that nothing left: the reservations end unused."""

    lease: str
    budgets: tuple[str, ...]


class Renew(NamedTuple):
    """Keep a lease alive."""

    lease: str
    budgets: tuple[str, ...]
    lease_ms: int


class Leave(NamedTuple):
    """Give up the call's place in these lines."""

    lines: tuple[str, ...]


class Intent(NamedTuple):
    """Note the attempt before its first byte leaves."""

    attempt: int


class Note(NamedTuple):
    """
    Note how an attempt ended, or that there was no connection for one.

    `outcome` is None where the gate itself ended it; `sent` = a byte of the request had left; `rung` where it was.
    """

    attempt: int
    reason: Reason | None
    used: int
    outcome: Outcome | None = None
    sent: bool = True
    rung: int = 0


class Loss(StrEnum):
    """Why a grant came to nothing: neither spent nor given back (design 2: P1)."""

    TOO_OLD = "too_old"  # the store took longer than the route allows
    CALL_OVER = "call_over"  # the call had ended when the store's answer came


class Lose(NamedTuple):
    """Note that a grant is lost."""

    reason: Loss


class Answer(NamedTuple):
    """The call has ended; `denied` says when to come back if it was deferred."""

    end: End
    reason: Reason | None
    denied: Denied | None = None


Command = (
    Connect | Park | Send | Abort | Relay | Take | Settle | Release | Renew | Leave | Intent | Note | Lose | Answer
)

CONNECT: Final = Connect()
PARK: Final = Park()
SEND: Final = Send()
ABORT: Final = Abort()
RELAY: Final = Relay()
