"""A long body while it comes in: it grows where it will be read, so that nothing has to be joined when it is whole."""

from mmap import mmap


class LongBody:
    """So many bytes at most; memory is taken as they come, not before."""

    __slots__ = ("_room", "_size")

    def __init__(self, most_bytes: int) -> None:
        self._room = mmap(-1, most_bytes)  # joining 32 MiB, or moving them to where they have room, takes 40 ms
        self._size = 0

    def add(self, data: bytes | memoryview) -> None:
        """The next bytes."""
        ends = self._size + len(data)
        self._room[self._size : ends] = data
        self._size = ends

    def whole(self) -> memoryview:
        """All that came; it is there as long as anybody refers to it or to a part of it."""
        return memoryview(self._room)[: self._size]
