"""
What an operator may change while the gate runs: pause, resume, another limit; in force at the next admission.

Each change is a compare-and-set of the revision in force. What was used stays used, so the old bound holds until the
change and the new one from then on (core/kernel.py: revise). Who waits asks again at once. Recording who did it, and why,
is for whoever calls this.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from swarmgate.config.quota import read_amount
from swarmgate.core.answers import Revised
from swarmgate.core.book import Book
from swarmgate.core.compiler import WAY, Compiled, Published, Unit, compile_limit
from swarmgate.core.errors import BadInput
from swarmgate.core.lesson import CAP, RATE
from swarmgate.core.limits import BadLimit, Limits
from swarmgate.core.nearest import near
from swarmgate.core.record import Rung
from swarmgate.engine.pump import Pump
from swarmgate.gate.view.directory import Directory, taken


class Change(NamedTuple):
    """One budget as it is from now on: whose it is, its limits with their revision, and what they are to keep."""

    budget: str
    target: str
    limits: Limits
    published: Published


class Operator:
    """
    Changes of the budgets of one book; whatever cannot be done changes nothing and is a `BadInput`.

    `held` are the budgets that are paused, for whoever learns; `changed` hears of every published limit that changed; `meet`
    makes the budgets known of a host or group that is named before anybody called it, and tells whose they are.
    """

    def __init__(
        self,
        book: Book,
        pump: Pump,
        directory: Directory,
        held: set[str],
        changed: Callable[[str, Published], None],
    ) -> None:
        self._book = book
        self._pump = pump
        self._directory = directory
        self._held = held
        self._changed = changed
        self.meet: Callable[[str], str] = lambda name: name

    def pause(self, name: str) -> list[Change]:
        """
        Admit nothing that takes from a budget, or from any budget of a target; calls wait or are deferred.

        A host, or a group of hosts, may be named before it is called.
        """
        return self._set_paused(name if self._known(name) else self.meet(name), paused=True)

    def resume(self, name: str) -> list[Change]:
        """
        Go on where a pause began, less what has drained meanwhile; what of a target was out is tried again.

        A key without money or refused by its provider is out until a person acts (design 4: Kinds of 429): this is how. A
        host, by its name or as a target, is no longer left alone for as long as it asked.
        """
        if self._revive(name) and not self._known(name):
            return []
        return self._set_paused(name, paused=False)

    def limit(self, name: str, amount: int, window_ms: int = 0) -> list[Change]:
        """
        Another published limit for a budget, or for all budgets of a target if they keep the same one.

        `window_ms` 0 = the window stays. Errors: `BadInput` also where the new limit needs a budget of another kind.
        """
        names = self._alike(name)
        wanted = [self._compiled(one, amount, window_ms) for one in names]
        changes = []
        for one, (published, compiled) in zip(names, wanted, strict=True):
            way = compiled.way()
            if way is not None and one + WAY in self._book.cells:
                self._revise(one + WAY, way)
            limits = self._revise(one, replace(compiled.limits, paused=self._limits(one).paused))
            self._directory.change(one, published)
            self._directory.freshen(one, compiled.fresh_ms)
            changes.append(self._change(one, limits))
            self._changed(one, published)
        self._pump.reconsider(tuple(names))
        return changes

    def units(self, name: str, amount: str) -> int:
        """So much of what a budget counts, or of what all budgets of a target count, as people write it. Errors: `BadInput`."""
        return read_amount(amount, self._directory.published[self._alike(name)[0]].unit)

    def listing(self) -> list[Change]:
        """Every budget as it is."""
        return [self._change(name, self._limits(name)) for name in self._directory.names]

    def _revive(self, target: str) -> bool:
        """Bring a target's dead keys back, and a host that rests; whether there is such a target."""
        room = self._pump.room
        rings = {rung.ring for rung in self._rungs_of(target)}
        revived = {ring for ring in rings if ring.revive()}
        if revived:  # so they are for models that were met on the way, which have rings of their own
            revived |= {ring for call, ring in room.keyless.items() if call.rungs[call.rung].target == target}
        for ring in revived:
            room.keys_changed(ring)
        self._pump.wake_ready()
        return bool(rings)

    def _set_paused(self, name: str, *, paused: bool) -> list[Change]:
        names = [one for one in self._named(name) if self._limits(one).paused != paused]
        (self._held.update if paused else self._held.difference_update)(names)
        changes = [self._change(one, self._revise(one, replace(self._limits(one), paused=paused))) for one in names]
        self._pump.reconsider(tuple(names))
        return changes

    def _named(self, name: str) -> list[str]:
        """The budget of that name, or those of the target of that name. Errors: `BadInput`."""
        names = self._known(name)
        if not names:
            rungs = self._rungs_of(name)
            shared = [one for rung in rungs for route in rung.routes.values() for one in taken(route)]
            shown = ", ".join(dict.fromkeys(one for one in shared if one in self._directory.published))
            if rungs and not shown:
                raise BadInput(
                    "name",
                    f"{name[:80]!r} is a target without limits; only a limit can be held or changed: write one into the file, which is read again at SIGHUP",
                )
            like = "" if shown else self._like(name)
            others = f"its calls take from {shown}; name one of them" if shown else "`budgets` lists what there is"
            raise BadInput(
                "name", f"{name[:80]!r} is neither a budget nor a target that has one of its own{like}; {others}"
            )
        return names

    def _like(self, name: str) -> str:
        """The target, host or budget that was probably meant, as half a sentence; empty if none is near."""
        budgets = self._directory.names
        targets = [_host(one.target) or one.target for one in self._directory.rungs()]
        return near(name, dict.fromkeys((*targets, *(self._directory.owner(one).target for one in budgets), *budgets)))

    def _known(self, name: str) -> list[str]:
        return [name] if name in self._directory.published else self._directory.of_target(_host(name) or name)

    def _rungs_of(self, target: str) -> list[Rung]:
        """The rungs of a target by its name; of a host by its name, too."""
        return [rung for rung in self._directory.rungs() if target in {rung.target, _host(rung.target)}]

    def _alike(self, name: str) -> list[str]:
        names = self._named(name)
        if any(one.endswith((RATE, CAP)) for one in names):
            raise BadInput(
                "name",
                f"{name}: is learned from the host's answers, and no number that is kept in every window; write "
                '[policies.NAME] with hosts = ["HOST"] and limits = ["5 per 1s"] into the gate\'s file and send it SIGHUP',
            )
        if len({_promise(self._directory.published[one]) for one in names}) > 1:
            raise BadInput("name", f"{name!r} has several limits; say which: {', '.join(names)}")
        return names

    def _compiled(self, name: str, amount: int, window_ms: int) -> tuple[Published, Compiled]:
        old, limits = self._directory.published[name], self._limits(name)
        published = replace(old, amount=amount, window_ms=window_ms or old.window_ms)
        try:
            compiled = compile_limit(published, limits.kind)
        except BadLimit as bad:
            raise BadInput(bad.field, f"{name}: {bad.reason}") from None
        return published, replace(compiled, limits=replace(compiled.limits, tier=limits.tier))

    def _limits(self, name: str) -> Limits:
        return self._book.cells[name].limits

    def _revise(self, name: str, limits: Limits) -> Limits:
        expected = self._limits(name).revision
        told: list[Revised] = []
        self._pump.store.revise(name, expected, replace(limits, revision=expected + 1), told.append)
        if not told or not told[0].done:
            raise BadInput(
                "name", f"{name}: what it counts by cannot change while the gate runs; restart with the new limit"
            )
        return self._limits(name)

    def _change(self, name: str, limits: Limits) -> Change:
        return Change(name, self._directory.owner(name).target, limits, self._directory.published[name])


def _host(target: str) -> str:
    """The host, with its port if it has a special one, of a host's target; empty for a model's."""
    return target.partition("://")[2].partition("#")[0]


def _promise(published: Published) -> tuple[Unit, int, int]:
    return published.unit, published.amount, published.window_ms
