"""The event loop of every process that a command starts: uvloop where it was built, the same code on the standard one."""

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop  # type: ignore[assignment]  # the common base is all that is used

__all__ = ["new_event_loop"]
