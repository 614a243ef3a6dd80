"""
`[agents]`, `[teams.NAME]`, `[environments.NAME]`: what callers may use, by the names that they give.

`agents` caps each agent that says its name. A team or an environment is a list of patterns of agents' names; the first
that fits counts, and `*` has those without a name, too. An agent key has caps that stand in no file.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from swarmgate.config.problems import Loc, Mistakes
from swarmgate.config.quota import CapLimits, Quota, read_caps, twice
from swarmgate.config.table import Table
from swarmgate.core.callers import KEY
from swarmgate.core.compiler import Compiled, Published, Unit, compile_cap
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BadLimit
from swarmgate.core.routing import Budget

LARGEST_TOKENS = 16_384
SHARE_PERCENT = 80  # of a target's budget, where there is more than one team or environment (design 4: Line)


class Capped(Table):
    """Caps of the operator's own: at most so much in any window. `largest_tokens` is the largest call that must fit."""

    limits: CapLimits = ()
    largest_tokens: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = LARGEST_TOKENS

    def budgets(self, owner: str) -> Iterator[Budget]:
        """The budgets of `owner`."""
        for quota in self.limits:
            published, compiled = self.compiled(quota)
            yield Budget(f"{owner}: {quota.counts}", published, compiled)

    def compiled(self, quota: Quota) -> tuple[Published, Compiled]:
        """A cap and the budget that keeps it. Errors: `BadLimit`."""
        largest = self.largest_tokens if quota.unit is Unit.TOKENS else 1
        published = Published(
            quota.amount,
            quota.window_ms,
            quota.unit,
            headroom_percent=100,
            largest=(largest, largest, largest),
            reserve=self.kept(quota),
            lease_ms=0,  # who held a place at a gate that died is gone with it
        )
        return published, compile_cap(published)

    def kept(self, _quota: Quota) -> int:
        """Units that only P0 may take; P2 leaves twice as many."""
        return 0

    @model_validator(mode="after")
    def _caps_can_be_kept(self) -> Self:
        found: list[tuple[Loc, str]] = [(("limits",), reason) for reason in twice(self.limits)]
        found += [
            (("limits", place), reason) for place, quota in enumerate(self.limits) if (reason := self._why(quota))
        ]
        if found:
            raise Mistakes(found)
        return self

    def _why(self, quota: Quota) -> str:
        try:
            self.compiled(quota)
        except BadLimit as bad:
            knob = "; largest_tokens says how large the largest call is" if quota.unit is Unit.TOKENS else ""
            return f"{quota}: {bad.reason}{knob}"
        return ""


class Agents(Capped):
    """Caps of each agent that says its name; classes do not matter inside one agent."""


class Shared(Capped):
    """Caps that several agents share; `reserve` percent are kept for P0, twice as much from P2."""

    reserve: Annotated[int, Field(strict=True, ge=0, le=50)] = 0

    def kept(self, quota: Quota) -> int:
        """Units that only P0 may take; P2 leaves twice as many."""
        return quota.amount * self.reserve // 100


class Team(Shared):
    """
    A team or an environment; `agents` are patterns of names.

    `share` is the percentage of a target's budget that it may use where there is more than one.
    """

    agents: Annotated[tuple[Annotated[str, StringConstraints(min_length=1, max_length=128)], ...], Field(min_length=1)]
    share: Annotated[int, Field(strict=True, ge=1, le=100)] = SHARE_PERCENT


def caps_of_key(key: str, limits: Sequence[str]) -> tuple[Budget, ...]:
    """The budgets that keep an agent key's own caps; the largest call is what the smallest of them holds. Errors: `BadInput`."""
    quotas = read_caps(limits, "limits")
    of_tokens = [quota.amount for quota in quotas if quota.unit is Unit.TOKENS]
    table = Capped.model_construct(limits=quotas, largest_tokens=min([LARGEST_TOKENS, *of_tokens]))
    try:
        return tuple(Budget(f"{KEY}{key}: {quota}", *table.compiled(quota)) for quota in quotas)
    except BadLimit as bad:
        raise BadInput("limits", bad.reason) from None
