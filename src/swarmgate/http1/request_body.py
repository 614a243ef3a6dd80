"""
The body of a request, read more strictly than an answer's: other readers refuse what would be served here, or read it otherwise.

Here lives what concerns callers alone. A trailer that frames, routes or speaks of the connection is none (RFC 9110 6.5.1), and a chunk's extension has the
form of RFC 9112 7.1.1, without spaces. What targets say of the kind is left behind, since it reaches nobody (UP-16).
"""

import re
from typing import Final

from swarmgate.http1.framing import CHUNKED, BadBody, BodyReader, by_length, no_body
from swarmgate.http1.head import RequestHead

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_SIZE_LINE: Final = re.compile(
    rb'[0-9A-Fa-f]+(?:;%b(?:=(?:%b|"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*"))?)*' % (_TOKEN, _TOKEN)
)
_NO_TRAILERS: Final = frozenset(
    {
        *(b"content-length", b"transfer-encoding", b"te", b"trailer", b"host", b"expect"),
        *(b"connection", b"proxy-connection", b"keep-alive", b"upgrade"),
    }
)


class RequestChunks(BodyReader):
    """The chunks of a request."""

    __slots__ = ()

    def _size(self, data: bytes, pos: int, payload: list[bytes]) -> int:
        end = data.find(b"\r\n", pos)
        if end >= 0 and not _SIZE_LINE.fullmatch(data, pos, end):
            raise BadBody(
                "chunk", "bad_chunk_size", "its line is not hexadecimal digits and ;name=value without spaces"
            )
        return super()._size(data, pos, payload)

    def _trailer(self, data: bytes, pos: int, payload: list[bytes]) -> int:
        end = data.find(b"\r\n", pos)
        name = data[pos:end].partition(b":")[0].lower() if end > pos else b""
        if name in _NO_TRAILERS:
            raise BadBody("trailer", "bad_trailer", f"{name.decode()} must not stand behind the body")
        return super()._trailer(data, pos, payload)


def request_body(head: RequestHead) -> BodyReader:
    """The reader for a request's body: without a length and without chunks there is none (RFC 9112 6.3)."""
    if head.chunked:
        return RequestChunks(CHUNKED)
    return by_length(head.content_length) if head.content_length else no_body()
