"""
From LiteLLM's configuration to ours: deployments of one place become a target with keys, groups with their fallbacks ladders.

LiteLLM counts rpm and tpm of each deployment, so a target here has one set of limits, and of one model if there are any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from swarmgate.cli.litellm.reading import Deployment, LeftOut, Reader
from swarmgate.cli.litellm.settings import ENDINGS, LIVES_ELSEWHERE, OURS, SECTIONS
from swarmgate.config.callers import Team
from swarmgate.config.targets import Target
from swarmgate.core.errors import BadInput
from swarmgate.providers.tables import GENERIC, dialect_of

LARGEST_TOKENS = Target.model_fields["largest_tokens"].default
_STAND_IN = {"KEY": "not-set"}


class TargetTable(NamedTuple):
    """A target to be written; `largest_tokens` 0 = the usual largest call fits its limits, `windows` are by model."""

    name: str
    url: str
    provider: str
    variables: tuple[str, ...]
    limits: tuple[str, ...]
    largest_tokens: int
    windows: Mapping[str, int]


class Converted(NamedTuple):
    """What the file becomes: `prices` by `target/model`, `caps` of everybody together, and what is not taken over."""

    targets: tuple[TargetTable, ...]
    routes: Mapping[str, tuple[str, ...]]
    prices: Mapping[str, Mapping[str, object]]
    caps: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def converted(text: str, environment: Mapping[str, str]) -> Converted:
    """
    A proxy's configuration as one of ours; `environment` tells what its own variables hold.

    Errors: `BadInput` if the text is no YAML, or none of its models can be served.
    """
    raw = _read(text)
    own = raw.get("environment_variables")
    reader = Reader({**environment, **{str(k): str(v) for k, v in (own if isinstance(own, dict) else {}).items()}})
    listed = raw.get("model_list")
    entries = listed if isinstance(listed, list) else []
    found = [one for number, entry in enumerate(entries) if (one := reader.deployment(number, entry)) is not None]
    if not found:
        told = "".join(f"; {field}: {reason}" for field, reason in reader.left_out)
        raise BadInput("model_list", f"has no model that can be served{told}")
    targets = _targets(found, reader)
    ladders = _ladders(found, targets)
    settings = {**_table(raw, "litellm_settings"), **_table(raw, "router_settings")}
    routes = dict(_with_fallbacks(ladders, settings, reader))
    routes |= _aliases(routes, settings, reader)
    caps = tuple(_caps(raw, reader))
    _tell_rest(raw, reader)
    if any(len(rungs) > 1 for rungs in ladders.values()):
        reader.omit(
            "model_list: groups of several deployments", "the first is used as long as it can serve, then the next"
        )
    prices = {f"{targets[_key(one)].name}/{one.model}": one.price for one in found if one.price and one.model != "*"}
    return Converted(tuple(targets.values()), routes, prices, caps, tuple(reader.left_out))


def _read(text: str) -> Mapping[str, Any]:
    if re.search(r"0[xb][0-9A-Fa-f_]{3000}", text):  # Python would read such a number, and not write it out
        raise BadInput("file", "has a number of more than 3,000 digits")
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise BadInput(
            "file", f"is not YAML{where}: {getattr(error, 'problem', None) or type(error).__name__}"
        ) from None
    if not isinstance(raw, dict):
        raise BadInput("file", "is no configuration of a LiteLLM proxy: it has no model_list")
    return raw


def _key(one: Deployment) -> tuple[str, str, tuple[str, ...], str]:
    """What deployments of one target have in common."""
    return one.url, one.provider, one.limits, one.model if one.limits else ""


def _targets(found: Iterable[Deployment], reader: Reader) -> dict[object, TargetTable]:
    groups: dict[object, list[Deployment]] = {}
    for one in found:
        groups.setdefault(_key(one), []).append(one)
    targets: dict[object, TargetTable] = {}
    for key, group in groups.items():
        first = group[0]
        speaks = first.provider if dialect_of(first.url.split("/")[2]) is GENERIC else ""
        variables = tuple(dict.fromkeys(one.variable for one in group))
        limits, largest = _usable(first, reader)
        name = _free(first.word.replace("_", "-"), {target.name for target in targets.values()})
        targets[key] = TargetTable(name, first.url, speaks, variables, limits, largest, _windows(group))
    return targets


def _windows(group: Iterable[Deployment]) -> dict[str, int]:
    """The context windows of one target's models; of several for one model the smallest fits everywhere."""
    windows: dict[str, int] = {}
    for one in group:
        if one.window:
            windows[one.model] = min(one.window, windows.get(one.model, one.window))
    return windows


def _free(name: str, taken: Iterable[str]) -> str:
    numbered = (f"{name}-{number}" if number > 1 else name for number in range(1, 10**6))
    return next(one for one in numbered if one not in taken)


