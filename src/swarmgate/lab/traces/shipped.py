"""The traces that come inside the package, each with its source and licence, and whatever file the user names instead."""

import json
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.reading import Trace, read_open_trace, read_trace


class Origin(NamedTuple):
    """Where a shipped trace comes from."""

    calls: int
    source: str
    licence: str


@cache
def origins() -> dict[str, Origin]:
    """The shipped traces by name."""
    read = json.loads((_folder() / "index.json").read_text(encoding="utf-8"))
    return {name: Origin(**entry) for name, entry in read.items()}


@cache
def shipped_trace(name: str) -> Trace:
    """The shipped trace of that name; KeyError if there is none."""
    origins()[name]
    return read_open_trace(BytesIO((_folder() / f"{name}.csv.gz").read_bytes()), name)


def trace_of(name_or_path: str) -> Trace:
    """A shipped trace by its name, else the file. Errors: `TraceError`, `LabError`."""
    if name_or_path in origins():
        return shipped_trace(name_or_path)
    try:
        return read_trace(Path(name_or_path))
    except FileNotFoundError:
        known = ", ".join(sorted(origins()))
        raise LabError("trace", f"{name_or_path[:80]!r} is no file, and none of mix, {known}") from None
    except OSError as error:
        raise LabError("trace", f"{name_or_path[:80]!r} cannot be read: {error.strerror}") from None


def _folder() -> resources.abc.Traversable:
    return resources.files("swarmgate.lab") / "data" / "traces"
