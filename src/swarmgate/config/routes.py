"""`[routes]`: what a caller asks for, and the ladder of deployments that may serve it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from swarmgate.config.problems import Loc
from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import nearest

ANY_MODEL = "*"


class Deployment(NamedTuple):
    """One rung: a model at a target; model `*` = whatever the caller asked for."""

    target: str
    model: str


def _ladder(value: object) -> tuple[Deployment, ...]:
    rungs: list[Any] = value if isinstance(value, list) else [value]
    wrong = next((one for one in rungs if not (isinstance(one, str) and "/" in one)), None)
    if wrong is not None:
        raise BadInput("", f'{wrong!r} is no rung; write "target/model" or ["target/model", "next/model"]')
    if not rungs:
        raise BadInput("", 'is an empty ladder; write "target/model" or ["target/model", "next/model"]')
    return tuple(Deployment(*text.split("/", 1)) for text in rungs)


Ladder = Annotated[tuple[Deployment, ...], BeforeValidator(_ladder)]


def unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Rungs at targets that are not there, with or without `[targets]`."""
    targets, routes = raw.get("targets", {}), raw.get("routes", {})
    if not isinstance(targets, dict) or not isinstance(routes, dict):
        return
    if len(targets) > 1 and not routes:
        yield ("routes",), "is missing: with several targets each model needs a ladder"
    for alias, value in routes.items():
        if ANY_MODEL in alias[:-1]:
            yield ("routes", alias), 'has a * in its middle; only its end can stand for more, as in "claude-*"'
        for text in value if isinstance(value, list) else [value]:
            name = text.partition("/")[0] if isinstance(text, str) and "/" in text else None
            if name is not None and name not in targets:
                known = nearest(name, targets) if targets else f"there is none: write [targets.{name}]"
                yield ("routes", alias), f"{name!r} is no target; {known}"
