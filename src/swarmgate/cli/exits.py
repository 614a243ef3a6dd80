"""What a command's exit code means: one list for all of them, so that scripts can rely on it."""

from enum import IntEnum


class Exit(IntEnum):
    """Ends of a command."""

    OK = 0
    FAILED = 1  # it ran, and what it was to do did not succeed
    USAGE = 2  # arguments, configuration or environment are wrong: nothing was started
    UNREACHABLE = 3  # an address cannot be had: the port is taken, or nobody answers there
