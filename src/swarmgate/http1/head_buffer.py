"""
Where a head collects until its blank line has come.

Here lives the search for the blank line and what ends a hopeless wait: nothing is parsed. A head may come one byte per
read, so each byte is looked at once and nothing is copied twice; the common head comes in one read and is not copied.
"""

from typing import Final

from swarmgate.http1.refusals import BadHead

MAX_HEAD_BYTES: Final = 32 * 1024
REQUEST_FIRST: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # a method; TLS, CRLF and other protocols end the wait at once
RESPONSE_FIRST: Final = b"H"


class HeadBuffer:
    """Collects bytes until a head is whole: at most MAX_HEAD_BYTES, each byte searched once."""

    __slots__ = ("_first_bytes", "_held")

    def __init__(self, first_bytes: bytes) -> None:
        self._held = bytearray()
        self._first_bytes = first_bytes

    def __len__(self) -> int:
        return len(self._held)

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """
        (head with its blank line, the bytes after it), or None while the blank line is still to come.

        Raises BadHead when no blank line can follow: too long, or bytes that begin no HTTP/1.1 message.
        """
        held = self._held
        if not held:
            end = data.find(b"\r\n\r\n") + 4
            if 4 <= end <= MAX_HEAD_BYTES:
                return data[:end], data[end:]
        searched = max(0, len(held) - 3)
        held += data
        end = held.find(b"\r\n\r\n", searched) + 4
        if not 4 <= end <= MAX_HEAD_BYTES:
            self._doubt(searched)
            return None
        whole = bytes(held)
        held.clear()
        return whole[:end], whole[end:]

    def _doubt(self, searched: int) -> None:
        held = self._held
        if len(held) >= MAX_HEAD_BYTES:
            raise BadHead(431, "head_too_large", f"no blank line within {MAX_HEAD_BYTES} bytes")
        if held and held[0] not in self._first_bytes:
            raise BadHead(400, "not_http", "the first byte begins no HTTP/1.1 message")
        if held.count(b"\n", searched) > held.count(b"\r\n", max(0, searched - 1)):
            raise BadHead(400, "bare_lf", "a line ends in LF without CR")
