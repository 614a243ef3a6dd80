"""A long body while it comes in: it grows where it will be read, so that nothing has to be joined when it is whole."""

from mmap import mmap
from typing import Final

from swarmgate.core.errors import BadInput
from swarmgate.gate.utf_8 import Utf8

# each is a token of its own to most models, and no context is as long; 32 MiB of `[],` took 120 ms
MOST_MARKS: Final = 4_000_000
MOST_ESCAPES: Final = 4_000_000  # each is read on its own; a member's name of 16 million took 90 ms
_MARKS: Final = (b",", b"[", b"{")


class LongBody:
    """So many bytes at most; memory is taken as they come, not before."""

    __slots__ = ("_escapes", "_marks", "_room", "_size", "_utf_8")

    def __init__(self, most_bytes: int) -> None:
        self._room = mmap(-1, most_bytes)  # joining 32 MiB, or moving them to where they have room, takes 40 ms
        self._marks = self._escapes = self._size = 0
        self._utf_8 = Utf8()

    def add(self, data: bytes) -> None:
        """
        The next bytes. Errors: `BadInput` when so many values may stand in them that reading them would take too long, or what
        came is not UTF-8.

        What a JSON's values cost is their number; none comes without a comma or an opening bracket before it. What its texts cost
        is their escapes.
        """
        self._marks += sum(map(data.count, _MARKS))
        if self._marks > MOST_MARKS:
            raise BadInput("body", f"has more than {MOST_MARKS} commas and opening brackets")
        self._escapes += data.count(b"\\")
        if self._escapes > MOST_ESCAPES:
            raise BadInput("body", f"has more than {MOST_ESCAPES} backslashes")
        self._utf_8.add(data)
        ends = self._size + len(data)
        self._room[self._size : ends] = data
        self._size = ends

    def whole(self) -> memoryview:
        """All that came; it is there as long as anybody refers to it or to a part of it."""
        return memoryview(self._room)[: self._size]
