"""
Classes of requests within a target, as the operator writes them: `/v1/search*`, and for which methods.

Patterns see the decoded path without dot segments (`url_path.path_to_judge`), never the raw one, so that no spelling
evades them. The names are a closed list given by the operator; a caller cannot make a new one.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from swarmgate.core.target_errors import BadPattern, BadTarget
from swarmgate.core.url_path import path_to_judge, path_to_send

MOST_CLASSES: Final = 32  # per host; each is a budget of its own
NO_CLASS: Final = ""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_METHOD: Final = re.compile(r"[A-Z][A-Z-]*")


class PathClass(NamedTuple):
    """A named class: requests by one of `methods` (none listed = any) whose path matches `pieces` around each `*`."""

    name: str
    pattern: str
    methods: frozenset[str]
    pieces: tuple[str, ...]


def path_class(name: str, pattern: str, methods: Iterable[str] = ()) -> PathClass:
    """
    A class from the operator's words; `*` stands for any characters, `/` included; paths are case-sensitive.

    Errors: `BadPattern`, also for a pattern that no judged path can match because it is not in normal form itself.
    """
    if not _NAME.fullmatch(name):
        raise BadPattern("class", name, "must be 1 to 64 of a-z, 0-9, - and _, and start with a letter or digit")
    if not pattern.startswith("/") or pattern != _judged(pattern):
        raise BadPattern("path", pattern, "must start with / and be decoded, without dot segments or empty segments")
    named = frozenset(methods)
    for method in named:
        if not _METHOD.fullmatch(method):
            raise BadPattern("method", method, "must be a method in upper case, such as GET")
    return PathClass(name, pattern, named, tuple(pattern.split("*")))


def class_of(classes: Sequence[PathClass], method: str, path: str) -> str:
    """Name of the first class that takes this method and judged path, or `NO_CLASS`."""
    for one in classes:
        if (not one.methods or method.upper() in one.methods) and _matches(one.pieces, path):
            return one.name
    return NO_CLASS


def _matches(pieces: tuple[str, ...], path: str) -> bool:
    """Whether the pieces occur in this order, the first at the start and the last at the end; linear, no backtracking."""
    if len(pieces) == 1:
        return path == pieces[0]
    first, *middle, last = pieces
    if not path.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(path) - len(last) >= at and path.endswith(last)


def _judged(pattern: str) -> str:
    try:
        return path_to_judge(path_to_send(pattern))
    except BadTarget:
        return ""
