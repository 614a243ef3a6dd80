"""Whether a URL ends at the gate itself: the variables that point agents at it name upstreams where it is started."""

from collections.abc import Iterator
from socket import gethostname
from typing import Final

from swarmgate.cli.folder import state_folder
from swarmgate.config import BaseUrl, Config, Listen
from swarmgate.control import link
from swarmgate.core.address import AddressClass, host_verdict
from swarmgate.core.host import is_address, normal_host

_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104  nothing is bound here
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})


def ends_at(url: BaseUrl, listen: Listen) -> bool:
    """Whether a base URL ends at this port of this machine, by any name that is known without DNS."""
    if url.port != listen.port:
        return False
    here = _addresses(listen.host)
    if here & _EVERYWHERE and host_verdict(url.host) is AddressClass.LOOPBACK:
        return True
    return bool(_addresses(url.host) & here)


def itself(config: Config, listen: Listen) -> dict[str, str]:
    """Targets that are the gate which listens there, each with a sentence: it would call itself for ever."""
    why = "base_url is this gate itself; where `up` runs it is the URL of the provider"
    return {name: f"{name}: {why}" for name, target in config.targets.items() if ends_at(target.base_url, listen)}


def a_gate_runs_at(url: BaseUrl) -> bool:
    """Whether a gate of this user runs there, on whatever port of this machine, unless it has a state folder of its own."""
    places = [Listen(host, url.port) for host in ("127.0.0.1", "localhost", "::1", *_EVERYWHERE)]
    return any(ends_at(url, one) and link.runs(state_folder(one)) for one in places)


def _addresses(host: str) -> frozenset[str]:
    return frozenset(_spellings(host))


def _spellings(host: str) -> Iterator[str]:
    """What a host stands for: who listens everywhere is reached by each of its names, and a name of loopback has two addresses."""
    normal = host if ":" in host else normal_host(host)
    yield normal
    if normal in _EVERYWHERE:
        yield from (*_LOOPBACK, *_EVERYWHERE, gethostname().lower())
    elif host_verdict(normal) is AddressClass.LOOPBACK and not is_address(normal):
        yield from _LOOPBACK
