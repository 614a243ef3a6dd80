"""
What is wrong with a TOML file, all at once: each problem with its line, its key, and the nearest name that would do.

pydantic finds the problems, tomllib gives no lines; so the text is read once more, only for where each key stands.
"""

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from swarmgate.config.wording import plain
from swarmgate.core.nearest import nearest

Loc = tuple[int | str, ...]

_PART = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_PATH = rf"(?P<path>{_PART}(?:\s*\.\s*{_PART})*)"
_HEADER = re.compile(rf"\s*(?P<array>\[)?\[\s*{_PATH}\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(rf"\s*{_PATH}\s*=")
_ENDLESS = re.compile(r"[=,\[{]\s*[+-]?(?:0[xob])?[0-9A-Fa-f_]{3000}")  # Python would not write such a number out
_LONGEST = 80  # characters of a wrong value
_NAME = "[key]"  # the step that pydantic adds to a path where the name at its end is wrong
_TABLE_NAMES = re.compile(r"\((?:'[^']*',? ?)+\)")


class Problem(NamedTuple):
    """One thing to mend: the line (from 1), the dotted key, what is wrong and what would be right."""

    line: int
    field: str
    reason: str


class Mistakes(ValueError):
    """Several mistakes of one table, each by its path below it: what a validator raises that looks at the whole table."""

    def __init__(self, found: Iterable[tuple[Loc, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(f"{'.'.join(map(str, loc))}: {reason}" for loc, reason in self.found))


class FileError(ValueError):
    """Every problem of one file (line 0: it has none); `field` and `reason` are those of the first."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems))
        _, self.field, self.reason = self.problems[0]
        super().__init__(
            "\n".join(
                f"{source}:{line}: {field}: {reason}" if line else f"{source}: {field}: {reason}"
                for line, field, reason in self.problems
            )
        )


def text_of(path: Path) -> str:
    """What stands in a file. Errors: `FileError` if it is not UTF-8, OSError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        raise FileError(str(path), [Problem(1, "file", reason)]) from None


def read_toml(text: str, source: str) -> dict[str, Any]:
    """The tables in a text. Errors: `FileError` with the line."""
    if endless := _ENDLESS.search(text):
        number = text.count("\n", 0, endless.end()) + 1
        raise FileError(source, [Problem(number, "file", "has a number of more than 3,000 digits")])
    try:
        return tomllib.loads(text)
    except RecursionError:
        reason = "has tables or lists too deep within each other"
        deepest = max(enumerate(text.splitlines(), 1), key=lambda line: line[1].count("[") + line[1].count("{"))
        raise FileError(source, [Problem(deepest[0], "file", reason)]) from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))  # none: it is at the end of the document
        number = int(line[1]) if line else max(1, len(text.rstrip().splitlines()))
        raise FileError(source, [Problem(number, "file", f"is not TOML: {_said(error)}")]) from None


def _said(error: tomllib.TOMLDecodeError) -> str:
    """Its words, with tables as they stand in the file; the line is told already."""
    words = str(error).partition(" (at ")[0]
    return _TABLE_NAMES.sub(lambda found: "[" + ".".join(re.findall("'([^']*)'", found[0])) + "]", words)


def key_lines(text: str) -> dict[Loc, int]:
    """The line of each table header and of each key in it, by the path that pydantic uses."""
    lines: dict[Loc, int] = {}
    last_index: dict[Loc, int] = {}
    table: Loc = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _table(_parts(header["path"]), last_index, is_array=bool(header["array"]))
            for size in range(1, len(table) + 1):  # [a.b] is the first word of `a`, too
                lines.setdefault(table[:size], number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key["path"])), number)
    return lines


def _parts(path: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, path)]


def _table(parts: list[str], last_index: dict[Loc, int], *, is_array: bool) -> Loc:
    path: Loc = ()
    for part in parts:
        if path in last_index:
            path = (*path, last_index[path])
        path = (*path, part)
    if is_array:
        last_index[path] = last_index.get(path, -1) + 1
    return (*path, last_index[path]) if path in last_index else path


