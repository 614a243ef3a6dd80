"""`[access]`: whether agents must show a key of their own, and what calls must say of who causes them."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Literal

from swarmgate.config.problems import Loc
from swarmgate.config.table import Table


class Access(Table):
    """
    Who may come in, and as whom.

    `agent_keys` `optional`: who shows a key is held to it, others may come too; `required`: nobody comes in without one.
    `identity` are the words that every call must say (design 2: P12); what says less is refused, not `unattributed`.
    """

    agent_keys: Literal["optional", "required"] = "optional"
    identity: tuple[Literal["agent", "task", "goal", "step", "op", "task-type"], ...] = ()


def unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Whoever can reach the port can spend what is behind it: beyond loopback agents need keys (reliability AZ-01)."""
    listen, access = raw.get("listen"), raw.get("access")
    host = listen.rpartition(":")[0].strip("[]") if isinstance(listen, str) else ""
    required = isinstance(access, dict) and access.get("agent_keys") == "required"
    if host and not required and not is_local(host):
        reason = f'{host!r} is not loopback: others could spend your keys; write [access] agent_keys = "required" too'
        yield ("listen",), reason


def is_local(host: str) -> bool:
    """Whether only this machine reaches a port that listens there."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
