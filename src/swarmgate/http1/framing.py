"""
Message bodies: what a head promised, read strictly (chunks are written by render.py).

Here lives sans-io framing for both ends (RFC 9112 6 and 7): by length, chunked, until the connection closes, or none.
Payload comes out as it came in, never collected: memory stays at one read. Chunk extensions and trailers are dropped,
so nothing that was not judged is passed on (request_body.py refuses some of them). The common read is one whole chunk,
whose size is read digit by digit.
"""

import re
import string
from typing import Final

MAX_EXTENSION_BYTES: Final = 256
MAX_TRAILER_BYTES: Final = 8 * 1024
MAX_SIZE_LINE_BYTES: Final = 16 + MAX_EXTENSION_BYTES + 2
# of a read, its framing included; so many more chunks may be in each read, and in all of them:
USUAL_CHUNK_BYTES: Final = 24
MORE_A_READ, MORE_A_BODY = 64, 4_096
NO_BODY_STATUS: Final = frozenset({204, 304})

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[\t -~\x80-\xff]{0,256})?\r\n")
_MAYBE_SIZE_LINE: Final = re.compile(rb"(?:[0-9A-Fa-f]{1,15}(?:;[\t -~\x80-\xff]{0,256})?\r?)?")
_TRAILER_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")
_MAYBE_TRAILER_LINE: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?::[\t -~\x80-\xff]*)?)?\r?")

MOST_DIGITS: Final = 6  # of the size of a chunk that a read may hold
_NO_DIGIT: Final = 255
_CR: Final = 13
_LF: Final = 10
_DIGITS: Final = bytes(int(chr(byte), 16) if chr(byte) in string.hexdigits else _NO_DIGIT for byte in range(256))

_NONE: Final = 0
_LENGTH: Final = 1
_CLOSE: Final = 2
CHUNKED: Final = 3  # at the line of a size
_DATA: Final = 4
_DATA_END: Final = 5
_TRAILER: Final = 6


