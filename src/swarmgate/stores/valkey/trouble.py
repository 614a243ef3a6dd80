"""
Why a server did not decide: one closed list, and the table from what clients and servers say to it (reliability ST-09).

Whatever is not a decision is one of these; none of them ever admits anything.
"""

from enum import StrEnum

from redis import exceptions as redis_errors


class Trouble(StrEnum):
    """The code that `StoreLost` carries."""

    UNREACHABLE = "gate_store_unreachable"  # no connection, or it broke
    SILENT = "gate_store_silent"  # no answer in time: frozen, overloaded or cut off
    LOADING = "gate_store_loading"  # reads its data after a start
    BUSY = "gate_store_busy"  # runs somebody's long script
    READ_ONLY = "gate_store_read_only"  # a replica, or writes are forbidden by it
    MOVED = "gate_store_moved"  # another node of the cluster has our slot, or none has
    FULL = "gate_store_full"  # out of memory or disk, or our own queue is at its cap
    REFUSED = "gate_store_refused"  # credentials or permissions
    UNFIT = "gate_store_unfit"  # too old, or it may evict budgets
    BROKEN = "gate_store_broken"  # its answer is not one of our script's
    CLOSED = "gate_store_closed"  # we closed it


class StoreTrouble(Exception):
    """The server did not decide; `trouble` says why."""

    def __init__(self, trouble: Trouble, detail: object) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble = trouble


# The first match wins: some of these classes are kinds of others.
_BY_CLASS: tuple[tuple[type[Exception], Trouble], ...] = (
    (redis_errors.BusyLoadingError, Trouble.LOADING),
    (redis_errors.AuthenticationError, Trouble.REFUSED),
    (redis_errors.AuthorizationError, Trouble.REFUSED),
    (redis_errors.NoPermissionError, Trouble.REFUSED),
    (redis_errors.ReadOnlyError, Trouble.READ_ONLY),
    (redis_errors.MasterDownError, Trouble.READ_ONLY),
    (redis_errors.AskError, Trouble.MOVED),
    (redis_errors.TryAgainError, Trouble.MOVED),
    (redis_errors.ClusterDownError, Trouble.MOVED),
    (redis_errors.OutOfMemoryError, Trouble.FULL),
    (redis_errors.TimeoutError, Trouble.SILENT),
    (TimeoutError, Trouble.SILENT),
    (redis_errors.ConnectionError, Trouble.UNREACHABLE),
    (OSError, Trouble.UNREACHABLE),
)
_BY_WORD = {
    "BUSY": Trouble.BUSY,
    "MISCONF": Trouble.FULL,
    "NOREPLICAS": Trouble.READ_ONLY,
    "LOADING": Trouble.LOADING,
    "MASTERDOWN": Trouble.READ_ONLY,
}


def trouble_of(error: BaseException) -> Trouble:
    """What an exception of the client means; what nobody knows is BROKEN."""
    for kind, trouble in _BY_CLASS:
        if isinstance(error, kind):
            return trouble
    return _BY_WORD.get(str(error).split(" ", 1)[0], Trouble.BROKEN)
