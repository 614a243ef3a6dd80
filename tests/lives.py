"""Each kind of life a call may have, by name, and a run of one that a test may interfere with after any event."""

from itertools import chain, repeat

from life import (
    BROKEN,
    BUSY,
    CONTENT,
    FAILS,
    KEY_DEAD,
    NOT_OURS,
    OK,
    OVERLOADED,
    REFUSES,
    RESET,
    STALE,
    STREAM,
    Life,
    World,
    route,
    rung,
)
from swarmgate.core.effect import Effect

HELD_MS = 700


def two_keys():
    return (rung("t", route("k1"), route("k2")),)


def ladder():
    return (rung("first"), rung("second"))


def two_slots():
    return (rung("t"), rung("u", route("u1", (), (), whole=())))


def foreign(*serves):
    """A ladder whose rungs speak these surfaces."""
    return lambda: tuple(rung(name)._replace(serves=frozenset({name})) for name in serves)


# name -> (what happens to the call, how the record differs, how long somebody holds the only slot before it)
LIVES = {
    "answer": (Life(), {}, 0),
    "all at once": (Life(sends=(((0, OK),),), wire_ms=0), {}, 0),
    "wait, then answer": (Life(), {}, HELD_MS),
    "stream": (Life(sends=(STREAM,)), {}, 0),
    "wait, then stream": (Life(sends=(STREAM,)), {}, HELD_MS),
    "stream that breaks": (Life(sends=(((20, CONTENT), (20, BROKEN)),)), {}, 0),
    "stream that stops": (Life(sends=(((20, CONTENT),),)), {}, 0),
    "retry after a failure": (Life(sends=(((20, FAILS),),)), {}, 0),
    "retry until the end": (Life(sends=(((20, FAILS),),) * 4), {}, 0),
    "nothing comes": (Life(sends=((),)), {"content_ms": 90_000, "deadline_ms": 1_080_000}, 0),
    "nothing comes, so again": (Life(sends=((),)), {}, 0),
    "a write nobody answers": (Life(sends=((),)), {"effect": Effect.WRITE}, 0),
    "no connection to the first rung": (Life(connects=((5, False), (5, False))), {"rungs": ladder}, 0),
    "refused, then another key": (Life(sends=(((20, REFUSES),),)), {"rungs": two_keys}, 0),
    "dead key, then another": (Life(sends=(((20, KEY_DEAD),),)), {"rungs": two_keys}, 0),
    "refused, then back in line": (Life(sends=(((20, REFUSES),),)), {}, 0),
    "too many at once": (Life(sends=(((20, BUSY),),)), {}, 0),
    "refused and out of patience": (Life(sends=(((20, REFUSES),),)), {"wait_until_ms": 1_000_500}, 0),
    "next rung": (Life(sends=(((20, OVERLOADED),),)), {"rungs": ladder}, 0),
    "too slow, then next rung": (Life(sends=((),)), {"rungs": ladder}, 0),
    "no connection while in line": (Life(connects=((5, True), (5, False))), {}, HELD_MS),
    "no rung connects while in line": (
        Life(connects=((5, True), (5, False), (5, False), (5, False), (5, False), (5, False))),
        {"rungs": ladder},
        HELD_MS,
    ),
    "stale connections": (Life(sends=(((0, STALE),),) * 3), {}, 0),
    "nothing but stale connections": (Life(sends=(((0, STALE),),) * 5), {}, 0),
    "no connection for ever": (Life(connects=((3_600_000, True),)), {"wait_until_ms": 1_000_500}, 0),
    "deferral": (Life(), {"wait_until_ms": 1_000_300}, HELD_MS),
    "deferral at once": (Life(), {"wait_until_ms": 1_000_000}, HELD_MS),
    "larger than the limit": (Life(), {"reserve": 5_000}, 0),
    "larger than any limit": (Life(), {"reserve": 5_000, "rungs": ladder}, 0),
    "a write that is lost": (Life(sends=(((20, RESET),),)), {"effect": Effect.WRITE}, 0),
    "a keyed write that is lost": (
        Life(sends=(((20, RESET),),)),
        {"effect": Effect.WRITE, "keyed": True},
        0,
    ),
    "no rung speaks so": (Life(), {"surface": "chat", "rungs": foreign("messages", "responses")}, 0),
    "the second rung speaks so": (Life(), {"surface": "chat", "rungs": foreign("messages", "chat")}, 0),
    "too long in line, so next rung": (Life(), {"rungs": two_slots, "wait_until_ms": 1_000_100}, HELD_MS),
    "not ours": (Life(sends=(((20, NOT_OURS),),)), {}, 0),
}
STORES = {
    "near": lambda: None,
    "far": lambda: repeat(1),
    "slow": lambda: repeat(60),
    "lost, then found": lambda: chain(repeat(150, 4), repeat(1)),
}


class Run:
    """One life, perhaps interfered with after the k-th event of the call."""

    def __init__(self, name, store, at=None, event=None, *, first=False):
        life, given, held_ms = LIVES[name]
        given = {field: value() if field == "rungs" else value for field, value in given.items()}
        self.world = world = World(delays=STORES[store]())
        self.alone = []  # after the k-th event, whether nothing else was about to happen
        self.call = None

        def after(call):
            if call is self.call:
                waiting = world.pump._events
                if len(self.alone) == at and event is not None:
                    (waiting.appendleft if first else waiting.append)((call, event))
                self.alone.append(not waiting)

        if held_ms:
            world.call("holder", Life(sends=(((held_ms, OK),),)), deadline_ms=2_000_000)
            world.run(20)
        world.pump.after = after
        arrive, world.pump.arrive = world.pump.arrive, self._arrive
        self._really_arrive = arrive
        world.call("x", life, **given)
        world.pump.arrive = arrive
        self.other = world.call("other", after_ms=1, wait_until_ms=1_300_000)
        world.run(400_000)

    def _arrive(self, call):
        self.call = call
        self._really_arrive(call)
