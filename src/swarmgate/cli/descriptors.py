"""How many connections fit: the limit of open files is raised as far as the system lets us, then divided."""

import resource
from typing import Final

from swarmgate.core.errors import BadInput
from swarmgate.http1.upstreams import DEFAULT_LIMITS

MOST: Final = 20_000  # connections of callers, unless the operator says another number
_SPARE: Final = 1_024  # for idle connections, hosts beyond the targets, files, the control process
_UNLIMITED: Final = 1_048_576


def allowed() -> int:
    """How many files the system lets a process open, once it has raised its own limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def raise_limit() -> int:
    """Let this process open as many files as the system allows; that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = allowed()
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def connections(asked: int | None, targets: int, open_files: int) -> int:
    """
    How many connections callers may have; None asks for what fits.

    Errors: `BadInput` with the numbers if what was asked for does not fit beside the connections to targets.
    """
    left = open_files - _SPARE
    fits = max(left - targets * DEFAULT_LIMITS.most, left // 2)  # a call has one connection on each side
    kept = open_files - fits
    if asked is None:
        if fits < 1:
            raise BadInput(
                "connections", f"none fit: {open_files} files may be open and {kept} are kept; raise `ulimit -Hn`"
            )
        return min(fits, MOST)
    if asked > fits:
        reason = (
            f"{asked} do not fit: {open_files} files may be open, of which {kept} are kept for {targets} targets and the "
            f"gate itself; write at most {max(0, fits)}, or raise `ulimit -Hn`"
        )
        raise BadInput("connections", reason)
    return asked


def refused(asked: int | None, targets: int) -> list[str]:
    """Why `swarmgate up` would refuse so many connections on this machine; empty if it would not."""
    try:
        connections(asked, targets, allowed())
    except BadInput as bad:
        return [f"on this machine `swarmgate up` refuses the file: {bad}"]
    return []
