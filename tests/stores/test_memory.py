"""The memory store is the kernel behind a port: it passes the kit, and knows what the kernel knows (P13)."""

from records import a_call
from swarmgate.core.answers import Revised
from swarmgate.core.book import Take
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.operations import Define, Done, Revise, Undefined, Withdraw
from swarmgate.stores.memory.store import MemoryStore
from swarmgate.testing.decider import state_of
from swarmgate.testing.kit import StoreChecks
from swarmgate.testing.twins import Twins, run_twins


class PortDecider:
    """A store of one process behind ports.BudgetStore, seen as a function."""

    def __init__(self):
        self.raw_ms = 0
        self.lose()

    def lose(self):
        self.store = None

    def now_ms(self):
        return self.raw_ms

    def decide(self, operations, now_ms):
        self.raw_ms = now_ms
        if self.store is None:
            self.store = MemoryStore(self, lambda call, event: call.client.append(event))
        return [self._one(operation) for operation in operations]

    def _one(self, operation):
        store, told, debt_units = self.store, [], self.store.debt_units
        match operation:
            case Take():
                try:
                    store.take(a_call(client=told), operation)
                except KeyError as unknown:
                    return Undefined(store.book.now_ms, unknown.args[0])
            case Settle(lease, usage, last):
                store.settle(lease, usage, last=last)
            case Release():
                store.release(*operation)
            case Renew():
                store.renew(*operation)
            case Withdraw():
                store.leave(*operation)
            case Define():
                store.define(*operation)
            case Revise():
                store.revise(*operation, told.append)
        if isinstance(operation, Take | Revise):
            (reply,) = told
            return reply
        return Done(store.book.now_ms, store.debt_units - debt_units)


class TestMemory(StoreChecks):
    def make(self):
        return PortDecider()


class Machine(Twins):
    def __init__(self):
        super().__init__()
        self.subject = PortDecider()

    def state(self):
        return state_of(self.subject.store.book if self.subject.store else None)


def test_the_port_adds_nothing_and_loses_nothing():
    run_twins(Machine, 20)


def test_a_revision_is_told_before_the_call_returns():
    store = PortDecider()
    assert store.decide([Revise("a", 1, None)], 5) == [Revised(5, done=False, revision=0)]
