"""swarmgate: the one gate through which every outgoing call of a swarm of AI agents leaves."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["Deferred", "context"]  # given by __getattr__; their types stand in __init__.pyi


def __getattr__(name: str) -> Any:
    """What agents say in one line, imported when it is used: the gate itself needs none of it."""
    if name in __all__:
        return getattr(import_module("swarmgate.sdk"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
