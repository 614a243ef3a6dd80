"""
Before every route of the operator port: Host, Origin, token; and what each answer tells a browser not to do with it.

The Host must be this port's own name and an Origin, if there is one, its own origin: a page in the operator's browser may neither
rebind a name nor post here, and no answer allows another site to read it (reliability AZ-02, AZ-04, AZ-05). The token is asked
for in a header that no form and no link can carry, so there is no session and no cookie. Who guesses tokens is slowed down (AZ-09).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swarmgate.control.token import is_same
from swarmgate.core.guesses import Guess, Guesses

PUBLIC: Final[frozenset[str]] = frozenset()
# Of every answer: it runs nothing, loads nothing, stands in no frame, is kept by nobody and is what it says that it is.
_NOTHING: Final = b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HARMLESS: Final = (
    (b"content-security-policy", _NOTHING + b"; style-src 'unsafe-inline'; img-src data:"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Checked:
    """An application behind the checks; `hosts` are the values of Host that mean it, `told` hears of wrong tokens."""

    def __init__(
        self, inner: ASGIApp, token: str, hosts: frozenset[str], told: Callable[[str, Guess], None] = lambda *_: None
    ) -> None:
        self._inner = inner
        self._token = token
        self._hosts = hosts
        self._told = told
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers, scope)

        async def harmless(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HARMLESS]}
            await send(message)

        await (self._inner if refusal is None else refusal)(scope, receive, harmless)

    def _refusal(self, headers: Mapping[str, str], scope: Scope) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return error(421, "host", "is not this port")
        origin = headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self._hosts:
            return error(403, "origin", "is another site")
        told = headers.get("authorization")
        scheme, _, said = (told or "").partition(" ")
        if scope["path"] in PUBLIC or (scheme.lower() == "bearer" and is_same(said.strip(), self._token)):
            return None
        return self._wrong(scope) if told is not None else _no_token()

    def _wrong(self, scope: Scope) -> Response:
        """A token that is none; the answer says nothing of how wrong it is."""
        source = scope["client"][0] if scope.get("client") else ""
        guess = self._guesses.wrong(source, int(asyncio.get_running_loop().time() * 1_000))
        self._told(source, guess)
        if not guess.wait_ms:
            return _no_token()
        refused = error(
            429, "authorization", "was wrong too often from this address; the right token is let in at any time"
        )
        refused.headers["retry-after"] = str(-(-guess.wait_ms // 1_000))
        return refused


def error(status: int, field: str, reason: str) -> Response:
    """What is wrong with which part of a request."""
    return JSONResponse({"error": {"field": field, "reason": reason}}, status)


def _no_token() -> Response:
    return error(401, "authorization", "is not `Bearer` and the token of this gate's state folder")
