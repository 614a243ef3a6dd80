"""TI-05: whatever is sent after somebody else's request, no error has a byte of that request, or of what is kept for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_front import TEXT
from wires import Bench, Wire

from swarmgate.gate.service import Door

MARK = b"MARK0f3c91"
FIRST = [
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-mark: %b\r\ncontent-length: 44\r\n\r\n" % MARK
    + b'{"model":"nope-%b","messages":[]}' % MARK
    + b" " * 9,
    b"GET /nowhere/%b HTTP/1.1\r\nhost: g\r\nauthorization: Bearer %b\r\n\r\n" % (MARK, MARK),
    b"GET /to/http/%b.test/ HTTP/1.1\r\nhost: g\r\nx-swarmgate-agnt: %b\r\n\r\n" % (MARK, MARK),
]
SECOND = st.one_of(
    st.binary(min_size=1, max_size=60),
    st.sampled_from(
        [
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: 2\r\n\r\n[}",
            b"GET /nowhere HTTP/1.1\r\nhost: g\r\nhost: h\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"GET /swarmgate/v1/calls/x HTTP/1.1\r\nhost: g\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        ]
    ),
).map(lambda raw: raw + b"\r\n\r\n")


@pytest.fixture(scope="module")
def bench():
    return Bench(TEXT)


def came_in(bench):
    door, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100_000), Wire()
    door.connection_made(wire)
    return door, wire


@settings(max_examples=200)
@given(st.sampled_from(FIRST), SECOND, st.booleans())
def test_ti_05_no_error_has_anothers_bytes(bench, first, second, same):
    door, wire = came_in(bench)
    door.data_received(first)
    assert b"".join(wire.written).startswith(b"HTTP/1.1 4")
    wire.written.clear()
    if not same:
        door, wire = came_in(bench)
    door.data_received(second)
    assert MARK not in b"".join(wire.written)
    assert not bench.bugs
