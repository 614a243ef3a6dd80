from swarmgate.sdk import Deferred as Deferred
from swarmgate.sdk import context as context

__version__: str
__all__ = ["Deferred", "context"]
