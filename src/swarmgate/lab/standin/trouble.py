"""
Trouble on command: what the admin port may do to a place, for how long, and how much of it.

A trouble is a row here; the sites ask which are in force. Shares are drawn from the stand-in's own seeded generator.
"""

from random import Random
from typing import Any, NamedTuple

from swarmgate.lab.errors import LabError, at_least

MOST_MS = 3_600_000


class Rule(NamedTuple):
    """The range of a trouble's amount, and what it means."""

    least: int
    most: int
    meaning: str


RULES = {
    "brownout": Rule(1, 1_000, "`amount` per mille of requests are answered with a server's error"),
    "capacity": Rule(1, 1_000, "`amount` per mille are told that the provider has no room, whatever their key"),
    "overload": Rule(1, 1_000, "`amount` per mille of streams end with an error inside their 200"),
    "cut": Rule(1, 1_000, "`amount` per mille of streams break off in their middle"),
    "stall": Rule(0, 0, "answers begin only when it is over"),
    "slow": Rule(1, 100_000, "answers take `amount` percent of their time"),
    "dead_key": Rule(1, 100_000, "key number `amount` is no longer known"),
    "no_money": Rule(1, 100_000, "the account of key number `amount` is empty"),
    "daily": Rule(1, 100_000, "key number `amount` has used up its day"),
    "shrink": Rule(1, 99, "limits are `amount` percent of what they were"),
}


class Trouble(NamedTuple):
    """One of `RULES`, at a place (a provider's name, or `web`), until an instant of the stand-in's clock."""

    kind: str
    place: str
    until_ms: int
    amount: int


def read_trouble(said: dict[str, Any], places: frozenset[str], now_ms: int) -> Trouble:
    """A command `{"kind", "place", "for_ms", "amount"}`. Errors: `LabError`."""
    kind, place = said.get("kind"), said.get("place")
    if kind not in RULES:
        raise LabError("kind", f"{kind!r} is none; one of {', '.join(RULES)}")
    if place not in places:
        raise LabError("place", f"{place!r} is none; one of {', '.join(sorted(places))}")
    for_ms = at_least("for_ms", said.get("for_ms", 0), 1)
    amount = at_least("amount", said.get("amount", 0), RULES[kind].least)
    if for_ms > MOST_MS or amount > RULES[kind].most:
        field = "for_ms" if for_ms > MOST_MS else "amount"
        raise LabError(field, f"at most {MOST_MS if field == 'for_ms' else RULES[kind].most}: {RULES[kind].meaning}")
    return Trouble(kind, str(place), now_ms + for_ms, amount)


class Troubles:
    """Those that are in force."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.all: list[Trouble] = []

    def begin(self, trouble: Trouble) -> None:
        """From now on."""
        self.all.append(trouble)

    def ended(self, now_ms: int) -> list[Trouble]:
        """Those that are over since the last time; they are forgotten."""
        over = [one for one in self.all if one.until_ms <= now_ms]
        self.all = [one for one in self.all if one.until_ms > now_ms]
        return over

    def amount(self, kind: str, place: str, now_ms: int) -> int | None:
        """The largest amount of a kind that is in force at a place."""
        if not self.all:
            return None
        return max(
            (t.amount for t in self.all if (t.kind, t.place) == (kind, place) and t.until_ms > now_ms), default=None
        )

    def strikes(self, kind: str, place: str, now_ms: int) -> bool:
        """Whether a trouble of a share in per mille hits this request."""
        amount = self.amount(kind, place, now_ms)
        return amount is not None and self._rng.randrange(1_000) < amount

    def key(self, place: str, number: int, now_ms: int) -> str | None:
        """What is wrong with a key."""
        for one in self.all:
            if one.kind in {"dead_key", "no_money", "daily"} and (one.place, one.amount) == (place, number):
                return one.kind if one.until_ms > now_ms else None
        return None

    def stalled_ms(self, place: str, now_ms: int) -> int:
        """How long answers still have to wait for a stall's end."""
        ends = [one.until_ms for one in self.all if (one.kind, one.place) == ("stall", place)]
        return max(0, max(ends, default=now_ms) - now_ms)
