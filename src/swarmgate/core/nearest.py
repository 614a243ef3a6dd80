"""The name that somebody probably meant: every sentence about a name that is none ends with it, if there is one."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

LONGEST: Final = 80  # characters of a wrong name that count
MOST: Final = 256  # names that are compared: with long ones like each other that takes 10 ms


def nearest(wrong: object, valid: Collection[str]) -> str:
    """A half sentence that names the nearest valid name, or all of them."""
    close = closest(wrong, valid)
    return f"nearest is {close!r}" if close else f"one of {', '.join(sorted(valid))}"


def near(wrong: object, valid: Iterable[str]) -> str:
    """The same for a place where nobody wants to read all of them: empty if none is near, else it begins with a semicolon."""
    close = closest(wrong, valid)
    return f"; nearest is {close!r}" if close else ""


def closest(wrong: object, valid: Iterable[str]) -> str:
    """The nearest of the first `MOST` names, whatever their case; empty if none is near."""
    names = {name.lower(): name for name in islice(valid, MOST)}
    close = get_close_matches(str(wrong)[:LONGEST].lower(), sorted(names), n=1)
    return names[close[0]] if close else ""
