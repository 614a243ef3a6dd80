"""
Which ladder serves a model: its own, that of the longest beginning it has in common with a name like `claude-*`, or `*`.

A rung of any model (`Rung.apart`) has a ring of keys for each model that is called: one that its provider refuses leaves
the others their keys. Callers choose names, so only so many are remembered, those called last.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from swarmgate.core.record import Ring, Rung
from swarmgate.core.rung_breaker import RungBreaker

ANY: Final = "*"  # ends a name that stands for all that begin like it
LONGEST_NAME: Final = 80  # of a model, where its likeness to others is looked for

MOST_MODELS: Final = 256  # with rings of their own; of one that was forgotten, a refusal is learned anew
MOST_KEYS: Final = 16_384  # in all of those rings: fewer models where there are many keys
LONGEST_OWN: Final = 256  # of a name with a ring of its own; longer ones share


class Ladders:
    """Rungs by model; `by_model` has the names that stand for themselves."""

    __slots__ = ("_families", "_met", "_most", "by_model")

    def __init__(self, ladders: Mapping[str, tuple[Rung, ...]]) -> None:
        self._met: dict[str, tuple[Rung, ...]] = {}
        self.replace(ladders)

    def replace(self, ladders: Mapping[str, tuple[Rung, ...]]) -> None:
        """Serve these from now on: whoever holds this object sees them at the next call."""
        self.by_model = {name: rungs for name, rungs in ladders.items() if not name.endswith(ANY)}
        families = [(name.removesuffix(ANY), rungs) for name, rungs in ladders.items() if name.endswith(ANY)]
        self._families = sorted(families, key=lambda family: -len(family[0]))
        keys = sum(len(rung.routes) for rung in self.rungs if rung.apart is not None)
        self._most = max(1, min(MOST_MODELS, MOST_KEYS // max(1, keys)))
        met, self._met = self._met, {}
        for model, known in met.items():
            if model not in self.by_model:
                self._meet(model, known)

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
    def met(self) -> list[Rung]:
        """The rungs of any model again, with the rings of each that was called."""
        return [rung for rungs in self._met.values() for rung in rungs if rung.apart is not None]

    @property
    def ladders(self) -> dict[str, tuple[Rung, ...]]:
        """Every ladder by its name."""
        return self.by_model | {beginning + ANY: rungs for beginning, rungs in self._families}

    def other(self, model: str) -> tuple[Rung, ...] | None:
        """The ladder of a model that has none of its own; None if nothing serves it."""
        found = self._met.get(model)
        if found is not None:
            return found
        for beginning, rungs in self._families:
            if model.startswith(beginning):
                return rungs
        return None

    def called(self, model: str) -> tuple[Rung, ...] | None:
        """The same for a call: from now on the model has rings of its own."""
        found = self._met.pop(model, None)
        if found is None:
            return self._meet(model)
        self._met[model] = found  # as the last one called
        return found

    def _meet(self, model: str, known: tuple[Rung, ...] = ()) -> tuple[Rung, ...] | None:
        """The ladder of a model that was not called yet; `known` is what it had in the last configuration."""
        rungs = self.other(model)
        if rungs is None or len(model) > LONGEST_OWN:
            return rungs
        while len(self._met) >= self._most:
            del self._met[next(iter(self._met))]
        rings = {rung.apart: rung.ring for rung in known if rung.apart is not None}
        self._met[model] = found = tuple(_own(rung, rings) for rung in rungs)
        return found

    def nearest(self, model: str) -> list[str]:
        """The names that are most like a model that has no ladder."""
        return get_close_matches(model[:LONGEST_NAME], self.names, n=3) or sorted(self.names)


def _own(rung: Rung, rings: Mapping[Callable[[], Ring], Ring]) -> Rung:
    """The rung with a ring for one model: what it had at the same keys, else a new one."""
    if rung.apart is None:
        return rung
    return rung._replace(ring=rings.get(rung.apart) or rung.apart(), breaker=RungBreaker())
