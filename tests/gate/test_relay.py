"""How an answer reaches its caller: held until content, then straight through, at the pace of the slower side."""

import gzip
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import DONE, FINISH, LAST, ROLE, STREAM_HEAD, UNARY, USAGE, event, framed, token, warm, whole
from test_front import TEXT, request
from test_taps import ANTHROPIC, RESPONSES, pieces
from wires import Bench

from swarmgate.http1.head import parse_response
from swarmgate.http1.response_reader import response_body

COMMENT = b": still here\n\n"


def started(*, stream, text=TEXT):
    """A call whose request has left, and the target's end of it."""
    bench = Bench(text)
    warm(bench.gate)
    bench.client.data_received(request(body=json.dumps({"model": "fast", "stream": stream}).encode()))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    return bench, end, wire


def test_nothing_is_shown_before_content():
    bench, end, _ = started(stream=True)
    for payload in (COMMENT, ROLE, COMMENT):
        end.data_received((STREAM_HEAD if payload is COMMENT and not end.first_byte_seen else b"") + framed(payload))
        assert bench.wire.written == []
    end.data_received(framed(token("a")))
    said = b"".join(bench.wire.written)
    assert said.endswith(framed(COMMENT + ROLE + COMMENT + token("a")))
    end.data_received(framed(token("b")))
    assert bench.wire.written[-1] == framed(token("b"))


INCOMPLETE = b'event: response.incomplete\ndata: {"type":"response.incomplete","response":{"usage":null}}\n\n'
MORE = event({"cost": {"usd": 0.1}})
FLOWED = (1, 1)  # nobody counts it
STREAMS = {  # the stream, and the use that it tells
    "chat": ("/v1/chat/completions", ROLE + token("fo") + token('"usage":{"error"') + FINISH + USAGE + DONE, (9, 3)),
    "chat, more behind its end": ("/v1/chat/completions", ROLE + token("fo") + FINISH + USAGE + DONE + MORE, (9, 3)),
    "chat, spaced": ("/v1/chat/completions", ROLE + token("fo") + USAGE.replace(b'":{', b'" :\t {') + DONE, (9, 3)),
    "messages": ("/v1/messages", b"".join(ANTHROPIC), (25, 15)),
    "responses": ("/v1/responses", b"".join(RESPONSES), (4, 2)),
    "responses, not counted": ("/v1/responses", b"".join([*RESPONSES[:2], INCOMPLETE]), FLOWED),
}


@pytest.mark.parametrize(("path", "stream", "usage"), STREAMS.values(), ids=STREAMS)
@given(
    between=st.sets(st.integers(1, 6)),
    inside=st.sets(st.integers(1, 2_000), max_size=4),
    newline=st.sampled_from([b"\n", b"\r\n"]),
)
def test_what_is_learned_of_a_stream_does_not_depend_on_how_it_is_cut(path, stream, usage, between, inside, newline):
    stream = stream.replace(b"\n", newline)
    edges = [found.end() for found in re.finditer(newline * 2, stream)][:-1]
    cuts = {edges[at % len(edges)] for at in between} | {cut % len(stream) or 1 for cut in inside}
    bench = Bench(TEXT)
    warm(bench.gate)
    asked = {"model": "fast", "stream": True, "max_tokens": 9}
    if path == "/v1/chat/completions":
        asked["stream_options"] = {"include_usage": True}
    bench.client.data_received(request(body=json.dumps(asked).encode()).replace(b"/v1/chat/completions", path.encode()))
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[0]
    for at, piece in enumerate(pieces(stream, cuts)):
        end.data_received((b"" if at else STREAM_HEAD) + framed(piece))
    end.data_received(LAST)
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    assert response_body(parse_response(head + b"\r\n\r\n"), b"POST").feed(body) == stream
    assert bench.ends == ["answered"]
    (told, flowed), estimated = bench.gate.callers.ended[-1][1:]
    assert estimated == (usage is FLOWED)
    assert (told, flowed) == (usage[0], usage[1] + estimated)  # its last event is taken for a piece


def test_silence_after_comments_only_is_a_slow_target():
    bench, end, wire = started(stream=True)
    end.data_received(STREAM_HEAD + framed(COMMENT))
    bench.pass_time(7_000)
    end.data_received(framed(COMMENT))
    bench.pass_time(1_500)
    assert wire.closing  # 8 s without content


