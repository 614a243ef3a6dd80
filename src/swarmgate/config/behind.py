"""
Mistakes behind mistakes: rules over several fields of a table, which pydantic leaves out while one of its fields is wrong.

The file is read again without what is wrong in it, until nothing new is told. What is missing, and what a rule cannot do
without, is stood in for; what a rule says because of a field that was taken out (`NEEDS`) is not told.
"""

from collections.abc import Callable, Iterator
from typing import Any

from swarmgate.config.problems import Loc
from swarmgate.config.secret import HiddenKey

Told = tuple[Loc, str]

_KEY = HiddenKey("not-read")
_OF_CALLERS = ("agents", "teams", "environments", "task_types")
_STAND_INS: dict[
    str, tuple[tuple[str, ...], object]
] = {  # by field: in which sections, and what nothing else fails for
    "base_url": (("targets",), "http://127.0.0.1/"),
    "keys": (("targets",), {"key": _KEY}),
    "largest_tokens": (("targets", *_OF_CALLERS), 1),
    "largest_output": (("targets",), 1),
    "agents": (("teams", "environments"), ["*"]),
    "hosts": (("policies",), ["stand-in.invalid"]),
}
_OF_HOSTS = {"burst", "reserve", "points"}
NEEDS: dict[str, dict[str, set[str]]] = {  # by section, what is said of a field is true only if these are good
    "targets": {"accounts": {"keys"}},
    "egress": {
        "ceiling": {"unknown", "ceiling"},
        "most_in_flight": {"in_flight", "most_in_flight"},
        "most_per_group": {"most_targets", "most_per_group"},
    },
    "policies": {"": {"hosts", "domains", "preset"}, "classes": {"domains", *_OF_HOSTS}, "limits": _OF_HOSTS},
}
_FLAT = {"agents", "tls", "egress"}  # sections that are one table; the others hold tables by name


def behind(raw: object, first: list[Told], again: Callable[[object], tuple[list[Told], list[Told]]]) -> Iterator[Told]:
    """What rules say besides `first`; `again` tells what is wrong in a file: what its rules say, and all of it."""
    gone: set[Loc] = set()
    found = first
    while fresh := {_taken(loc) for loc, _ in found} - gone:
        gone |= fresh
        places: dict[Loc, list[int]] = {}
        rest = _without(raw, (), gone, places)
        of_rules, found = ([(_original(loc, places), why) for loc, why in told] for told in again(rest))
        yield from ((loc, why) for loc, why in of_rules if not _follows(loc, gone))


def _taken(loc: Loc) -> Loc:
    """What is taken out for a mistake: a policy that matches nothing gets hosts."""
    return (*loc, "hosts") if len(loc) == 2 and loc[0] == "policies" else loc


def _without(value: Any, at: Loc, gone: set[Loc], places: dict[Loc, list[int]]) -> Any:
    """The value without what is gone; `places` tells for each list where its items stood."""
    if isinstance(value, dict):
        kept = {
            name: _without(one, (*at, name), gone, places) for name, one in value.items() if (*at, name) not in gone
        }
        for loc in gone:
            if loc[:-1] == at and (stand_in := _stand_in(loc)) is not None:
                kept[loc[-1]] = stand_in
        return kept
    if isinstance(value, list):
        places[at] = [place for place in range(len(value)) if (*at, place) not in gone]
        return [_without(value[place], (*at, place), gone, places) for place in places[at]]
    return value


def _stand_in(loc: Loc) -> object:
    if len(loc) == 4 and (loc[0], loc[2]) == ("targets", "keys"):
        return _KEY
    if len(loc) == 5 and (loc[0], loc[2], loc[4]) == ("policies", "classes", "paths"):
        return ["*"]
    sections, stand_in = _STAND_INS.get(str(loc[-1]), ((), None))
    return stand_in if loc[0] in sections and len(loc) == _size(loc) + 1 else None


def _size(loc: Loc) -> int:
    """How many steps lead to the table in which it is."""
    return 1 if loc[0] in _FLAT else 2


def _original(loc: Loc, places: dict[Loc, list[int]]) -> Loc:
    path: Loc = ()
    for part in loc:
        known = places.get(path, [])
        path = (*path, known[part] if isinstance(part, int) and part < len(known) else part)
    return path


def _follows(loc: Loc, gone: set[Loc]) -> bool:
    """Whether it is told because something was taken out."""
    if not loc or loc[-1] == "limits":  # the list as a whole: less in it is never a mistake
        return False
    size = _size(loc)
    table, field = loc[:size], str(loc[size]) if len(loc) > size else ""
    needs = NEEDS.get(str(loc[0]), {}).get(field, set())
    names = {next((part for part in reversed(one) if isinstance(part, str)), "") for one in gone if one[:size] == table}
    return bool(needs & names)
