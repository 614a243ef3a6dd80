"""How an answer reaches its caller: held until content, then straight through, at the pace of the slower side."""

import gzip
import json

import pytest
from stage import DONE, FINISH, LAST, ROLE, STREAM_HEAD, UNARY, framed, token, warm, whole
from test_front import TEXT, request
from wires import Bench

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
