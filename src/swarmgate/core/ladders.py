"""
Which ladder serves a model: its own, that of the longest beginning it has in common with a name like `claude-*`, or `*`.

A caller's name of a model never becomes a key of a map here: what it says is looked up and forgotten.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from swarmgate.core.record import Rung

ANY: Final = "*"  # ends a name that stands for all that begin like it
LONGEST_NAME: Final = 80  # of a model, where its likeness to others is looked for


class Ladders:
    """Rungs by model; `by_model` has the names that stand for themselves."""

    __slots__ = ("_families", "by_model")

    def __init__(self, ladders: Mapping[str, tuple[Rung, ...]]) -> None:
        self.replace(ladders)

    def replace(self, ladders: Mapping[str, tuple[Rung, ...]]) -> None:
        """Serve these from now on: whoever holds this object sees them at the next call."""
        self.by_model = {name: rungs for name, rungs in ladders.items() if not name.endswith(ANY)}
        families = [(name.removesuffix(ANY), rungs) for name, rungs in ladders.items() if name.endswith(ANY)]
        self._families = sorted(families, key=lambda family: -len(family[0]))

    @property
    def names(self) -> list[str]:
        """Every name as it is written."""
        return [*self.by_model, *(beginning + ANY for beginning, _ in self._families)]

    @property
    def rungs(self) -> list[Rung]:
        """Every rung of every ladder, once."""
        ladders = [*self.by_model.values(), *(rungs for _, rungs in self._families)]
        return list({(rung.target, rung.model): rung for ladder in ladders for rung in ladder}.values())

    @property
    def ladders(self) -> dict[str, tuple[Rung, ...]]:
        """Every ladder by its name."""
        return self.by_model | {beginning + ANY: rungs for beginning, rungs in self._families}

    def other(self, model: str) -> tuple[Rung, ...] | None:
        """The ladder of a model that has none of its own; None if nothing serves it."""
        for beginning, rungs in self._families:
            if model.startswith(beginning):
                return rungs
        return None

    def nearest(self, model: str) -> list[str]:
        """The names that are most like a model that has no ladder."""
        return get_close_matches(model[:LONGEST_NAME], self.names, n=3) or sorted(self.names)
