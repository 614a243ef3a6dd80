"""`[targets.NAME]`: a place where models are called, its keys and its limits."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from swarmgate.config.addresses import BaseUrlText
from swarmgate.config.quota import Limits, Quota
from swarmgate.config.secret import Secret
from swarmgate.config.table import Name, Table
from swarmgate.core.compiler import HEADROOM_PERCENT, Published, Unit, compile_limit
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BadLimit


class Target(Table):
    """
    A place where models are called.

    `limits` hold for all its keys together, `key_limits` for each key; `headroom` is the percentage of a published limit
    that is used; `largest_tokens` the largest call that must still fit a limit on tokens.
    """

    base_url: BaseUrlText
    keys: Annotated[dict[Name, Secret], Field(min_length=1)]
    auth: Literal["bearer", "x-api-key", "api-key"] = "bearer"
    headroom: Annotated[int, Field(ge=1, le=100)] = HEADROOM_PERCENT
    limits: Limits = ()
    key_limits: Limits = ()
    largest_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 16_384

    def published(self, quota: Quota, line: str = "") -> Published:
        """A quota of this target as the compiler wants it; its calls wait in `line`."""
        largest = self.largest_tokens if quota.unit is Unit.TOKENS else 1
        return Published(
            quota.amount,
            quota.window_ms,
            quota.unit,
            headroom_percent=self.headroom,
            largest=(largest, largest, largest),
            line=line,
            sharing=len(self.keys) if line else 1,
        )

    @model_validator(mode="after")
    def _limits_can_be_kept(self) -> Self:
        for field in ("limits", "key_limits"):
            for quota in getattr(self, field):
                try:
                    compile_limit(self.published(quota))
                except BadLimit as bad:
                    raise BadInput(field, f"{quota}: {bad.reason}") from None
        return self
