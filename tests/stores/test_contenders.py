"""
Three store clients on one Valkey and 2,000 contenders, as processes of their own, whose clocks are minutes apart.

One of them is killed with -9, one stands still for longer than a token lives.
The witness stands at the target: it counts datagrams, by the kernel's own stamps, and knows nothing of any budget.
"""

import contextlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from contenders import LIMIT, SHARED, WINDOW_MS

from eventually import at_last
from swarmgate.lab.witness import Arrival, Witness

CLIENTS, CONTENDERS = 3, 2_000
SOME = 130  # calls; more than a burst, and than the clients let through while a token lives
SKEWS_MS = (-300_000, 0, 300_000)
MEASURED_MS = 40_000
PROCESS = Path(__file__).with_name("contenders.py")
SO_TIMESTAMPNS = 35  # Linux: asm-generic/socket.h
BUFFER_BYTES = 1 << 22


class Stamps(threading.Thread):
    """Reads datagrams until it is closed: (ms by the kernel's clock, call id)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.2)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        if sys.platform == "linux":
            self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.port = self.socket.getsockname()[1]
        self.rows = []
        self.closed = False

    def run(self):
        while not self.closed:
            with contextlib.suppress(TimeoutError):
                said, beside, _, _ = self.socket.recvmsg(64, 64)
                stamp = struct.unpack("qq", beside[0][2]) if beside else divmod(time.time_ns(), 10**9)
                self.rows.append((stamp[0] * 1_000 + stamp[1] // 10**6, said.decode()))
        self.socket.close()


@contextlib.contextmanager
def contention(server):
    """The witness, and the clients once all of them contend."""
    stamps = Stamps()
    stamps.start()
    share = -(-CONTENDERS // CLIENTS)
    clients = [
        subprocess.Popen(
            [sys.executable, PROCESS, server.url, str(stamps.port), f"client-{number}", str(share), str(skew_ms)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, skew_ms in enumerate(SKEWS_MS)
    ]
    try:
        assert [client.stdout.readline() for client in clients] == ["ready\n"] * CLIENTS
        yield stamps, clients
    finally:
        for client in clients:
            client.kill()
            client.communicate()
        stamps.closed = True
        stamps.join()


def witness_of(stamps):
    witness = Witness()
    for at_ms, call in sorted(stamps.rows):
        witness.arrived(Arrival(at_ms, call, 1, "", 0, ok=True))
    return witness


def kept_its_bound(witness):
    """Whether every window had at most burst + rate * T, what may be on its way and what left late included."""
    compiled = SHARED.compiled
    rate, per_ms = compiled.limits.quota, compiled.limits.window_ms
    late = -(-rate * compiled.fresh_ms // per_ms)
    return witness.excess(compiled.limits.burst + compiled.undelivered + late, rate, per_ms) <= 0


def test_llm_gateways_31_32_49_rb_03_04_11_nobody_is_sent_too_much_although_clients_die_and_stand_still(own_server):
    def some_more():
        now = len(stamps.rows)
        at_last(lambda: len(stamps.rows) > now + SOME, 60)

    with contention(own_server) as (stamps, clients):
        some_more()
        clients[1].send_signal(signal.SIGSTOP)
        some_more()
        clients[1].send_signal(signal.SIGCONT)
        clients[0].kill()
        some_more()
    witness = witness_of(stamps)
    assert kept_its_bound(witness)
    assert witness.over_limit(LIMIT, WINDOW_MS) == 0
    assert max(Counter(call for _, call in stamps.rows).values()) == 1
    assert "client-0" not in {call.partition(".")[0] for _, call in stamps.rows[-SOME // 2 :]}  # the others went on


@pytest.mark.seeds
def test_without_kills_nearly_all_of_the_rate_is_used(own_server):
    with contention(own_server) as (stamps, clients):
        at_last(lambda: stamps.rows and stamps.rows[-1][0] - stamps.rows[0][0] >= MEASURED_MS, 120)
        assert [client.poll() for client in clients] == [None] * CLIENTS
        until_ms = time.time_ns() // 10**6
    witness, limits = witness_of(stamps), SHARED.compiled.limits
    share = witness.utilisation(until_ms - 30_000, until_ms, limits.quota, limits.window_ms)
    print(f"{share:.1%} of the compiled rate, {witness.sent:,} calls")
    assert kept_its_bound(witness)
    assert witness.over_limit(LIMIT, WINDOW_MS) == 0
    assert share >= 0.97
