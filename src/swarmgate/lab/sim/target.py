"""
A simulated target: what it really tolerates, how long it takes, and the witness that counts there.

Limiters and witness share no code with the core: they are the oracle. Each quota scope has its own limiters and its own
witness, since that is what a provider counts by.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from swarmgate.core.hints import LONGEST_HINT_MS
from swarmgate.lab import scenario as told
from swarmgate.lab.latency import Path, law
from swarmgate.lab.limiters import ConcurrencyCap, Limiter
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.witness import Arrival, Departure, Witness

ABSURD_WAITS = (None, -1, 0, 1, LONGEST_HINT_MS)


class Request(NamedTuple):
    """What arrives at a target; `write` is the idempotency key of a write, "" = it is none."""

    call_id: str
    attempt: int
    key: int
    prompt: int
    output: int
    output_cap: int
    write: str = ""


class Reply(NamedTuple):
    """What a target does with a request; instants in ms after the arrival. `wait_ms` None = it does not say."""

    status: int
    first_ms: int
    last_ms: int
    wait_ms: int | None = None


class SimTarget:
    """One external resource of a scenario."""

    __slots__ = (
        "_busy",
        "_law",
        "_rng",
        "_scopes",
        "_time",
        "effects",
        "lies",
        "path",
        "settings",
        "slower_ms",
        "unwell",
        "witnesses",
    )

    def __init__(self, settings: told.Target, time: VirtualTime, rng: Random) -> None:
        self.settings = settings
        self.path = Path(settings.one_way_ms, settings.jitter_ms)
        self.witnesses = [Witness() for _ in range(settings.scopes)]
        self.slower_ms: Callable[[], int] = lambda: 0
        self.unwell: Callable[[], bool] = lambda: False
        self.lies: Callable[[], bool] = lambda: False
        self.effects: Counter[str] = Counter()  # how often each write was done
        self._busy: set[tuple[str, int]] = set()
        self._law = law(settings.latency)
        self._scopes = [[limit.limiter() for limit in settings.limits] for _ in range(settings.scopes)]
        self._time = time
        self._rng = rng

    def arrive(self, request: Request) -> Reply:
        """Judge and serve one request that arrives now."""
        now_ms = self._time.now_ms()
        scope = self.settings.scope_of(request.key)
        cost = request.prompt
        if self.settings.charge == "prompt_and_largest_output":
            cost += request.output_cap
        reply = self._judge(scope, cost, request, now_ms)
        key = f"key-{request.key + 1}"
        row = Arrival(now_ms, request.call_id, request.attempt, key, cost, reply.status != 429)
        self.witnesses[scope].arrived(row)
        self._time.trace("arrived", self.settings.name, *row[1:])
        return reply

    def _judge(self, scope: int, cost: int, request: Request, now_ms: int) -> Reply:
        if self.lies():
            return Reply(429, 1, 1, self._rng.choice(ABSURD_WAITS))
        passed: list[Limiter] = []
        for limit, limiter in zip(self.settings.limits, self._scopes[scope], strict=True):
            counted = cost if getattr(limit, "unit", "requests") == "tokens" else 1
            verdict = limiter.arrive(now_ms, max(1, counted))
            if not verdict.ok:
                for before in passed:
                    if isinstance(before, ConcurrencyCap):
                        before.depart(now_ms)
                return Reply(429, 1, 1, verdict.wait_ms)
            passed.append(limiter)
        if request.write and not (self.settings.honours_keys and request.write in self.effects):
            self.effects[request.write] += 1
        if self.unwell():
            self._busy.add((request.call_id, request.attempt))
            self._time.at(now_ms + 1, self._depart, scope, request, 0)
            return Reply(503, 1, 1)
        first_ms, last_ms = self._law.sample(self._rng, request.output)
        slower_ms = self.slower_ms()
        added = request.output if self.settings.charge == "prompt_then_output" else 0
        self._busy.add((request.call_id, request.attempt))
        self._time.at(now_ms + slower_ms + last_ms, self._depart, scope, request, added)
        return Reply(200, slower_ms + first_ms, slower_ms + last_ms)

    def cancel(self, request: Request) -> None:
        """The caller closed its connection: the target notices on the way, and stops."""
        scope = self.settings.scope_of(request.key)
        self._time.at(self._time.now_ms() + self.settings.one_way_ms, self._depart, scope, request, 0)

    def _depart(self, scope: int, request: Request, added: int) -> None:
        if (request.call_id, request.attempt) not in self._busy:
            return
        self._busy.remove((request.call_id, request.attempt))
        now_ms = self._time.now_ms()
        for limit, limiter in zip(self.settings.limits, self._scopes[scope], strict=True):
            limiter.depart(now_ms, added if getattr(limit, "unit", "requests") == "tokens" else 0)
        self.witnesses[scope].departed(Departure(now_ms, request.call_id, request.attempt, added))
