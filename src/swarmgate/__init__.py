"""swarmgate: the one gate through which every outgoing call of a swarm of AI agents leaves."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarmgate.sdk import Deferred, context

__version__ = "0.1.0"
__all__ = ["Deferred", "context"]


def __getattr__(name: str) -> Any:
    """What agents say in one line, imported when it is used: the gate itself needs none of it."""
    if name in __all__:
        from swarmgate import sdk  # noqa: PLC0415  lazily, see above

        return getattr(sdk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
