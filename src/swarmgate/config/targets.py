"""`[targets.NAME]`: a place where models are called, its keys and its limits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from swarmgate.config.addresses import BaseUrlText
from swarmgate.config.problems import Loc, Mistakes
from swarmgate.config.quota import Limits, Quota, twice
from swarmgate.config.routes import ANY_MODEL
from swarmgate.config.secret import NoKeys, Secret
from swarmgate.config.table import Name, Table
from swarmgate.core.compiler import HEADROOM_PERCENT, OF_TOKENS, Published, Unit, compile_limit
from swarmgate.core.limits import BadLimit
from swarmgate.core.nearest import nearest

_SIZES = ("headroom", "largest_tokens", "largest_output")
_PERCENTS = range(1, 101)
_ANYWHERE: dict[str, object] = {"base_url": "http://127.0.0.1/", "keys": {"key": "env:KEY"}}
FEWEST_CALLS = 6  # a limit of no more largest calls has no room to give away

Provider = Literal[  # those that have a table in `providers/`
    "openai",
    "azure",
    "anthropic",
    "gemini",
    "mistral",
    "groq",
    "deepseek",
    "moonshot",
    "qwen",
    "openrouter",
    "generic",
]


def with_room(published: Published) -> Published:
    """
    The same with room in its bucket for half a largest call more, if the limit is not too small for that.

    Answers in progress hold reservations in the bucket. If it is just as large as the largest call, such a call waits until
    nothing is in progress, and everybody behind it with it: of 200,000 tokens per 10 s a third of the compiled rate was
    used, with room nine tenths of it. Errors: `BadLimit`.
    """
    largest = max(published.largest)
    spare = min(largest // 2, max(0, published.amount - FEWEST_CALLS * largest) // (2 * FEWEST_CALLS))
    if published.unit is not Unit.TOKENS or not spare or compile_limit(published).limits.burst >= largest + spare:
        return published
    return replace(published, largest=(largest + spare,) * 3)


class Target(Table):
    """
    A place where models are called.

    `provider` names its dialect and `auth` the header of its keys, where its host does not say so. `limits` hold for all
    its keys together, `key_limits` for each key, or for each account where the provider counts several keys as one:
    `accounts` names those. `headroom` is the percentage of a published limit that is used;
    `largest_tokens` the largest call that must still fit a limit on tokens, `largest_output` the largest answer that must
    fit one on output tokens. `windows` are context windows in tokens by model, `*` = of every other; they outrank the
    public list, which knows nothing of models that one serves oneself.
    """

    base_url: BaseUrlText
    keys: Annotated[dict[Name, Secret], Field(min_length=1)]
    provider: Provider | None = None
    auth: Literal["bearer", "x-api-key", "api-key"] | None = None
    headroom: Annotated[int, Field(strict=True, ge=1, le=100)] = HEADROOM_PERCENT
    limits: Limits = ()
    key_limits: Limits = ()
    accounts: dict[Name, Annotated[tuple[Name, ...], Field(min_length=1)]] = Field(default_factory=dict)
    largest_tokens: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 16_384
    largest_output: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 4_096
    windows: dict[str, Annotated[int, Field(strict=True, ge=1, le=100_000_000)]] = Field(default_factory=dict)

    def published(self, quota: Quota, line: str = "") -> Published:
        """A quota of this target as the compiler wants it; its calls wait in `line`."""
        largest = self._largest(quota.unit)
        return with_room(
            Published(
                quota.amount,
                quota.window_ms,
                quota.unit,
                headroom_percent=self.headroom,
                largest=(largest, largest, largest),
                line=line,
                sharing=len(self.scopes) if line else 1,
            )
        )

    def window(self, model: str) -> int:
        """The context window of a model as the operator says it; 0 = not said."""
        return self.windows.get(model) or self.windows.get(ANY_MODEL, 0)

    @property
    def scopes(self) -> dict[str, tuple[str, ...]]:
        """What the provider counts by, with its keys: the accounts, and every key that stands in none."""
        told = {key for keys in self.accounts.values() for key in keys}
        return {**self.accounts, **{key: (key,) for key in self.keys if key not in told}}

    @model_validator(mode="after")
    def _accounts_have_keys(self) -> Self:
        seen: set[str] = set()
        found: list[tuple[Loc, str]] = []
        for name, keys in self.accounts.items():
            if name in self.keys and name not in keys:
                found.append((("accounts", name), "is the name of a key that stands elsewhere; name it otherwise"))
            for place, key in enumerate(keys):
                if key not in self.keys:
                    found.append((("accounts", name, place), f"{key!r} is no key; {nearest(key, self.keys)}"))
                elif key in seen:
                    found.append((("accounts", name, place), f"{key!r} stands twice; a key belongs to one account"))
                seen.add(key)
        if found:
            raise Mistakes(found)
        return self

    @model_validator(mode="after")
    def _limits_can_be_kept(self) -> Self:
        fields = ("limits", "key_limits")
        found: list[tuple[Loc, str]] = [
            ((field,), reason) for field in fields for reason in twice(getattr(self, field))
        ]
        found += [
            ((field, place), reason)
            for field in fields
            for place, quota in enumerate(getattr(self, field))
            if (reason := self._why_not(quota))
        ]
        if found:
            raise Mistakes(found)
        return self

    def _why_not(self, quota: Quota) -> str:
        try:
            compile_limit(self.published(quota))
        except BadLimit as bad:
            field = "largest_output" if quota.unit is Unit.OUTPUT_TOKENS else "largest_tokens"
            knob = f"; {field} says how large the largest is" if quota.unit in OF_TOKENS else ""
            return f"{quota}: {bad.reason}{knob}"
        return ""

    def _largest(self, unit: Unit) -> int:
        if unit is Unit.OUTPUT_TOKENS:
            return self.largest_output
        return self.largest_tokens if unit in OF_TOKENS else 1


def unkept(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Limits that cannot be kept: told also beside other mistakes of their target, which would hide them."""
    targets = raw.get("targets")
    for name, target in (targets if isinstance(targets, dict) else {}).items():
        if not isinstance(target, dict):
            continue
        sizes = {field: target[field] for field in _SIZES if field in target}
        if sizes.get("headroom", HEADROOM_PERCENT) not in _PERCENTS:
            del sizes["headroom"]  # that is told; the usual one shows what else is wrong
        for field in ("limits", "key_limits"):
            texts = target.get(field)
            for place, text in enumerate(texts if isinstance(texts, list) else ()):
                for reason in _why_unkept(sizes | {field: [text]}):
                    yield ("targets", name, field, place), reason


def _why_unkept(told: Mapping[str, object]) -> Iterator[str]:
    try:
        Target.model_validate({**_ANYWHERE, **told}, context=NoKeys())
    except ValidationError as error:
        for details in error.errors():
            mistakes = details.get("ctx", {}).get("error")
            if isinstance(mistakes, Mistakes):
                yield from (reason for _, reason in mistakes.found)


def unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Windows of models that no route has at their target: they would hold for nothing."""
    targets, routes = raw.get("targets"), raw.get("routes")
    if not isinstance(targets, dict) or not isinstance(routes, dict):
        return
    ladders = [value if isinstance(value, list) else [value] for value in routes.values()]
    rungs = {text for ladder in ladders for text in ladder if isinstance(text, str)}
    for name, target in targets.items():
        windows = target.get("windows") if isinstance(target, dict) else None
        models = {text.removeprefix(f"{name}/") for text in rungs if text.startswith(f"{name}/")} or {ANY_MODEL}
        if isinstance(windows, dict) and ANY_MODEL not in models:
            for model in windows.keys() - models - {ANY_MODEL}:
                reason = f"{model!r} is no model of a route at this target; {nearest(model, {*models, ANY_MODEL})}"
                yield ("targets", name, "windows", model), reason