def test_se_05_a_slow_reader_stops_the_target():
    bench, end, wire = started(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    bench.wire.unread = 65_536
    bench.client.pause_writing()
    assert wire.paused
    for unread in (60_000, 50_000, 40_000):
        bench.wire.unread = unread
        bench.pass_time(20_000)
    assert not bench.ends  # its silence is our doing
    bench.client.resume_writing()
    assert not wire.paused
    end.data_received(framed(FINISH + DONE) + LAST)
    assert bench.ends == ["answered"]


def test_llm_gateways_56_content_that_stops_ends_the_stream_although_comments_flow():
    bench, end, wire = started(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    for _ in range(8):
        bench.pass_time(5_000)
        if not wire.closing:
            end.data_received(framed(COMMENT))
    assert bench.ends == ["failed"]
    said = b"".join(bench.wire.written)
    assert b'data: {"error":{' in said
    assert not said.endswith(LAST)


def test_an_answer_too_long_to_hold_is_relayed_as_it_comes_and_its_usage_counted():
    bench, end, _ = started(stream=False)
    raw = whole(UNARY | {"choices": [{"message": {"content": "x" * 100_000}}]} | {"usage": UNARY["usage"]})
    for at in range(0, len(raw), 16_000):
        end.data_received(raw[at : at + 16_000])
    said = b"".join(bench.wire.written)
    assert said.endswith(raw.partition(b"\r\n\r\n")[2])
    assert b"content-length: 1" in said
    assert bench.ends == ["answered"]
    note = next(entry.noted for entry in bench.gate.journal.entries if hasattr(entry.noted, "used"))
    assert note.used == 3 + 9 - 1


def test_llm_gateways_62_an_answer_that_breaks_before_it_was_shown_is_tried_again():
    bench, end, wire = started(stream=False)
    end.data_received(whole(UNARY)[:-5])
    assert bench.wire.written == []
    wire.closing = True
    end.connection_lost(None)
    bench.pass_time(2_000)
    bench.dialler.succeed()
    bench.dialler.opened[1][0].data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    assert b"x-swarmgate-attempts: 2" in bench.wire.written[0]


@pytest.mark.parametrize("size", [100, 64 * 1024, 300_000])
def test_an_error_page_is_shown_as_far_as_it_was_held(size):
    bench, end, _ = started(stream=True)
    raw = whole({"error": {"message": "x" * size}}, "400 Bad Request")
    for at in range(0, len(raw), 16_000):
        end.data_received(raw[at : at + 16_000])
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"content-length: {len(body)}".encode() in head
    assert len(body) <= 64 * 1024 + 16_000
    assert bench.ends == ["failed"]


def test_a_client_of_http_1_0_gets_the_stream_until_close():
    bench = Bench(TEXT)
    warm(bench.gate)
    body = b'{"model":"fast","stream":true}'
    head = b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body)
    bench.client.data_received(head + body)
    bench.dialler.succeed()
    bench.dialler.opened[0][0].data_received(STREAM_HEAD + framed(token("a")) + framed(DONE) + LAST)
    said = b"".join(bench.wire.written)
    assert b"transfer-encoding" not in said
    assert said.endswith(token("a") + DONE)
    assert bench.wire.closing


def test_a_stream_that_came_compressed_goes_through_and_is_charged_as_estimated():
    bench, end, _ = started(stream=True)
    zipped = gzip.compress(token("a") + DONE)
    head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
    end.data_received(head + framed(zipped[:10]))
    assert bench.wire.written[-1] == framed(zipped[:10])
    end.data_received(framed(zipped[10:]) + LAST)
    assert bench.ends == ["answered"]
    note = next(entry.noted for entry in bench.gate.journal.entries if hasattr(entry.noted, "used"))
    assert note.used == -1


@pytest.mark.parametrize("separator", [":", ": "])
def test_usage_is_found_in_a_read_of_its_own(separator):
    bench, end, _ = started(stream=True)
    usage = json.dumps({"choices": [], "usage": UNARY["usage"]}, separators=(",", separator)).encode()
    for payload in (token("a"), token("b"), b"data: " + usage + b"\n\n", DONE):
        end.data_received((b"" if end.first_byte_seen else STREAM_HEAD) + framed(payload))
    end.data_received(LAST)
    note = next(entry.noted for entry in bench.gate.journal.entries if hasattr(entry.noted, "used"))
    assert note.used == 3 + 9 - 1
