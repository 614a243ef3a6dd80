"""
What the connection to a target calls: the seams to the exchange's owner and to the pool.

Here live two Protocols and nothing else. All of it runs inside the loop and must not block.
"""

from typing import TYPE_CHECKING, Protocol

from mypy_extensions import mypyc_attr

from swarmgate.http1.faults import Fault
from swarmgate.http1.head import ResponseHead

if TYPE_CHECKING:
    from swarmgate.http1.upstream_end import UpstreamEnd


@mypyc_attr(allow_interpreted_subclasses=True)
class Owner:
    """The events of one exchange: head, chunk*, end; or lost, at any point, once."""

    __slots__ = ()

    def on_head(self, head: ResponseHead) -> None:
        """The final response head (never a 1xx)."""

    def on_chunk(self, payload: bytes) -> None:
        """Payload of the body as it came in one read, never empty."""

    def on_end(self) -> None:
        """The response is complete; the connection is already back with its pool or closed."""

    def on_lost(self, fault: Fault, first_byte_seen: bool) -> None:
        """There will be no whole response."""

    def on_upload_pause(self) -> None:
        """The target reads slower than the request's body comes: stop the source."""

    def on_upload_resume(self) -> None:
        """It has caught up."""


class Home(Protocol):
    """Where a connection belongs: its pool's driver."""

    def on_free(self, end: "UpstreamEnd") -> None:
        """It may serve another exchange."""

    def on_closed(self, end: "UpstreamEnd") -> None:
        """It is gone."""
