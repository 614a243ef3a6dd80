"""Keys in memory stay there: no core dump of this process is written, and no other one of its user reads its memory."""

import ctypes
import resource
import sys
from contextlib import suppress
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # prctl(2)


def leave_no_dump() -> None:
    """
    From now on (reliability SC-12).

    The limit alone does not bind a handler that core_pattern names; on Linux a process that is not dumpable has neither, and
    its environment, where keys come from, is shown to root only.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
