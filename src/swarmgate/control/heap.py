"""How the data process keeps its memory: what stays is not looked through again, and what comes back is not given away."""

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Final

YOUNG_OBJECTS: Final = 10_000  # between two looks for cycles: a call makes some hundred objects, and its end frees them
KEPT_BYTES: Final = 32 * 1024 * 1024
LARGE_BYTES: Final = 1024 * 1024
_M_TRIM_THRESHOLD: Final = -1  # mallopt(3)
_M_MMAP_THRESHOLD: Final = -3


def settle() -> None:
    """
    From now on, when everything stands that lives as long as the process.

    Up to `KEPT_BYTES` of free pages stay with it, and only what is larger than `LARGE_BYTES` has pages of its own. glibc's limits
    follow the buffer that was freed last: in some runs the pages of each body of 130 KB went back and came again, 30 page faults
    a request and half of its time. Other C libraries do otherwise and are left as they are.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
            mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
