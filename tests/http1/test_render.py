import json

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.http1.head import parse_request, parse_response
from swarmgate.http1.render import (
    CONTINUE,
    HOP_BY_HOP,
    TUNNEL_OPEN,
    BadField,
    error_body,
    passed_on,
    request_head,
    response_head,
)

NAMES = st.text("abcdefg-x", min_size=1, max_size=8).map(str.encode)
VALUES = st.binary(max_size=20).map(lambda raw: bytes(b for b in raw if b >= 32 and b != 127).strip())
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=8)
LENGTHS = st.none() | st.integers(0, 2**63 - 1)


@given(FIELDS, LENGTHS, st.booleans())
def test_a_rendered_request_reads_back(fields, length, chunked):
    raw = request_head(b"POST", b"/a?b", b"h:1", fields, length=length, chunked=chunked)
    head = parse_request(raw)
    assert (head.method, head.target, head.get(b"host")) == (b"POST", b"/a?b", b"h:1")
    assert head.chunked is chunked
    assert head.content_length == (None if chunked else length)
    assert head.headers[1 : len(fields) + 1] == fields


@given(FIELDS, LENGTHS, st.sampled_from([200, 204, 304, 429, 529, 599]), st.booleans(), st.booleans())
def test_a_rendered_response_reads_back_here_and_in_h11(fields, length, status, chunked, close):
    raw = response_head(status, fields, length=length, chunked=chunked, close=close)
    head = parse_response(raw)
    assert (head.status, head.chunked, head.keep_alive) == (status, chunked, not close)
    assert head.headers[: len(fields)] == fields
    peer = h11.Connection(h11.CLIENT)
    peer.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    peer.receive_data(raw)
    event = peer.next_event()
    assert isinstance(event, h11.Response)
    assert list(event.headers) == head.headers


POISON = st.sampled_from([b"\r", b"\n", b"\0", b"\r\n\r\nGET / HTTP/1.1\r\n", b"a\r\nx: y"])


@given(FIELDS, NAMES, POISON, VALUES, st.integers(0, 8))
def test_no_value_or_name_brings_its_own_line(fields, name, poison, value, at):
    for bad in ((name, value + poison), (name + poison, value)):
        headers = [*fields[:at], bad, *fields[at:]]
        with pytest.raises(BadField) as caught:
            request_head(b"GET", b"/", b"a", headers)
        assert caught.value.reason == "injection"
        assert caught.value.field.startswith(name.decode())
        assert not set("\r\n\0") & set(str(caught.value))
        with pytest.raises(BadField):
            response_head(200, headers)


@pytest.mark.parametrize("start", [(b"GET\r\n", b"/"), (b"GET", b"/\n"), (b"GET", b"/ HTTP/1.1\r\nX: y\r\n\r\n")])
def test_no_start_line_brings_its_own_line(start):
    with pytest.raises(BadField) as caught:
        request_head(*start, b"a", [])
    assert caught.value.field == "start line"


def test_what_a_hop_said_stays_on_the_hop():
    lines = [b"%b: x" % name for name in sorted(HOP_BY_HOP - {b"connection", b"transfer-encoding"})]
    head = parse_request(
        b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, X-Named , authorization\r\nX-Named: 1\r\nX-Kept: 2\r\n"
        b"Authorization: s\r\nContent-Length: 5\r\nExpect: 100-continue\r\nProxy-Authorization: t\r\nX-Swarmgate-Key: k\r\n"
        + b"\r\n".join(lines)
        + b"\r\n\r\n"
    )
    assert passed_on(head, drop={b"x-swarmgate-key"}) == [(b"x-kept", b"2")]


@pytest.mark.parametrize("wish", [b"keep-alive", b"close", b"Keep-Alive", b"Close"])
def test_ordinary_connection_wishes_name_nothing(wish):
    head = parse_request(b"GET / HTTP/1.1\r\nHost: a\r\nClose: 1\r\nKeep: 2\r\nConnection: %b\r\n\r\n" % wish)
    kept = passed_on(head)
    assert (b"keep", b"2") in kept
    assert (b"connection", wish) not in kept


def test_fixed_heads_are_heads():
    assert parse_response(CONTINUE).status == 100
    assert parse_response(TUNNEL_OPEN + b"\r\n").status == 200


def test_an_error_of_ours_has_the_shape_the_sdks_read():
    headers, body = error_body(429, "policy_wait", 'say "when"\n')
    assert headers == [(b"content-type", b"application/json")]
    error = {"message": 'say "when"\n', "type": "invalid_request_error", "param": None, "code": "policy_wait"}
    assert json.loads(body) == {"error": error}
