"""
Where every request arrives: from the head of a request to the surface that serves it.

A surface gives back what listens to the rest of the request; it stands in `end.call` until the answer is over. Nothing
is decided here but the path.
"""

from collections.abc import Mapping
from typing import Protocol

from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import Reason
from swarmgate.gate import answers
from swarmgate.gate.identity import AS, split_as
from swarmgate.gate.relay import Relay
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead
from swarmgate.http1.refusals import BadHead


class Surface(Protocol):
    """One kind of request."""

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, said: dict[str, str] | None) -> Relay | None:
        """A request begins; None if it was answered at once. `said` are the words of an `/as/` path."""


class Front:
    """The handler of every client connection: surfaces by exact path."""

    def __init__(self, surfaces: Mapping[bytes, Surface]) -> None:
        self._surfaces = surfaces
        self.refused = 0

    def on_request(self, end: ClientEnd, head: RequestHead) -> None:
        """Find the surface; a path without one is answered here."""
        path = head.target
        surface = self._surfaces.get(path)
        if surface is not None:
            end.call = surface.begin(end, head, path, None)
        else:
            self._look_closer(end, head)

    def on_body(self, end: ClientEnd, data: bytes) -> None:
        """A piece of the request's body."""
        if end.call is not None:
            end.call.on_body(data)

    def on_body_end(self, end: ClientEnd) -> None:
        """The request is whole."""
        relay = end.call
        if relay is not None:
            relay.desk.complete(relay)

    def on_gone(self, end: ClientEnd) -> None:
        """The caller left."""
        if end.call is not None:
            end.call.on_gone()

    def on_pause(self, end: ClientEnd) -> None:
        """The caller reads too slowly."""
        if end.call is not None:
            end.call.on_pause()

    def on_resume(self, end: ClientEnd) -> None:
        """The caller caught up."""
        if end.call is not None:
            end.call.on_resume()

    def on_refused(self, _end: ClientEnd, _bad: BadHead) -> None:
        """A head that is no request was answered already."""
        self.refused += 1

    def _look_closer(self, end: ClientEnd, head: RequestHead) -> None:
        path, said = head.target, None
        try:
            if path.startswith(AS):
                path, said = split_as(path)
        except BadInput as bad:
            end.respond(*answers.refusal(Reason.CALLER_BAD_REQUEST, f"{bad}."))
            return
        path = path.partition(b"?")[0]
        surface = self._surfaces.get(path)
        if surface is not None:
            end.call = surface.begin(end, head, path, said)
            return
        known = ", ".join(sorted(name.decode() for name in self._surfaces))
        shown = path[:200].decode("ascii", "replace")
        end.respond(
            *answers.error(404, "unknown_path", f"{head.method.decode()} {shown} is not served; served: {known}.")
        )