def _usable(one: Deployment, reader: Reader) -> tuple[tuple[str, ...], int]:
    """The limits that can be kept, and the largest call that must fit them: as large as usual, or as fits."""
    largest = LARGEST_TOKENS
    while largest and not _holds(one, largest):
        largest //= 2
    if not largest:
        reader.omit(f"model_list: limits of {one.alias}", f"{', '.join(one.limits)} leave no room for a single call")
        return (), 0
    return one.limits, 0 if largest == LARGEST_TOKENS else largest


def _holds(one: Deployment, largest: int) -> bool:
    told = {"base_url": one.url, "keys": {"key": "env:KEY"}, "key_limits": list(one.limits), "largest_tokens": largest}
    try:
        Target.model_validate(told, context=_STAND_IN)
    except ValidationError:
        return False
    return True


def _ladders(found: Iterable[Deployment], targets: Mapping[object, TargetTable]) -> dict[str, tuple[str, ...]]:
    """Each group of deployments as rungs, those of a lower `order` first."""
    ladders: dict[str, list[tuple[int, str]]] = {}
    for one in found:
        ladders.setdefault(one.alias, []).append((one.order, f"{targets[_key(one)].name}/{one.model}"))
    return {
        alias: tuple(dict.fromkeys(rung for _, rung in sorted(rungs, key=lambda rung: rung[0])))
        for alias, rungs in ladders.items()
    }


def _with_fallbacks(
    ladders: Mapping[str, tuple[str, ...]], settings: Mapping[str, Any], reader: Reader
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every ladder with the rungs of its fallbacks below its own."""
    usual = _names(settings.get("default_fallbacks"))
    named = [*_pairs(settings.get("fallbacks")), *_pairs(settings.get("context_window_fallbacks"))]
    for alias, others in named:
        for other in (alias, *others):
            if other not in ladders:
                reader.omit(f"fallbacks: {other}", "is no group of model_list that can be served")
    for alias, rungs in ladders.items():
        own = [other for name, others in named if name == alias for other in others]
        more = [rung for other in own or usual for rung in ladders.get(other, ())]
        yield alias, tuple(dict.fromkeys((*rungs, *(rung for rung in more if not rung.endswith("/*")))))


def _aliases(routes: Mapping[str, Any], settings: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Further names of groups."""
    found = {}
    for alias, said in _items(settings.get("model_group_alias")):
        group = said.get("model") if isinstance(said, dict) else said
        if isinstance(group, str) and group in routes and alias.isprintable() and "*" not in alias:
            found[alias] = routes[group]
        else:
            reader.omit(f"model_group_alias.{alias}", "names no group of model_list that can be served")
    return found


def _caps(raw: Mapping[str, Any], reader: Reader) -> Iterator[str]:
    """What the proxy allows all its callers together."""
    general, settings = _table(raw, "general_settings"), _table(raw, "litellm_settings")
    budget, window = settings.get("max_budget"), settings.get("budget_duration")
    at_once = general.get("global_max_parallel_requests")
    for field, text in (
        ("litellm_settings.max_budget", f"{budget} USD per {window}" if budget is not None else ""),
        ("general_settings.global_max_parallel_requests", f"{at_once} concurrent" if at_once is not None else ""),
    ):
        if not text:
            continue
        try:
            Team.model_validate({"agents": ["*"], "limits": [text]})
        except ValidationError:
            reader.omit(field, 'is no cap; write one as "100 USD per 30d" into [environments.everybody]')
        else:
            yield text


def _tell_rest(raw: Mapping[str, Any], reader: Reader) -> None:
    """Name every setting that is not taken over."""
    for section, table in raw.items():
        if section in SECTIONS:
            for name in sorted(_table(raw, section)):
                if name not in OURS:
                    reader.omit(f"{section}.{name}", _instead(name))
        elif section != "model_list" and table is not None:
            reader.omit(str(section), LIVES_ELSEWHERE.get(section, "has no counterpart"))


def _instead(name: str) -> str:
    ending = next((reason for beginning, reason in ENDINGS if name.startswith(beginning)), "has no counterpart")
    return LIVES_ELSEWHERE.get(name, ending)


def _table(raw: Mapping[str, Any], section: str) -> dict[str, Any]:
    return dict(_items(raw.get(section)))


def _items(value: object) -> Iterator[tuple[str, Any]]:
    return ((str(key), one) for key, one in (value if isinstance(value, dict) else {}).items())


def _names(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else []) if isinstance(one, str)]


def _pairs(value: object) -> Sequence[tuple[str, list[str]]]:
    """`[{group: [other, ...]}, ...]`."""
    return [(key, _names(others)) for one in (value if isinstance(value, list) else []) for key, others in _items(one)]
