"""
The seam between HTTP/1.1 and whoever decides: what the connection to an agent calls, and what a call is answered at.

All of it runs inside the loop, in the order request, body*, body end, or all of them as `whole`, and must not block;
`gone` may come at any time and ends the call.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from swarmgate.http1.head import Header, RequestHead
from swarmgate.http1.refusals import BadHead

if TYPE_CHECKING:
    from swarmgate.http1.client_end import ClientEnd


Told = tuple[int, list[Header], bytes]  # a whole answer: status, fields, body


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

    def on_refused(self, end: "ClientEnd", bad: BadHead) -> Told | None:
        """
        What is no request: a head (no call began), or a body that broke (its call is gone).

        It is answered with what comes back, or in the form of OpenAI's SDK.
        """


class CallerEnd(Protocol):
    """Where one call is answered: its client's connection (`answer.Answering`), or who keeps a copy before it."""

    call: Any

    @property
    def is_full(self) -> bool:
        """Whether it reads too slowly: that is told when it begins to, and not again before it caught up."""
        ...

    def respond(self, status: int, headers: Sequence[Header], body: bytes = b"", ready: bytes = b"") -> None:
        """The whole answer at once."""

    def start_stream(
        self, status: int, headers: Sequence[Header], length: int | None = None, ready: bytes = b""
    ) -> None:
        """The head of an answer whose body follows."""

    def write_chunk(self, payload: bytes) -> None:
        """A part of that body."""

    def finish(self) -> None:
        """It is complete."""

    def cut(self) -> None:
        """It cannot be completed."""

    def want_body(self) -> None:
        """The request's body may come."""

    def pause(self) -> None:
        """Read no more of it for now."""

    def resume(self) -> None:
        """Go on reading it."""
