import pytest
from wire import Line

from swarmgate.http1.client_limits import BODY_MS
from swarmgate.http1.reader_pace import STALLED_WRITE_MS

CONNECT = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"


@pytest.mark.parametrize("early", [b"", b"\x16\x03GET / HTTP/1.1\r\n\r\n"])
def test_a_tunnel_carries_bytes_only_after_our_answer(early):
    line = Line()
    line.send(CONNECT + early[:3], early[3:])
    assert line.events == [("request", b"CONNECT", b"a:443"), ("complete", b"")]
    assert line.heard.body == b""
    line.end.open_tunnel(idle_ms=600_000)
    assert line.written == b"HTTP/1.1 200 Connection established\r\n\r\n"
    line.send(b"more")
    line.end.write_chunk(b"back")
    assert line.heard.body == early + b"more"
    assert line.written.endswith(b"\r\n\r\nback")
    line.pass_ms(BODY_MS + STALLED_WRITE_MS)
    assert not line.transport.closed
    line.end.finish()
    assert line.transport.eof_written


def test_a_tunnel_may_open_at_once():
    line = Line(lambda end: end.open_tunnel(idle_ms=1000))
    line.send(CONNECT + b"early")
    assert line.heard.body == b"early"
    line.end.eof_received()
    assert line.events[-1] == ("gone",)


@pytest.mark.parametrize("late", [False, True])
def test_what_was_meant_for_a_tunnel_that_was_refused_is_no_request(late):
    line = Line()
    line.send(CONNECT if late else CONNECT + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    if late:
        line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    line.end.respond(403, [])
    line.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert [event for event in line.events if event[0] == "request"] == [("request", b"CONNECT", b"a:443")]
    assert b"connection: close" in line.written.lower()
