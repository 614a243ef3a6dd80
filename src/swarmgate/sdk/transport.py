"""
Sending through the gate, for any client with httpx's transport interface.

A URL elsewhere becomes the gate's `/to/{scheme}/{host}/...`, and a redirect that the gate rewrote becomes the URL that it
stands for; the client sees no difference. Every request says who calls (attribution.py). A deferral is raised as
`Deferred`, except to OpenAI's and Anthropic's SDKs, which make an error of their own of it (`deferral_of` reads it).
"""

import os
import re
from typing import Any, Literal

from swarmgate.sdk.attribution import current
from swarmgate.sdk.deferral import STATUSES, deferral_of
from swarmgate.sdk.hops import walking

GATE = "http://127.0.0.1:8787"
MOST_DEFERRAL_BYTES = 64 * 1024
OnDeferral = Literal["raise", "return"]
MOST_MARKS = 256
_REDIRECT = re.compile(rb"/to/(\+[0-9]{1,2}x?d?/)?(https?)/([^/?]+)(.*)")
_COOKIE_PATH = re.compile(rb"; Path=/to/https?/[^/;]+([^;]*)")
_INSIDE = frozenset({b"location", b"set-cookie"})
_SDK = "x-stainless-lang"


class GateRoute:
    """
    How requests reach the gate at `gate` (else `SWARMGATE_URL`, else the usual address); `key` is the agent's own.

    Errors: ValueError for what is no URL of a gate.
    """

    _library: Any = None

    def __init__(
        self, gate: str = "", *, key: str = "", on_deferral: OnDeferral | None = None, inner: Any = None
    ) -> None:
        text = gate or os.environ.get("SWARMGATE_URL", "") or GATE
        self._gate = self._library.URL(text)
        if self._gate.scheme not in {"http", "https"} or not self._gate.host:
            raise ValueError(f"gate: is no URL of a gate; write {GATE}")
        self._key = key
        self._on_deferral = on_deferral
        self._marks: dict[str, bytes] = {}  # of redirects that are being followed, by where they lead
        self._inner = inner if inner is not None else self._own_inner()

    def _own_inner(self) -> Any:
        raise NotImplementedError

    def _prepared(self, request: Any) -> Any:
        """The request as the gate gets it; what it named itself wins over the context."""
        url, headers = request.url, request.headers.copy()
        if not self._is_gate(url):
            mark = self._marks.pop(str(url), b"")
            path = b"/to/%b%b/%b%b" % (mark, url.scheme.encode(), url.netloc, url.raw_path)
            url = self._gate.copy_with(raw_path=path)
            headers["host"] = self._gate.netloc.decode("ascii")
            if self._key:
                headers["x-swarmgate-key"] = self._key
        for name, value in current().headers().items():
            headers.setdefault(name, value)
        return self._library.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )

    def _is_gate(self, url: Any) -> bool:
        return bool((url.scheme, url.netloc) == (self._gate.scheme, self._gate.netloc))

    def _turned(self, response: Any) -> Any:
        """The answer as its host gave it: where a redirect leads, and to which path a cookie belongs."""
        fields = response.headers.raw
        if any(name.lower() in _INSIDE for name, _ in fields):
            turned = [(name, self._outside(name.lower(), value)) for name, value in fields]
            response.headers = self._library.Headers(turned)
        return response

    def _recalled(self, request: Any) -> Any:
        """The redirect that a deferred call was told here before; None if the gate has to be asked."""
        walk = walking.get()
        hop = None if walk is None else walk.recall(request.method, str(request.url))
        if hop is None:
            return None
        empty = self._library.ByteStream(b"")
        return self._turned(self._library.Response(hop.status, headers=hop.fields, stream=empty))

    def _answered(self, request: Any, response: Any) -> Any:
        """An answer that is no deferral, for the caller; where it leads is remembered for a repeat."""
        walk = walking.get()
        if walk is not None:
            walk.note(request.method, str(request.url), response.status_code, response.headers.raw)
        return self._turned(response)

    def _outside(self, name: bytes, value: bytes) -> bytes:
        if name == b"set-cookie":
            return _COOKIE_PATH.sub(lambda found: b"; Path=" + (found[1] or b"/"), value)
        if name != b"location":
            return value
        url = self._url(self._gate, value)
        found = _REDIRECT.fullmatch(url.raw_path) if url is not None and self._is_gate(url) else None
        if found is None:
            return value
        spelled = b"%b://%b%b" % found.group(2, 3, 4)
        outside = self._url(None, spelled)
        if outside is None:
            return spelled  # whoever follows it fails as without a gate
        if found[1]:  # how it came here, for the gate: hops, and whether credentials may follow
            while len(self._marks) >= MOST_MARKS:
                del self._marks[next(iter(self._marks))]
            self._marks[str(outside)] = found[1]
        return str(outside).encode("ascii")

    def _url(self, base: Any, spelled: bytes) -> Any:
        """A URL, below `base` if there is one; None if it is none."""
        text = spelled.decode("latin-1")
        try:
            return self._library.URL(text) if base is None else base.join(text)
        except self._library.InvalidURL:
            return None

    def _may_be_deferral(self, response: Any) -> bool:
        length = response.headers.get("content-length", "")
        is_json = "json" in response.headers.get("content-type", "")
        short = length.isdigit() and int(length) <= MOST_DEFERRAL_BYTES
        return response.status_code in STATUSES and is_json and short and "content-encoding" not in response.headers

    def _judged(self, request: Any, response: Any, body: bytes) -> Any:
        """Raise the deferral that a body tells, or give the answer back with it."""
        found = deferral_of(body)
        if found is not None and self._raises(request):
            raise found
        again = self._library.Response(
            response.status_code,
            headers=response.headers,
            stream=self._library.ByteStream(body),
            extensions=response.extensions,
        )
        return self._turned(again)

    def _raises(self, request: Any) -> bool:
        if self._on_deferral is not None:
            return self._on_deferral == "raise"
        return _SDK not in request.headers


class Sending(GateRoute):
    """The half that blocks."""

    def _own_inner(self) -> Any:
        return self._library.HTTPTransport()

    def handle_request(self, request: Any) -> Any:
        """Send it through the gate. Errors: `Deferred`, and the library's own."""
        recalled = self._recalled(request)
        if recalled is not None:
            return recalled
        response = self._inner.handle_request(self._prepared(request))
        if not self._may_be_deferral(response):
            return self._answered(request, response)
        try:
            body = b"".join(response.stream)
        finally:
            response.close()
        return self._judged(request, response, body)

    def close(self) -> None:
        """Close the connections to the gate."""
        self._inner.close()


class AsyncSending(GateRoute):
    """The half that is awaited."""

    def _own_inner(self) -> Any:
        return self._library.AsyncHTTPTransport()

    async def handle_async_request(self, request: Any) -> Any:
        """Send it through the gate. Errors: `Deferred`, and the library's own."""
        recalled = self._recalled(request)
        if recalled is not None:
            return recalled
        response = await self._inner.handle_async_request(self._prepared(request))
        if not self._may_be_deferral(response):
            return self._answered(request, response)
        try:
            body = b"".join([part async for part in response.stream])
        finally:
            await response.aclose()
        return self._judged(request, response, body)

    async def aclose(self) -> None:
        """Close the connections to the gate."""
        await self._inner.aclose()
