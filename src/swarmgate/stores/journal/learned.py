"""
What was learned of hosts: kept in a file over restarts, and each change told to the journal as a revision.

Unlike what was used, what was learned stays true whatever way a run ended. A file that cannot be read is kept beside, and
learning begins anew.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from swarmgate.core.compiler import Unit
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Learned, Quantity, Revision
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import Limits
from swarmgate.stores.journal import rows

FILE: Final = "learned.json"
AUTHOR: Final = "learned"


def load(folder: Path, say: Callable[[str], None] = lambda _: None) -> dict[str, Learned]:
    """What earlier runs learned, by lesson; `say` hears that nobody can read it. Errors: OSError."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Learned])
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        aside = path.replace(path.with_suffix(".broken"))
        say(f"{path} cannot be read ({error}) and is kept as {aside.name}; hosts are learned anew")
        return {}


def save(folder: Path, learned: Mapping[str, Learned]) -> None:
    """Put it on file, whole. Errors: OSError."""
    fresh = folder / f"{FILE}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(dict(learned)))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / FILE)


def row(number: tuple[int, int], policy: int, lesson: Lesson, limits: Limits, revision: Revision) -> rows.Revision:
    """What the journal says of one change; `number` is that of its row and its instant."""
    capped = revision.quantity is Quantity.CAP
    return rows.Revision(
        *number,
        policy,
        lesson.cap_budget if capped else lesson.rate_budget,
        limits.revision,
        lesson.target,
        (Unit.CONCURRENT if capped else Unit.REQUESTS).value,
        revision.value_micro // MICRO,
        0 if capped else lesson.learner.window_ms,
        limits.kind.name.lower(),
        limits.burst,
        limits.quota,
        limits.window_ms,
        AUTHOR,
        f"{revision.quantity.value}: {revision.reason.value}",
        number[1],
    )
