import pytest
from test_client_end import CHUNKED, CONNECT, GET, OLD, POST
from wire import Line


@pytest.mark.parametrize(
    "raw", [GET, POST, POST + GET, POST[:-2], CHUNKED, CHUNKED[:-2], CONNECT, OLD, GET.replace(b"GET", b"HEAD")]
)
@pytest.mark.parametrize("wish", [b"", b"connection: close\r\n"])
@pytest.mark.parametrize("status", [200, 201, 204, 404])
def test_lines_that_are_ready_are_answered_like_fields(raw, wish, status):
    """The common answer has a short way: whatever was asked and however far it came, it ends where the long one ends."""
    asked = raw.replace(b"\r\n\r\n", b"\r\n" + wish + b"\r\n", 1)
    short, long = Line(), Line()
    for line, answer in ((short, ((), b"ok", b"x-a: b\r\n")), (long, ([(b"x-a", b"b")], b"ok"))):
        line.send(asked)
        line.end.respond(status, *answer)
        line.send(GET)
    assert short.written == long.written
    assert (short.events, vars(short.transport)) == (long.events, vars(long.transport))
    assert short.end.deadline_ms == long.end.deadline_ms
