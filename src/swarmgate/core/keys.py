"""
Which key a call uses: smooth weighted round robin over quota scopes, with ejection, probe and ramp.

A provider counts by scope (organisation, project, account), not by key: several keys of one scope share its quota and
its refusals. So scopes take turns, weighted by what their last answers said remains, and the keys of a scope take turns
within it. The turns are planned ahead: each scope's picks are spread evenly over the plan and what did not fit is owed
to it in the next, so shares are exact in the long run and a pick is an index (scanning 20 keys costs 1.3 us).
One ring serves one model at one provider: an ejection hits the scope there and nowhere else (design 4: Keys). Rings that
were made from one another (`apart`) have the same keys: what only a person can bring back is out in all of them. Where a
provider counts all models together, one ring serves all of them.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from swarmgate.core.errors import BadInput
from swarmgate.core.hints import LONGEST_HINT_MS
from swarmgate.core.limits import EXACT
from swarmgate.core.outcome import EJECT_MS, Ejects, Outcome, QuotaLeft, Verdict
from swarmgate.core.reasons import Reason
from swarmgate.core.view import KeyView, key_view

PROBE_AGAIN_MS: Final = 10_000  # a probe whose result never came is repeated after this
RAMP_MS: Final = 10_000  # after a good probe: 1/8 of the share, then 1/4, 1/2, all, each for a quarter of this
RAMP_STEPS: Final = 3
FEWEST_PLANNED: Final = 256
LOOK_AHEAD: Final = 16  # how far a pick looks for other scopes
NEVER_MS: Final = 1 << 62
_ONE: Final = 1 << 32
_CIRCLE: Final = 1 << 18  # where in a plan a pick stands; with the index below 2^30, which sorts twice as fast
_INDEX_BITS: Final = 12
MOST_SCOPES: Final = 1 << _INDEX_BITS
_NOTHING: Final = Ejects.NOTHING  # what nearly every answer ejects; an enumeration takes 0.1 us to look it up


class QuotaScope(NamedTuple):
    """
    What a provider counts by, and the ids of the keys inside it (never their secrets).

    `quota`: what a full window holds, in the unit in which remaining quota will be reported; 0 = not known.
    """

    id: str
    keys: tuple[str, ...]
    quota: int = 0


class _Scope:
    """The live record of one scope; `back_at_ms` is when it may be picked again, once if `probing`."""

    __slots__ = (
        "back_at_ms",
        "decided_ms",
        "keys",
        "owed",
        "probing",
        "quota",
        "ramp_from_ms",
        "remaining",
        "reset_at_ms",
        "turn",
    )

    def __init__(self, scope: QuotaScope, alive: list[str]) -> None:
        self.keys = alive
        self.quota = scope.quota
        self.turn = 0
        self.owed = _ONE // 2
        self.remaining = 0
        self.reset_at_ms = 0
        self.back_at_ms = 0
        self.decided_ms = -1
        self.probing = False
        self.ramp_from_ms = -RAMP_MS

    def weight(self, now_ms: int, unknown: int) -> int:
        """What remains, or after its reset the quota, or `unknown`; a share of it while the ramp lasts."""
        full = self.remaining if now_ms < self.reset_at_ms else self.quota or unknown
        return max(1, full >> max(0, RAMP_STEPS - self._ramp_step(now_ms)))

    def next_step_ms(self, now_ms: int) -> int:
        """When the weight next changes by itself."""
        step = self._ramp_step(now_ms)
        return NEVER_MS if step >= RAMP_STEPS else self.ramp_from_ms + -(-(step + 1) * RAMP_MS // (RAMP_STEPS + 1))

    def _ramp_step(self, now_ms: int) -> int:
        return (now_ms - self.ramp_from_ms) * (RAMP_STEPS + 1) // RAMP_MS


class _Family:
    """
    What rings of the same keys share: which keys of each scope are alive.

    `turn` counts deaths and returns: a ring that made its plan at another one makes it anew. `together` = there is one
    ring only, for all models.
    """

    __slots__ = ("alive", "scopes", "together", "turn")

    def __init__(self, scopes: tuple[QuotaScope, ...], *, together: bool) -> None:
        self.scopes = scopes
        self.together = together
        self.alive = [list(scope.keys) for scope in scopes]
        self.turn = 0


class KeyRing:
    """
    The keys of one model at one provider; live, changed only here.

    `candidates` plans ahead, everything else only marks the plan stale. Errors: `BadInput` if a key stands in two
    scopes, or there are more than 4,096 scopes.
    """

    __slots__ = ("_at", "_end", "_family", "_plan", "_planned_turn", "_refills", "_scope_of", "_scopes", "_stale_at_ms")

    def __init__(self, scopes: Iterable[QuotaScope], family: _Family | None = None, *, together: bool = False) -> None:
        self._family = family = family or _Family(tuple(scopes), together=together)
        self._scopes: list[_Scope] = []
        self._scope_of: dict[str, _Scope] = {}
        for scope, alive in zip(family.scopes, family.alive, strict=True):
            live = _Scope(scope, alive)
            self._scopes.append(live)
            for key in scope.keys:
                if key in self._scope_of:
                    raise BadInput("keys", f"{key!r} stands twice; one key belongs to one quota scope")
                self._scope_of[key] = live
        if len(self._scopes) > MOST_SCOPES:
            raise BadInput("keys", f"{len(self._scopes)} quota scopes; one ring holds at most {MOST_SCOPES}")
        self._plan: list[_Scope] = []
        self._planned_turn = family.turn
        self._at = self._end = self._stale_at_ms = 0
        self._refills = False

    def apart(self) -> "KeyRing":
        """The ring of one more model: what rests for one is in for the other, what dies or is revived does so for both."""
        return self if self._family.together else KeyRing((), self._family)

    @property
    def counts(self) -> tuple[tuple[QuotaScope, ...], bool]:
        """How its keys are counted: their scopes, and whether all models are taken together."""
        return self._family.scopes, self._family.together

    def candidates(self, now_ms: int, n: int = 3) -> tuple[str, ...]:
        """The next key and up to n - 1 alternatives of other scopes, best first; empty if every key is out."""
        is_stale = now_ms >= self._stale_at_ms or self._planned_turn != self._family.turn
        if is_stale or (self._at >= self._end and self._refills):
            self._make_plan(now_ms)
        at = self._at
        if at >= self._end:
            return ()
        self._at = at + 1
        first = self._plan[at]
        first.turn += 1
        if first.probing:
            first.back_at_ms = now_ms + PROBE_AGAIN_MS
            self._stale_at_ms = min(self._stale_at_ms, first.back_at_ms)
        key = first.keys[first.turn % len(first.keys)]
        if n == 1:
            return (key,)
        chosen, keys = [first], [key]
        for scope in self._plan[at + 1 : at + LOOK_AHEAD]:
            if scope not in chosen and not scope.probing:
                chosen.append(scope)
                keys.append(scope.keys[scope.turn % len(scope.keys)])
                if len(keys) >= n:
                    break
        return tuple(keys)

    def unused(self, key: str, asked_ms: int) -> bool:
        """
        The first key of `candidates` at that instant was not used; True if it was a probe, which is free again.

        A refusal of its budgets says nothing of a key.
        """
        scope = self._scope_of[key]
        mine = scope.probing and scope.back_at_ms == asked_ms + PROBE_AGAIN_MS
        if mine:
            scope.back_at_ms = asked_ms
            self._stale_at_ms = 0
        return mine

    def ready(self, now_ms: int) -> bool:
        """Whether `candidates` would find a key now; takes no turn."""
        if now_ms >= self._stale_at_ms or self._planned_turn != self._family.turn:
            self._make_plan(now_ms)
        return self._at < self._end or self._refills

    def back_at_ms(self, now_ms: int) -> int | None:
        """When the first key may be tried again (`now_ms` if one may now); None if only a person can bring one back."""
        if self.ready(now_ms):
            return now_ms
        return min((scope.back_at_ms for scope in self._scopes if scope.keys), default=None)

    def why(self, _now_ms: int) -> Reason:
        """Why there is no candidate."""
        return Reason.POLICY_KEYS_OUT

    def views(self, now_ms: int) -> dict[str, KeyView]:
        """Each key as planners see it; takes no turn."""
        return {
            key: key_view(scope.back_at_ms if key in scope.keys else EXACT, now_ms)
            for key, scope in self._scope_of.items()
        }

    def observe(self, key: str, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """
        Let the ring learn what a send came to; True if something was ejected or came back by it.

        Refusals of sends from before the last ejection are the same event: they can only prolong it, by their hint.
        Errors: KeyError for a key that is not of this ring.
        """
        scope = self._scope_of[key]
        news = sent_ms > scope.decided_ms
        if outcome.ejects is _NOTHING:
            return scope.probing and outcome.verdict is Verdict.OK and self.begun(key, sent_ms, now_ms)
        if outcome.ejects is Ejects.KEY:
            if key not in scope.keys:
                return False
            scope.keys.remove(key)
            self._family.turn += 1
        elif news:
            scope.decided_ms = now_ms
            scope.back_at_ms = now_ms + (outcome.eject_ms or EJECT_MS)
            scope.probing = True
        else:
            if scope.probing:
                scope.back_at_ms = max(scope.back_at_ms, now_ms + (outcome.hint_ms or 0))
            return False
        self._stale_at_ms = 0
        return True

    def begun(self, key: str, sent_ms: int, now_ms: int) -> bool:
        """A key that answers takes calls: a probe need not end, as a stream does after minutes. True if its scope came back by it."""
        scope = self._scope_of[key]
        if not scope.probing or sent_ms <= scope.decided_ms:
            return False
        scope.probing = False
        scope.ramp_from_ms = now_ms
        scope.back_at_ms = 0
        self._stale_at_ms = 0
        return True

    def report(self, key: str, left: QuotaLeft, sent_ms: int, now_ms: int) -> None:
        """
        Remaining quota of the key's scope, as one answer said; it is the scope's weight until its reset.

        A reset is believed at most as far as a hint is. Nothing left means out until then, without a probe. Answers to
        sends from before the last ejection are stale, negative amounts are sentinels (Azure's -1): both are ignored.
        """
        scope = self._scope_of[key]
        if left.remaining < 0 or sent_ms <= scope.decided_ms:
            return
        scope.quota = left.quota or scope.quota
        scope.remaining = left.remaining
        scope.reset_at_ms = min(left.reset_at_ms or now_ms + EJECT_MS, now_ms + LONGEST_HINT_MS)
        if not left.remaining:
            scope.back_at_ms = max(scope.back_at_ms, scope.reset_at_ms)
            self._stale_at_ms = 0

    def revive(self) -> bool:
        """Bring every dead key back, because a person acted; whether there was one."""
        dead = [key for key, scope in self._scope_of.items() if key not in scope.keys]
        for key in dead:
            self._scope_of[key].keys.append(key)
            self._family.turn += 1
        return bool(dead)

    def _make_plan(self, now_ms: int) -> None:
        """Spread the picks of every scope that may be picked; those to be probed get one pick, first."""
        probes: list[_Scope] = []
        ready: list[_Scope] = []
        self._stale_at_ms = NEVER_MS
        self._planned_turn = self._family.turn
        for scope in self._scopes:
            if not scope.keys:
                continue
            if scope.back_at_ms > now_ms:
                changes_ms = scope.back_at_ms
            else:
                changes_ms = scope.next_step_ms(now_ms)
                (probes if scope.probing else ready).append(scope)
            self._stale_at_ms = min(self._stale_at_ms, changes_ms)
        picks = _spread(ready, now_ms)
        self._plan = probes + picks + picks[:LOOK_AHEAD]
        self._at, self._end = 0, len(probes) + len(picks)
        self._refills = bool(ready)


def _spread(ready: list[_Scope], now_ms: int) -> list[_Scope]:
    """Each scope's share of the next picks at even distances; fractions are owed to the next plan."""
    unknown = max((scope.weight(now_ms, 1) for scope in ready), default=1)
    weights = [scope.weight(now_ms, unknown) for scope in ready]
    planned = max(FEWEST_PLANNED, 4 * len(ready)) * _ONE
    total = sum(weights)
    slots: list[int] = []
    for index, (scope, weight) in enumerate(zip(ready, weights, strict=True)):
        count, scope.owed = divmod(scope.owed + weight * planned // total, _ONE)
        if count:
            step = _CIRCLE // count
            slots += range((step // 2 << _INDEX_BITS) | index, _CIRCLE << _INDEX_BITS, step << _INDEX_BITS)[:count]
    slots.sort()
    return [ready[slot & ((1 << _INDEX_BITS) - 1)] for slot in slots]
