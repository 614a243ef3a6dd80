"""`[egress]` and `[resolve]`: how hosts are treated that no policy names, which may be called at all, and exact pins."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from swarmgate.config.policies import DurationText, Patterns, Port, Words
from swarmgate.config.problems import Loc, Mistakes
from swarmgate.config.quota import Quota, read_quota
from swarmgate.config.table import Table
from swarmgate.core.compiler import Published, Unit, compile_limit
from swarmgate.core.errors import BadInput
from swarmgate.core.groups import group_table
from swarmgate.core.host import normal_host
from swarmgate.core.limits import BadLimit
from swarmgate.core.nearest import nearest
from swarmgate.core.target_errors import BadPattern, BadTarget
from swarmgate.facts.presets import load_presets

_SLOWEST = Quota(1, Unit.REQUESTS, 12 * 3_600_000)  # what is learned per minute, times headroom, in thousandths
_SLOWEST_CEILING = Quota(1, Unit.REQUESTS, 60_000)
_FASTEST = 1_000_000  # a second


class Pin(NamedTuple):
    """Where a host is dialled whatever DNS says; the only way to an address that is denied otherwise."""

    address: str
    port: int


def _pace(text: object, slowest: Quota, why: str) -> Quota:
    """A pace that can be learned from; one of nothing is told as any limit is."""
    pace = read_quota(text, (Unit.REQUESTS,))
    try:
        compile_limit(Published(pace.amount, pace.window_ms, pace.unit, headroom_percent=100))
    except BadLimit as bad:
        raise BadInput("", f"{pace}: {bad.reason}") from None
    if pace.amount * slowest.window_ms < pace.window_ms:
        raise BadInput("", f"{pace}: is slower than {why}; write [policies.NAME] with limits for hosts that want this")
    if pace.amount * 1_000 > _FASTEST * pace.window_ms:
        raise BadInput("", f"{pace}: is faster than {_FASTEST:_} per 1s, more than a host's requests are counted to")
    return pace


def _pin(text: object) -> Pin:
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    try:
        address = str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        address = ""
    if not address or not (port.isascii() and port.isdigit() and 0 < int(port) <= 65_535):
        raise BadInput("", f"{text!r} is no address; write an IP address and a port, as 127.0.0.1:9101")
    return Pin(address, int(port))


def _first_pace(text: object) -> Quota:
    return _pace(text, _SLOWEST, "1 per 12h, the slowest that the gate keeps for a host that it learns")


def _last_pace(text: object) -> Quota:
    return _pace(text, _SLOWEST_CEILING, "1 per 1m, and a host is learned minute by minute")


PaceText = Annotated[Quota, BeforeValidator(_first_pace)]
CeilingText = Annotated[Quota, BeforeValidator(_last_pace)]
Pins = dict[str, Annotated[Pin, BeforeValidator(_pin)]]


class Egress(Table):
    """
    Hosts that no policy names begin at `unknown` and grow on success up to `ceiling`, their domain at twice that.

    `in_flight` and `most_in_flight` bound what is open to one such host. `allow` (empty = every host) and `deny` are
    host patterns, deny wins. `groups` puts hosts into one group beyond their domain. `most_targets` bounds how many
    hosts have budgets of their own, `most_per_group` how many of one domain.
    """

    unknown: PaceText = Quota(1, Unit.REQUESTS, 1_000)
    ceiling: CeilingText = Quota(10, Unit.REQUESTS, 1_000)
    in_flight: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 2
    most_in_flight: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 16
    presets: Literal["high", "medium", "low", "off"] = "high"
    without: tuple[str, ...] = ()
    allow: Patterns = ()
    deny: Patterns = ()
    groups: dict[str, str] = Field(default_factory=dict)
    ports: tuple[Port, ...] = (80, 443)
    wait: DurationText = 0
    user_agent: Words = ""
    connect: Literal["refuse", "tunnel"] = "refuse"
    trace: StrictBool = False
    most_targets: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 10_000
    most_per_group: Annotated[int, Field(strict=True, ge=1)] = 64

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if found := [*self._out_of_order(), *self._misnamed()]:
            raise Mistakes(found)
        return self

    def _out_of_order(self) -> Iterator[tuple[Loc, str]]:
        if self.ceiling.amount * self.unknown.window_ms < self.unknown.amount * self.ceiling.window_ms:
            yield ("ceiling",), f"{self.ceiling} is slower than the beginning, {self.unknown}"
        if self.most_in_flight < self.in_flight:
            yield ("most_in_flight",), f"{self.most_in_flight} is less than in_flight, {self.in_flight}"
        if self.most_per_group > self.most_targets:
            yield ("most_per_group",), f"{self.most_per_group} is more than most_targets, {self.most_targets}"

    def _misnamed(self) -> Iterator[tuple[Loc, str]]:
        names = {one.name for one in load_presets().values()}
        yield from (
            (("without",), f"{one!r} is no preset; {nearest(one, names)}") for one in self.without if one not in names
        )
        patterns = {
            "allow": dict.fromkeys(self.allow, "-"),
            "deny": dict.fromkeys(self.deny, "-"),
            "groups": self.groups,
        }
        for field, told in patterns.items():
            try:
                group_table(told)
            except BadPattern as bad:
                yield (field,), f"{bad.value!r}: {bad.reason}"


def unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Pins of what is no host, and policies that claim one pattern."""
    pins = raw.get("resolve")
    for host in pins if isinstance(pins, dict) else ():
        try:
            normal = normal_host(host)
        except BadTarget as bad:
            yield ("resolve", host), str(bad)
        else:
            if normal != host:
                yield ("resolve", host), f"is not the normal spelling; write {normal!r}"
    claimed: dict[tuple[str, str], str] = {}
    policies = raw.get("policies")
    for name, policy in (policies if isinstance(policies, dict) else {}).items():
        for field in ("hosts", "domains"):
            patterns = policy.get(field) if isinstance(policy, dict) else None
            for pattern in patterns if isinstance(patterns, list) else ():
                other = claimed.setdefault((field, str(pattern).lower()), name)
                if other != name:
                    yield ("policies", name, field), f"{pattern!r} belongs to policy {other!r} already"
