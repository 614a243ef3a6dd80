"""`[policies.NAME]`: what hosts tolerate, by host, domain, path and method; or a preset, and what differs from it."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from swarmgate.config.problems import Loc, Mistakes
from swarmgate.config.quota import HostLimits, Quota, twice
from swarmgate.config.table import Name, Table
from swarmgate.core.compiler import HEADROOM_PERCENT, Published, Unit, compile_limit
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.effect import Effect
from swarmgate.core.errors import BadInput
from swarmgate.core.groups import GroupTable, group_table
from swarmgate.core.limits import BadLimit
from swarmgate.core.nearest import nearest
from swarmgate.core.path_class import MOST_CLASSES, PathClass, path_class
from swarmgate.core.target_errors import BadPattern
from swarmgate.facts.presets import load_presets

USUAL_ANSWER_BYTES = 64 * 1024


def _duration(text: object) -> int:
    if not isinstance(text, str):
        raise BadInput("", f"{text!r} is no duration; write 250ms, 20s, 5m, 1h or 1d")
    return parse_duration_ms(text, "")


def _some(gap_ms: int) -> int:
    if not gap_ms:
        raise BadInput("", "is no time; without `gap` requests need none between them")
    return gap_ms


DurationText = Annotated[int, BeforeValidator(_duration)]
Words = Annotated[str, Field(pattern=r"^[ -~]*$", max_length=200)]
Patterns = tuple[str, ...]
Port = Annotated[int, Field(strict=True, ge=1, le=65_535)]


class Costed(NamedTuple):
    """A quota of a policy and what one request takes of it."""

    quota: Quota
    cost: int


class PolicyClass(Table):
    """
    A class of requests within the hosts of a policy: by one of `methods` (none = any) to one of `paths` (`*` = anything).

    `limits` hold besides those of the whole policy, `points` is what a request of this class takes of a limit in points.
    """

    paths: Annotated[Patterns, Field(min_length=1)]
    methods: tuple[str, ...] = ()
    limits: HostLimits = ()
    points: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    effect: Effect | None = None


class HostPolicy(Table):
    """
    One policy. It holds for `hosts` (`a.org`, or `*.a.org` for every subdomain) and for whole `domains`, together. The
    most exact pattern over hosts wins; limits of domains hold besides, for every host and domain within.

    `burst` is the most at once, `reserve` what is kept for P0, `gap` the least time between two requests. `outage` says
    what holds while a shared store is lost.
    """

    preset: str = ""
    hosts: Patterns = ()
    domains: Patterns = ()
    limits: HostLimits = ()
    classes: dict[Name, PolicyClass] = Field(default_factory=dict)
    headroom: Annotated[int, Field(strict=True, ge=1, le=100)] = HEADROOM_PERCENT
    burst: Annotated[int, Field(strict=True, ge=1)] | None = None
    reserve: Annotated[int, Field(strict=True, ge=0)] | None = None
    gap: Annotated[DurationText, AfterValidator(_some)] | None = None
    mode: Literal["enforce", "shadow"] = "enforce"
    outage: Literal["local-share", "closed", "open"] = "local-share"
    wait: DurationText | None = None
    user_agent: Words = ""
    connect: Literal["refuse", "tunnel"] = "refuse"
    ports: tuple[Port, ...] = ()
    refusals: tuple[Annotated[int, Field(strict=True, ge=400, le=599)], ...] = ()
    trace: StrictBool = False
    honours_keys: StrictBool = False
    callers_may_say_read: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _of_preset(cls, raw: Any) -> Any:
        """What the file does not say is taken from the preset."""
        name = raw.get("preset") if isinstance(raw, dict) else None
        if not name:
            return raw
        known = load_presets()
        if not isinstance(name, str) or name not in known:
            raise BadInput("preset", f"{name!r} is no preset; {nearest(name, known)}")
        return known[name].policy | raw

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        if found := list(self._mistakes()):
            raise Mistakes(found)
        return self

    def _mistakes(self) -> Iterator[tuple[Loc, str]]:
        if not self.hosts and not self.domains:
            yield (), "matches nothing; name `hosts`, `domains` or a `preset`"
        if self.classes and self.domains:
            yield ("classes",), "are of hosts, whose paths they name; write `hosts` and `*.` patterns, not `domains`"
        for rule in (partial(self.patterns, "hosts"), partial(self.patterns, "domains"), self.path_classes):
            try:
                rule()
            except BadInput as bad:
                yield (bad.field,), bad.reason
        lists: list[tuple[Loc, HostLimits]] = [(("limits",), self.limits)]
        lists += [(("classes", name, "limits"), one.limits) for name, one in self.classes.items()]
        yield from ((loc, reason) for loc, quotas in lists for reason in twice(quotas))
        yield from ((loc, reason) for loc, costed in self.all_limits() if (reason := self._why_not(costed)))

    def patterns(self, field: Literal["hosts", "domains"], name: str = "-") -> GroupTable:
        """The patterns of `hosts` or `domains`, each leading to `name`; a domain takes what is below it too."""
        told: Patterns = getattr(self, field)
        if field == "domains":
            told = tuple(pattern for domain in told for pattern in (domain, f"*.{domain}"))
        try:
            return group_table(dict.fromkeys(told, name))
        except BadPattern as bad:
            raise BadInput(field, f"{bad.value!r}: {bad.reason}") from None

    def path_classes(self) -> tuple[PathClass, ...]:
        """The classes in the operator's order; the first that matches counts."""
        if len(self.classes) > MOST_CLASSES:
            raise BadInput("classes", f"are {len(self.classes)}, at most {MOST_CLASSES}; join some")
        try:
            return tuple(
                path_class(name, pattern, one.methods) for name, one in self.classes.items() for pattern in one.paths
            )
        except BadPattern as bad:
            raise BadInput("classes", f"{bad.field} {bad.value!r}: {bad.reason}") from None

    def all_limits(self) -> list[tuple[Loc, Costed]]:
        """Every limit with its place in the table, at the largest cost that a request may have in it."""
        dearest = max([1, *[one.points for one in self.classes.values()]])
        found: list[tuple[Loc, Costed]] = [
            (("limits", place), self.costed(quota, dearest)) for place, quota in enumerate(self.limits)
        ]
        for name, one in self.classes.items():
            own = enumerate(one.limits)
            found += [(("classes", name, "limits", place), self.costed(quota, one.points)) for place, quota in own]
        return found

    def _why_not(self, costed: Costed) -> str:
        try:
            compile_limit(self.published(costed))
        except BadLimit as bad:
            return f"{costed.quota}: {bad.reason}"
        return ""

    @staticmethod
    def costed(quota: Quota, points: int) -> Costed:
        """A quota with what one request takes of it."""
        return Costed(quota, points if quota.unit is Unit.POINTS else 1)

    def published(self, costed: Costed) -> Published:
        """A limit of this policy as the compiler wants it."""
        quota, largest = costed
        if quota.unit is Unit.BYTES:
            largest = max(1, min(USUAL_ANSWER_BYTES, quota.amount // 8))
        in_time = quota.unit is not Unit.CONCURRENT
        return Published(
            quota.amount,
            quota.window_ms,
            quota.unit,
            headroom_percent=self.headroom,
            largest=(largest, largest, largest),
            reserve=self.reserve,
            burst=self.burst if in_time and quota.unit is not Unit.BYTES else None,
        )


def preset_policies(raw: Mapping[str, Any]) -> HostPolicy:
    """The policy that a preset is, as if it stood in the file."""
    return HostPolicy.model_validate(raw)
