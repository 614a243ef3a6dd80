"""What a wire tells the core of connections that could not be had, and of those that broke."""

import pytest
import wires
from stage import TARGET, UNARY, warm, whole
from test_front import request
from wires import Bench

from records import a_call
from swarmgate.core.events import Lost, LostKind
from swarmgate.gate.egress.fetch import Fetch
from swarmgate.gate.egress.tunnel import Pipe
from swarmgate.gate.service import Door
from swarmgate.gate.transport import Attempt
from swarmgate.gate.wire import HostWire, Wire
from swarmgate.http1.faults import Fault
from swarmgate.http1.upstreams import Origin, PoolLimits


def wire(kind, fired, *, committed=False):
    gate = Bench(TARGET.format(port=9)).gate
    gate.exchanges.fire = lambda _call, event: fired.append(event)
    call = a_call()
    call.committed = committed
    made = kind(gate.exchanges, gate.upstreams, call, Origin("http", "h", 80))
    call.wire = made
    return made


@pytest.mark.parametrize("kind", [Attempt, Fetch, Pipe])
def test_every_exchange_says_so_in_one_way(kind):
    assert kind.on_no_connection is Wire.on_no_connection


@pytest.mark.parametrize(
    ("kind", "fault", "told"),
    [
        *[(kind, Fault.POOL_FULL, LostKind.POOL_FULL) for kind in (Wire, HostWire)],  # says nothing about the target
        *[(kind, Fault.CONNECT_TIMEOUT, LostKind.CONNECT_TIMEOUT) for kind in (Wire, HostWire)],
        *[(kind, Fault.CONNECT_REFUSED, LostKind.CONNECT) for kind in (Wire, HostWire)],
        (Wire, Fault.NO_SUCH_NAME, LostKind.CONNECT),  # the operator wrote the name: the next rung is tried
        (HostWire, Fault.NO_SUCH_NAME, LostKind.UNNAMED),
        (HostWire, Fault.ADDRESS_DENIED, LostKind.DENIED),
    ],
)
def test_why_there_is_no_connection(kind, fault, told):
    fired = []
    wire(kind, fired).on_no_connection(fault)
    assert fired == [Lost(told, sent=False)]


@pytest.mark.parametrize(
    ("fault", "committed", "told"),
    [
        (Fault.CLOSED_EARLY, False, LostKind.RESET),
        (Fault.TIMEOUT, False, LostKind.FIRST_CONTENT),
        (Fault.TIMEOUT, True, LostKind.IDLE),
        (Fault.TRUNCATED, True, LostKind.BROKEN),
        (Fault.BAD_HEAD, False, LostKind.BROKEN),
    ],
)
def test_why_there_will_be_no_whole_answer(fault, committed, told):
    fired = []
    lost = wire(Wire, fired, committed=committed)
    lost.on_lost(fault, _first_byte_seen=False)
    assert fired == [Lost(told, sent=True)]
    assert lost.end is None


def test_who_waits_for_a_connection_waits_by_class():
    bench = Bench(TARGET.format(port=9))
    warm(bench.gate)
    bench.gate.upstreams.limits = PoolLimits(most=1)
    clients = []
    for rank in (1, 2, 2, 1, 0):
        client = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100)
        client.connection_made(wires.Wire())
        client.data_received(
            request("/v1/chat/completions", b'{"model":"m"}', "POST", f"x-swarmgate-priority: P{rank}")
        )
        clients.append((rank, client._transport))
    assert len(bench.dialler.dials) == 1
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[0]
    served = []
    while len(bench.ends) < len(clients):
        end.data_received(whole(UNARY))
        served += [rank for rank, wire in clients if wire.written]
        for _, wire in clients:
            wire.written.clear()
    assert served == [0, 1, 1, 2, 2]
    assert bench.bugs == []
