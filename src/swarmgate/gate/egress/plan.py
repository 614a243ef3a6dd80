"""What egress is told by the configuration: policies, patterns, the pace of unknown hosts, and who may be called."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from swarmgate.core.address import host_verdict
from swarmgate.core.groups import GroupTable, SuffixRules, longest_match
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Ceilings, Learned
from swarmgate.core.reasons import Reason
from swarmgate.core.target import Target
from swarmgate.core.target_policy import Policy, PolicyTable

WINDOW_MS: Final = 60_000  # in which the rate of a host is learned that says nothing of itself


class Pace(NamedTuple):
    """How a host begins of which nothing is known, per minute, and how far it may grow."""

    start_micro: int
    ceiling: int
    in_flight: int
    most_in_flight: int

    def times(self, factor: int) -> "Pace":
        """The same for a group of hosts."""
        return Pace(*[value * factor for value in self])

    def start(self) -> Learned:
        """What a learner begins with: an even pace, one at a time."""
        return Learned(self.start_micro, self.in_flight * MICRO, MICRO)

    def ceilings(self) -> Ceilings:
        """What it never exceeds."""
        return Ceilings(self.ceiling, self.most_in_flight, self.ceiling)


class Settings(NamedTuple):
    """
    How hosts are treated that no policy names, and what holds for all.

    `allow` empty = every host; `deny` wins. `pins` are endpoints by `host` or `host:port`.
    """

    pace: Pace
    allow: GroupTable
    deny: GroupTable
    groups: GroupTable
    ports: frozenset[int]
    pins: Mapping[str, tuple[str, int]]
    wait_ms: int = 0
    user_agent: bytes = b""
    tunnels: bool = False
    traces: bool = False
    most_targets: int = 10_000
    most_per_group: int = 64

    def is_pinned(self, host: str, port: int) -> bool:
        """Whether the operator said where this is."""
        return host in self.pins or f"{host}:{port}" in self.pins


class Forbidden(NamedTuple):
    """Why a target may not be called by anybody, whatever its budgets say."""

    reason: Reason
    detail: str
    field: str


def forbidden(settings: Settings, target: Target) -> Forbidden | None:
    """What of a target's host is refused without asking DNS; None = nothing is known against it."""
    host = target.host
    if longest_match(host, settings.deny):
        return Forbidden(Reason.POLICY_HOST, f"{host} stands in `deny`.", "host")
    if settings.allow and not longest_match(host, settings.allow):
        return Forbidden(Reason.POLICY_HOST, f"{host} does not stand in `allow`.", "host")
    inside = host_verdict(host)
    if inside is not None and inside.denied and not settings.is_pinned(host, target.port):
        return Forbidden(Reason.POLICY_ADDRESS, f"{host} is {inside.reason}.", "host")
    return None


def forbidden_port(settings: Settings, policy: Policy, target: Target) -> Forbidden | None:
    """Whether its host's policy, or else the operator for all, leaves its port closed."""
    ports = policy.ports or settings.ports
    if target.port in ports:
        return None
    detail = f"Port {target.port} is none of {', '.join(map(str, sorted(ports)))}."
    return Forbidden(Reason.POLICY_PORT, detail, "port")


class EgressPlan(NamedTuple):
    """
    Everything that the doors to other hosts need to know.

    `kept` is what was learned before, by lesson; `pauses` until when (on the gate's clock) hosts asked to be left alone.
    """

    policies: PolicyTable
    settings: Settings
    suffixes: SuffixRules
    kept: Mapping[str, Learned] = {}
    pauses: Mapping[str, int] = {}
