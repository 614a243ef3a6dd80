"""
Reads scenario files: TOML in, a Scenario out, or every problem at once with line, key and the nearest valid name.

The name of a scenario is that of its file, its story the comment at the head. Names that refer to others (the target of
a load, the place of a fault) are looked up in the raw file, so that they are reported together with everything else.
"""

import re
from collections.abc import Collection, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from swarmgate.config.problems import FileError, Loc, explain, key_lines, problem, read_toml, text_of
from swarmgate.core.limits import BadLimit
from swarmgate.core.nearest import nearest
from swarmgate.lab import scenario
from swarmgate.lab.errors import LabError
from swarmgate.lab.faults import RULES, Fault, places_of
from swarmgate.lab.latency import laws
from swarmgate.lab.scenario import MOST_GATES, Scenario
from swarmgate.lab.sim.policies import TargetPolicy, largest_calls

_LIMITS = (
    scenario.FixedWindowLimit,
    scenario.SlidingLogLimit,
    scenario.TokenBucketLimit,
    scenario.GcraLimit,
    scenario.ConcurrencyLimit,
)
_FROM_THE_FILE = ("name", "story")
_OF_LIMITS = sorted({key for limit in _LIMITS for key in limit.model_fields})
_KEYS: dict[str, Collection[str]] = {
    "": [key for key in Scenario.model_fields if key not in _FROM_THE_FILE],
    "targets": list(scenario.Target.model_fields),
    "targets.limits": _OF_LIMITS,
    "targets.group_limits": _OF_LIMITS,
    "loads": list(scenario.Load.model_fields),
    "crawls": list(scenario.Crawl.model_fields),
    "crawls.limits": _OF_LIMITS,
    "crawls.group_limits": _OF_LIMITS,
    "faults": list(Fault.__match_args__),
    "checks": list(scenario.Check.model_fields),
}


def shipped() -> tuple[str, ...]:
    """The names of the scenarios that come with the package, in order of the alphabet."""
    folder = resources.files("swarmgate.lab") / "scenarios"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load_shipped(name: str) -> Scenario:
    """The shipped scenario of that name; LabError with the nearest name if there is none."""
    if name not in shipped():
        raise LabError("scenario", f"{name!r} is not shipped; {nearest(name, shipped())}")
    file = resources.files("swarmgate.lab") / "scenarios" / f"{name}.toml"
    return parse(file.read_text(encoding="utf-8"), name, source=f"{name}.toml")


def load(path: Path) -> Scenario:
    """The scenario of a file of one's own; FileError with all its problems, OSError if it cannot be read."""
    return parse(text_of(path), path.stem, source=str(path))


def parse(text: str, name: str, source: str = "scenario") -> Scenario:
    """The scenario that `text` describes; FileError with all its problems."""
    raw, lines = read_toml(text, source), key_lines(text)
    found = [problem((key,), "comes from the file itself: leave it out", lines) for key in _FROM_THE_FILE if key in raw]
    found += [problem(loc, reason, lines) for loc, reason in _unresolved(raw)]
    try:
        read = Scenario.model_validate(raw | {"name": name, "story": _story(text)})
    except ValidationError as error:
        found += explain(error, raw, _keys, lines)
    else:
        found += [problem(loc, reason, lines) for loc, reason in ([] if found else _not_kept(read))]
    if found:
        raise FileError(source, found)
    return read


def _not_kept(read: Scenario) -> Iterator[tuple[Loc, str]]:
    """Limits that a gate could not keep: those that the compiler refuses."""
    tables: list[tuple[Loc, scenario.Target | scenario.Crawl]] = []
    tables += [(("targets", index), target) for index, target in enumerate(read.targets)]
    tables += [(("crawls", index), crawl) for index, crawl in enumerate(read.crawls)]
    for loc, one in tables:
        for key, limits in (("limits", one.limits), ("group_limits", one.group_limits)):
            for index, limit in enumerate(limits):
                try:
                    TargetPolicy(scenario.Target(name=one.name, limits=(limit,)), largest_calls(read, one.name))
                except BadLimit as bad:
                    yield (*loc, key, index, "limit"), bad.reason


def _keys(table: Loc) -> Collection[str]:
    return _KEYS[".".join(part for part in table if isinstance(part, str))]


def _story(text: str) -> str:
    head = re.match(r"(?:#.*\n)*", text)
    return "\n".join(line.removeprefix("#").strip() for line in (head[0] if head else "").splitlines())


def _tables(raw: dict[str, Any], key: str) -> Iterator[tuple[Loc, dict[str, Any]]]:
    tables = raw.get(key)
    for index, table in enumerate(tables if isinstance(tables, list) else ()):
        if isinstance(table, dict):
            yield (key, index), table


def _names(raw: dict[str, Any], key: str) -> list[str]:
    return [str(table["name"]) for _, table in _tables(raw, key) if "name" in table]


def _references(raw: dict[str, Any]) -> Iterator[tuple[Loc, dict[str, Any], str, Collection[str]]]:
    """Each table with a key that must name something, and the names that there are."""
    targets, loads, crawls = _names(raw, "targets"), _names(raw, "loads"), _names(raw, "crawls")
    gates = raw.get("gates", 1)
    places = places_of(targets, gates if isinstance(gates, int) and gates <= MOST_GATES else MOST_GATES)
    for loc, table in _tables(raw, "targets"):
        yield loc, table, "latency", laws()
        yield loc, table, "fallback", targets
    for loc, table in _tables(raw, "loads"):
        yield loc, table, "target", targets
    for loc, table in _tables(raw, "checks"):
        yield loc, table, "target", targets
        yield loc, table, "load", loads + crawls
    for loc, table in _tables(raw, "faults"):
        if isinstance(kind := table.get("kind"), str) and kind in RULES:
            yield loc, table, "where", places[RULES[kind].place]


def _unresolved(raw: dict[str, Any]) -> Iterator[tuple[Loc, str]]:
    for loc, table, key, names in _references(raw):
        if isinstance(value := table.get(key), str) and value not in names:
            yield (*loc, key), f"{value!r} is not there; {nearest(value, names)}"
    if not raw.get("crawls"):
        for key in ("targets", "loads"):
            if raw.get(key, []) == []:
                yield (key,), "is empty: at least one is needed"
    for key in ("targets", "loads", "crawls"):
        seen: list[Any] = []
        for loc, table in _tables(raw, key):
            if "name" in table and table["name"] in seen:
                yield (*loc, "name"), f"{table['name']!r} is used more than once"
            seen.append(table.get("name"))
            if table.get("limits") == []:
                yield (*loc, "limits"), "is empty: a target without a limit needs no gate"
