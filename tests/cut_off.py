"""Guards of several processes before one store that can be cut off, on virtual time."""

from itertools import repeat

from life import ANSWER_MS, LONG_AGO_MS, FarStore
from records import a_call
from swarmgate.core import kernel
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.engine.guard import Guard, OutageMode
from swarmgate.lab.sim.virtual_time import VirtualTime

START_MS = 1_000_000
BURST, QUOTA = 20, 10  # units, units per second
RATE = Limits(BudgetKind.LEVEL, burst=BURST, quota=QUOTA, window_ms=1_000)
SLOTS = Limits(BudgetKind.LEASES, burst=4, lease_ms=2_000)
DAY = Limits(BudgetKind.COUNTER, burst=30, window_ms=86_400_000, slices=24)
LIMITS = {"rate": RATE, "other": RATE, "slots": SLOTS, "day": DAY}


class Link(FarStore):
    """A link that is cut between `down_ms` and `up_ms`: then nothing reaches the store, and takes get no answer."""

    def __init__(self, time, book):
        super().__init__(time, None, book, repeat(1), set())
        self.outages = []
        self.left = []

    def cut(self):
        return any(down_ms <= self.time.now_ms() < up_ms for down_ms, up_ms in self.outages)

    def take(self, call, request):
        if self.cut():
            self.time.at(self.time.now_ms() + ANSWER_MS, self.fire, call, StoreLost(Reason.GATE_STORE_LOST))
        else:
            super().take(call, request)

    def _run(self, act, *arguments):
        if not self.cut():
            super()._run(act, *arguments)

    def leave(self, ticket, lines):
        self.left.append((ticket, lines))
        super().leave(ticket, lines)

    def define(self, budget, limits):
        kernel.define(self.book, budget, limits)


class Gates:
    """Guards in several processes before one store; `told` is what each call heard, and when."""

    def __init__(self, number=1, limits=LIMITS, **modes):
        self.time = VirtualTime()
        self.time.run(START_MS)
        self.book = Book(LONG_AGO_MS)
        kernel.advance(self.book, START_MS)
        self.links, self.guards = [], []
        self.told = {}
        self.asked = 0
        for _ in range(number):
            link = Link(self.time, self.book)
            guard = Guard(link, self.time, number)
            link.fire = guard.heard
            guard.fire = self.hear
            guard.modes = {name: OutageMode(mode) for name, mode in modes.items()}
            for name, one in limits.items():
                guard.define(name, one)
            self.links.append(link)
            self.guards.append(guard)

    def cut(self, from_ms, for_ms, links=None):
        for link in links or self.links:
            link.outages.append((START_MS + from_ms, START_MS + from_ms + for_ms))

    def hear(self, call, event):
        assert call.id not in self.told
        self.told[call.id] = (event, self.time.now_ms())

    def ask(self, *demands, gate=0, **rest):
        self.asked += 1
        name = f"c{self.asked}"
        self.guards[gate].take(a_call(name), Take(name, f"{name}.1", 1, first_score(1), (demands,), 60_000, **rest))
        return name

    def run(self, for_ms):
        self.time.run(self.time.now_ms() + for_ms)

    def answer(self, *demands, **rest):
        name = self.ask(*demands, **rest)
        self.run(ANSWER_MS + 1)
        return self.told[name][0]

    def lose(self, for_ms):
        """The store goes, and somebody notices."""
        self.cut(self.time.now_ms() - START_MS, for_ms)
        self.ask()
        self.run(ANSWER_MS + 1)
        assert self.guards[0].lost
