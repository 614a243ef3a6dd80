"""
Whoever speaks plain HTTP to a port that speaks TLS is told so.

Both loops close such a connection without a word, and an SDK says no more than that it was closed. Here lives the gate's
end of a caller's handshake: the library sees by the first bytes that they are HTTP, and the answer to that is HTTP, too.
What the caller still sends is dropped unread until it goes, or until its time for a handshake is over.
"""

import ssl
from typing import Any, Final

from swarmgate.http1.refusal_id import FIELD, refusal_id
from swarmgate.http1.render import error_body, response_head

_PLAIN: Final = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})  # as OpenSSL names what it was sent
_SENTENCE: Final = "this port speaks TLS: begin the URL with https:// instead of http://"


class CallerHandshake(ssl.SSLObject):
    """One caller's TLS; `pipes` are what comes from it and what goes to it, until its handshake is over."""

    pipes: tuple[ssl.MemoryBIO, ssl.MemoryBIO] | None = None
    _is_told = False

    def do_handshake(self) -> None:
        """As ever, but for who speaks HTTP: the loops take him for one who has more to say."""
        if self.pipes is not None and self._is_told:
            self.pipes[0].read()
            raise ssl.SSLWantReadError
        try:
            super().do_handshake()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            if self.pipes is None or error.reason not in _PLAIN:
                raise
            self._is_told = True
            self.pipes[1].write(_answer())
            raise ssl.SSLWantReadError from error
        self.pipes = None


class CallerContext(ssl.SSLContext):
    """What makes them."""

    sslobject_class = CallerHandshake

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *more: Any, **named: Any) -> ssl.SSLObject:
        """TLS over these two."""
        made = super().wrap_bio(incoming, outgoing, *more, **named)
        assert isinstance(made, CallerHandshake)
        made.pipes = incoming, outgoing
        return made


def _answer() -> bytes:
    headers, body = error_body(400, "caller_not_tls", _SENTENCE)
    return response_head(400, [*headers, (FIELD, refusal_id().encode())], length=len(body), close=True) + body
