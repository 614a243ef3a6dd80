"""
What the connection to an agent calls: the seam between HTTP/1.1 and whoever decides.

Here lives one Protocol and nothing else. All of it runs inside the loop, in the order request, body*, body end, or all of
them as `whole`, and must not block; `gone` may come at any time and ends the call.
"""

from typing import TYPE_CHECKING, Protocol

from swarmgate.http1.head import RequestHead
from swarmgate.http1.refusals import BadHead

if TYPE_CHECKING:
    from swarmgate.http1.client_end import ClientEnd


class Handler(Protocol):
    """The events of one client connection, each with the connection it belongs to."""

    def on_request(self, end: "ClientEnd", head: RequestHead) -> None:
        """A call begins; its body, if any, follows."""

    def on_whole(self, end: "ClientEnd", head: RequestHead, body: bytes) -> None:
        """A call begins, and its request is complete; `body` is not empty."""

    def on_body(self, end: "ClientEnd", data: bytes) -> None:
        """Payload of the request's body, never empty."""

    def on_body_end(self, end: "ClientEnd") -> None:
        """The request is complete (also when it has no body)."""

    def on_gone(self, end: "ClientEnd") -> None:
        """The client left, or broke its body's framing, while its call was open: cancel; nothing can be answered."""

    def on_pause(self, end: "ClientEnd") -> None:
        """The client reads slower than it is written to: stop the source."""

    def on_resume(self, end: "ClientEnd") -> None:
        """The client has caught up."""

    def on_refused(self, end: "ClientEnd", bad: BadHead) -> None:
        """What is no request was answered here: a head (no call began), or a body that broke (its call is gone)."""
