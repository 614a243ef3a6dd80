"""
Why a server did not decide: the table from what clients and servers say to a reason (reliability ST-09).

Whatever is not a decision is one of the reasons `gate_store_...`; none of them ever admits anything.
"""

from redis import exceptions as redis_errors

from swarmgate.core.reasons import Reason


class StoreTrouble(Exception):
    """The server did not decide; `trouble` says why."""

    def __init__(self, trouble: Reason, detail: object) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble = trouble


# The first match wins: some of these classes are kinds of others.
_BY_CLASS: tuple[tuple[type[Exception], Reason], ...] = (
    (redis_errors.BusyLoadingError, Reason.GATE_STORE_LOADING),
    (redis_errors.AuthenticationError, Reason.GATE_STORE_REFUSED),
    (redis_errors.AuthorizationError, Reason.GATE_STORE_REFUSED),
    (redis_errors.NoPermissionError, Reason.GATE_STORE_REFUSED),
    (redis_errors.ReadOnlyError, Reason.GATE_STORE_READ_ONLY),
    (redis_errors.MasterDownError, Reason.GATE_STORE_READ_ONLY),
    (redis_errors.AskError, Reason.GATE_STORE_MOVED),
    (redis_errors.TryAgainError, Reason.GATE_STORE_MOVED),
    (redis_errors.ClusterDownError, Reason.GATE_STORE_MOVED),
    (redis_errors.OutOfMemoryError, Reason.GATE_STORE_FULL),
    (redis_errors.TimeoutError, Reason.GATE_STORE_SILENT),
    (TimeoutError, Reason.GATE_STORE_SILENT),
    (redis_errors.ConnectionError, Reason.GATE_STORE_UNREACHABLE),
    (OSError, Reason.GATE_STORE_UNREACHABLE),
)
_BY_WORD = {
    "BUSY": Reason.GATE_STORE_BUSY,
    "MISCONF": Reason.GATE_STORE_FULL,
    "NOREPLICAS": Reason.GATE_STORE_READ_ONLY,
    "LOADING": Reason.GATE_STORE_LOADING,
    "MASTERDOWN": Reason.GATE_STORE_READ_ONLY,
}


def trouble_of(error: BaseException) -> Reason:
    """What an exception of the client means; what nobody knows is BROKEN."""
    for kind, trouble in _BY_CLASS:
        if isinstance(error, kind):
            return trouble
    return _BY_WORD.get(str(error).split(" ", 1)[0], Reason.GATE_STORE_BROKEN)
