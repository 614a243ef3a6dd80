"""
The operator's one TOML file: what it may say, checked whole, every mistake at once with its line.

Here live names, numbers and references; what follows from them (budgets, rings, ladders) is made in `wiring`. Each
section has a module of its own with its model; `whole.py` puts them together and is where a new one is added.
"""

from swarmgate.config.addresses import DEFAULT_LISTEN, BaseUrl, Listen
from swarmgate.config.egress import Egress, Pin
from swarmgate.config.environment import from_environment
from swarmgate.config.policies import HostPolicy
from swarmgate.config.quota import Quota
from swarmgate.config.routes import ANY_MODEL, Deployment
from swarmgate.config.secret import NoKeys
from swarmgate.config.targets import Target
from swarmgate.config.whole import Config, load, parse

__all__ = [
    "ANY_MODEL",
    "DEFAULT_LISTEN",
    "BaseUrl",
    "Config",
    "Deployment",
    "Egress",
    "HostPolicy",
    "Listen",
    "NoKeys",
    "Pin",
    "Quota",
    "Target",
    "from_environment",
    "load",
    "parse",
]