def problem(loc: Loc, reason: str, lines: Mapping[Loc, int]) -> Problem:
    """The problem of the key at `loc`; its line is that of the key, or of the innermost table around it."""
    around = next((loc[:size] for size in range(len(loc), 0, -1) if loc[:size] in lines), ())
    return Problem(lines.get(around, 1), _shown(loc), reason)


def _shown(loc: Loc) -> str:
    """The path of a key; a part that nobody would see, or see the end of, stands in quotes."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_quoted(part)}" for part in loc]
    return "".join(parts).removeprefix(".")


def _quoted(part: str) -> str:
    is_plain = part and part.isprintable() and not set(part) & set(" .\"'")
    return part if is_plain else json.dumps(part)


def explain(
    error: ValidationError,
    raw: object,
    names: Callable[[Loc], Collection[str]],
    lines: Mapping[Loc, int],
    secret: Collection[str] = (),
) -> list[Problem]:
    """
    Validation errors as problems; `names` tells the valid keys of the table at a path, for misspelt ones.

    What stands at or below a key in `secret` is not shown.
    """
    return [problem(loc, reason, lines) for loc, reason in reasons(error.errors(), raw, names, secret)]


def reasons(
    errors: Iterable[ErrorDetails], raw: object, names: Callable[[Loc], Collection[str]], secret: Collection[str] = ()
) -> list[tuple[Loc, str]]:
    """The same by paths."""
    found: list[tuple[Loc, str]] = []
    for details in errors:
        mistakes = details.get("ctx", {}).get("error")
        if isinstance(mistakes, Mistakes):
            found += [((*details["loc"], *loc), reason) for loc, reason in mistakes.found]
        else:
            found.append(_one(details, raw, names, secret))
    return found


def _one(
    details: ErrorDetails, raw: object, names: Callable[[Loc], Collection[str]], secret: Collection[str]
) -> tuple[Loc, str]:
    loc = _in_file(details["loc"], raw)
    context: dict[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "missing":
            return loc, "is missing"
        case "extra_forbidden" | "unexpected_keyword_argument":
            return loc, f"is unknown; {nearest(loc[-1], names(loc[:-1]))}"
        case "union_tag_not_found":
            return (*loc, "kind"), "is missing"
        case "union_tag_invalid":
            tags = re.findall(r"'([^']*)'", context["expected_tags"])
            return (*loc, "kind"), f"{context['tag']!r} is no kind; {nearest(context['tag'], tags)}"
        case "literal_error":
            values = re.findall(r"'([^']*)'", context["expected"])
            return loc, f"{details['input']!r} is unknown; {nearest(details['input'], values)}"
        case "value_error" if hasattr(context["error"], "reason"):
            field = context["error"].field
            return ((*loc, field) if field else loc), context["error"].reason
        case _ if any(part in secret for part in loc):
            return loc, plain(details["type"], context, details["msg"])
        case "tuple_type" | "list_type" if isinstance(details["input"], dict):
            return loc, f"must be a list: write [[{loc[-1]}]] for each of its tables"
        case _:
            return loc, f"{plain(details['type'], context, details['msg'])}; found {_short(details['input'])}"


def _short(value: object) -> str:
    """Enough of a value to find it again."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _in_file(loc: Loc, raw: object) -> Loc:
    """The path as the file has it: pydantic adds the kind of a table as a step of its own, the file does not."""
    path: Loc = ()
    here: Any = raw
    for step, part in enumerate(loc):
        last = step == len(loc) - 1
        if isinstance(here, dict):
            inside = part in here
        else:
            inside = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if inside:
            here = here[part]
        if inside or last:
            path = (*path, part)
    return path[:-1] if path[-1:] == (_NAME,) else path