class BadBody(ValueError):
    """A body that breaks its framing: `field` (chunk, trailer, content-length), `reason` code, a sentence."""

    def __init__(self, field: str, reason: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field, self.reason, self.sentence = field, reason, sentence


class BodyReader:
    """
    Reads one body: `feed` gives the payload of a read, `done` tells its end, `leftover` holds bytes that came after.

    Made by `response_reader.response_body`, `request_body.request_body`, `by_length`, `until_close` or `no_body`.
    """

    __slots__ = ("_held", "_left", "_spare", "_step", "done", "leftover")

    def __init__(self, step: int, left: int = 0) -> None:
        self._step = step
        self._held = b""  # an unfinished line
        self.done = step == _NONE
        self._left = left  # payload bytes to come of this body or chunk; of trailers, the bytes that came
        self._spare = MORE_A_BODY  # chunks
        self.leftover = b""

    def feed(self, data: bytes) -> bytes:
        """The payload in this read, joined; raises BadBody, after which the connection is of no use."""
        step = self._step
        if step == CHUNKED and not self._held:  # the common read: one whole chunk
            size, pos, most = 0, 0, min(len(data), MOST_DIGITS)
            while pos < most:
                digit = _DIGITS[data[pos]]
                if digit == _NO_DIGIT:
                    break
                size = size << 4 | digit
                pos += 1
            end = pos + 2 + size
            if size and len(data) == end + 2 and data[pos] == _CR and data[pos + 1] == _LF and data.endswith(b"\r\n"):
                return data[pos + 2 : end]
        if step >= CHUNKED:
            return self._feed_chunks(data)
        if step == _LENGTH:
            if len(data) < self._left:
                self._left -= len(data)
                return data
            return self._end(data, self._left)
        if step == _CLOSE:
            return data
        self.leftover += data
        return b""

    def eof(self) -> bool:
        """Whether the connection's end is this body's proper end."""
        return self.done or self._step == _CLOSE

    def _end(self, data: bytes, pos: int) -> bytes:
        """The body ended before `pos`: the rest belongs to nobody yet."""
        self._step, self.done, self.leftover = _NONE, True, data[pos:]
        return data[:pos]

    def _feed_chunks(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        payload: list[bytes] = []
        steps = self._size, self._data, self._data_end, self._trailer
        pos, most = 0, self._spare + MORE_A_READ + len(data) // USUAL_CHUNK_BYTES
        while pos >= 0 and not self.done:
            pos = steps[self._step - CHUNKED](data, pos, payload)
            if len(payload) > most:  # a byte each costs the reader much more than whoever writes them (P14)
                raise BadBody("chunk", "chunks_too_small", f"they hold less than {USUAL_CHUNK_BYTES} bytes each")
        self._spare = min(MORE_A_BODY, most - len(payload))
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _wait(self, data: bytes, pos: int) -> int:
        self._held = data[pos:]
        return -1

    def _size(self, data: bytes, pos: int, payload: list[bytes]) -> int:
        line = _SIZE_LINE.match(data, pos)
        if line is None:
            if len(data) - pos > MAX_SIZE_LINE_BYTES or not _MAYBE_SIZE_LINE.fullmatch(data, pos):
                raise BadBody("chunk", "bad_chunk_size", "its line is not hexadecimal digits and a short extension")
            return self._wait(data, pos)
        size, pos = int(line[1], 16), line.end()
        if size == 0:
            self._step, self._left = _TRAILER, 0
            return pos
        end = pos + size
        if data[end : end + 2] == b"\r\n":  # whole, with its end: stay here
            payload.append(data[pos:end])
            return end + 2
        self._left, self._step = size, _DATA
        return pos

    def _data(self, data: bytes, pos: int, payload: list[bytes]) -> int:
        part = data[pos : pos + self._left]
        if part:
            payload.append(part)
            self._left -= len(part)
        if self._left:
            return -1
        self._step = _DATA_END
        return pos + len(part)

    def _data_end(self, data: bytes, pos: int, _payload: list[bytes]) -> int:
        end = data[pos : pos + 2]
        if end == b"\r\n":
            self._step = CHUNKED
            return pos + 2
        if end not in {b"", b"\r"}:
            raise BadBody("chunk", "bad_chunk_end", "a chunk does not end where its size says")
        return self._wait(data, pos)

    def _trailer(self, data: bytes, pos: int, _payload: list[bytes]) -> int:
        """Trailers are read for their end and dropped: none is needed, and forbidden ones are an attack (RFC 9110 6.5)."""
        end = data.find(b"\r\n", pos)
        if end == pos:
            self._end(data, pos + 2)
            return -1
        pattern, line_end = (_MAYBE_TRAILER_LINE, len(data)) if end < 0 else (_TRAILER_LINE, end)
        if self._left + line_end - pos > MAX_TRAILER_BYTES:
            raise BadBody("trailer", "trailer_too_large", f"more than {MAX_TRAILER_BYTES} bytes")
        if not pattern.fullmatch(data, pos, line_end):
            raise BadBody("trailer", "bad_trailer", "a line is no header field")
        if end < 0:
            return self._wait(data, pos)
        self._left += end + 2 - pos
        return end + 2


def until_close() -> BodyReader:
    """A response body that only the end of the connection ends, or the bytes of a tunnel."""
    return BodyReader(_CLOSE)


def by_length(length: int) -> BodyReader:
    """As many bytes, at least one."""
    return BodyReader(_LENGTH, length)


def no_body() -> BodyReader:
    """Nothing at all: done at once."""
    return BodyReader(_NONE)


class _Read(BodyReader):
    """The body of a message that came whole in one read: its payload was taken already."""

    __slots__ = ()

    def feed(self, _data: bytes) -> bytes:
        """Nothing is ever fed to it: it is shared by all connections."""
        raise RuntimeError("a body that was read whole is fed again")


READ: Final = _Read(_NONE)
