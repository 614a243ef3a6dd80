"""Targets that lie, break or poison: each check has its number in the catalogue of failures (UP: hostile or broken targets)."""

import gzip
import json

import pytest
from stage import DONE, LAST, STREAM_HEAD, TARGET, UNARY, event, framed, token, warm, whole
from test_front import TEXT, request
from test_relay import started
from wires import Bench

from swarmgate.core.price import LONGEST_CONTEXT, could_use

GOOD = whole(UNARY)


def until_ended(bench, raw=None):
    """Every attempt meets the same answer, or the end of its connection, until the call has ended."""
    for _ in range(60):
        if bench.ends:
            return
        if bench.dialler.dials:
            bench.dialler.succeed()
            end, wire = bench.dialler.opened[-1]
            if raw is not None:
                end.data_received(raw)
            if not wire.closing:
                wire.closing = True
                end.connection_lost(None)
        bench.pass_time(1_000)


def told(bench):
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


HEAD, _, BODY = GOOD.partition(b"\r\n\r\n")
IN_CHUNKS = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n" + b"".join(
    [framed(BODY[:100]), framed(BODY[100:]), LAST]
)


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["closed", "reset"])
@pytest.mark.parametrize("raw", [GOOD, IN_CHUNKS], ids=["sized", "chunked"])
def test_up_01_a_whole_answer_cut_anywhere_is_never_shown_short(raw, error):
    for cut in (*range(0, len(raw), 23), len(raw) - 2, len(raw) - 1):
        bench, end, wire = started(stream=False)
        if cut:
            end.data_received(raw[:cut])
        wire.closing = True
        end.connection_lost(error)
        assert bench.wire.written == []
        until_ended(bench)
        status, said = told(bench)
        assert (status, said["code"]) == (502, "target_cut")


def test_up_01_se_03_a_stream_cut_anywhere_ends_with_an_error_and_never_done():
    raw = STREAM_HEAD + b"".join(map(framed, (token("a"), token("b"), DONE)))
    first = len(STREAM_HEAD + framed(token("a")))
    for cut in range(first, len(raw) - len(framed(DONE)), 5):
        bench, end, wire = started(stream=True)
        end.data_received(raw[:cut])
        wire.closing = True
        end.connection_lost(None)
        said = b"".join(bench.wire.written)
        assert b'"code":"target_cut"' in said
        assert b"[DONE]" not in said
        assert not said.endswith(LAST)
        assert bench.ends == ["failed"]


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"x", b"\r\n"])
def test_up_02_03_what_follows_an_answer_reaches_nobody(extra):
    bench, end, wire = started(stream=False)
    end.data_received(GOOD + extra)
    assert bench.ends == ["answered"]
    assert b"hello" not in b"".join(bench.wire.written)
    assert wire.closing


GARBAGE = {
    "UP-03 length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "UP-03 chunk overflow": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{",
    "UP-04 103 without end": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 100_000,
    "UP-04 stray 101": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
    "UP-05 HTTP/0.9": b"<html>hello</html>",
    "UP-05 another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "UP-05 NUL in a header": b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\n{}",
    "UP-05 endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    "UP-05 long status line": b"HTTP/1.1 200 " + b"O" * 65_536 + b"\r\n\r\n",
    "UP-09 a portal's page": whole({}).replace(b"{}", b"<html>log in</html>").replace(b": 2\r\n", b": 19\r\n"),
    "UP-09 nothing": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
    "UP-10 redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_an_error_of_the_target_and_nothing_of_it_is_shown(name):
    bench, end, wire = started(stream=False)
    end.data_received(GARBAGE[name])
    if not wire.closing:
        wire.closing = True
        end.connection_lost(None)
    until_ended(bench, GARBAGE[name])
    status, error = told(bench)
    assert status == 502
    assert error["code"].startswith("target_")
    assert len(bench.dialler.opened) <= 4
    assert all(wire.closing or name.startswith(("UP-09", "UP-10")) for _, wire in bench.dialler.opened)
    assert b"location" not in bench.wire.written[0]


def doors(stream=False):
    """A request at each way out, as (text of the configuration, what is asked)."""
    body = b'{"model":"fast","stream":%b}' % (b"true" if stream else b"false")
    egress = '[egress]\nunknown = "10 per 1s"\n[resolve]\n"a.org" = "127.0.0.1:9"\n'
    return {
        "a call": (TEXT, "/v1/chat/completions", body, "POST"),
        "an unread path": (TEXT, "/v1/files", b"", "GET"),
        "a host": (TEXT + egress, "/to/http/a.org/", b"", "GET"),
    }


PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def endless(text, path, body, method, *, head, piece, every_ms, lines=()):
    """The bench and the target's wire after five minutes of pieces."""
    bench = Bench(text)
    if bench.gate.egress is not None:
        bench.gate.egress.upstreams.dialler = bench.dialler
    warm(bench.gate)
    bench.gate.store.book.birth_ms = -(2**51)
    bench.client.data_received(request(path, body, method, *lines))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    end.data_received(head)
    for _ in range(400_000 // every_ms):
        if not wire.closing:
            end.data_received(framed(piece))
        bench.pass_time(every_ms)
    return bench, wire


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("door", doors())
def test_up_06_an_endless_answer_ends_with_the_callers_time(door, stream):
    head, piece = (STREAM_HEAD, token("again ")) if stream else (PAGE, b"x" * 10_000)
    lines = ("x-swarmgate-timeout: 20s",)
    bench, wire = endless(*doors(stream)[door], head=head, piece=piece, every_ms=1_000, lines=lines)
    said = b"".join(bench.wire.written)
    assert bench.ends == ["failed"]
    assert wire.closing
    assert len(said) <= 21 * (len(framed(piece)) + 200) + 2_000
    assert not said.endswith(LAST)
    assert not (stream and door == "a call") or b'"code":"caller_deadline"' in said


@pytest.mark.parametrize("door", doors())
def test_up_07_a_byte_now_and_then_ends_with_the_callers_time(door):
    text, path, body, method = doors()[door]
    lines = ("x-swarmgate-timeout: 200s",)
    bench, wire = endless(text, path, body, method, head=PAGE, piece=b"1", every_ms=29_000, lines=lines)
    assert wire.closing
    assert len(bench.ends) == 1


def test_up_07_a_byte_now_and_then_is_no_progress():
    bench, end, wire = started(stream=False)
    end.data_received(GOOD[:-100])
    for number in range(5):
        bench.pass_time(29_000)
        if not wire.closing:
            end.data_received(GOOD[-100 + number : -99 + number])
    assert wire.closing
    until_ended(bench)
    assert told(bench)[0] in {502, 504}


def test_up_08_a_bomb_goes_through_as_it_is():
    bench, end, _ = started(stream=False)
    bomb = gzip.compress(b"0" * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    end.data_received(head % len(bomb) + bomb)
    assert b"".join(bench.wire.written).endswith(bomb)
    note = next(entry.noted for entry in bench.gate.journal.entries if hasattr(entry.noted, "used"))
    assert note.used == -1  # charged by its estimate


def test_up_11_up_16_cookies_and_trailers_stay_here():
    bench, end, _ = started(stream=True)
    head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nset-cookie: session=1\r\ntrailer: set-cookie\r\n\r\n")
    end.data_received(head + framed(token("a")) + framed(DONE) + b"0\r\nset-cookie: later=1\r\n\r\n")
    assert b"cookie" not in b"".join(bench.wire.written).lower()
    assert bench.ends == ["answered"]


def test_up_14_a_wait_of_thirty_years_is_a_deferral_and_no_sleep():
    bench, end, _ = started(stream=False)
    end.data_received(whole({"error": {"message": "slow down"}}, "429 Too Many", "retry-after: 1000000000\r\n"))
    for _ in range(25):
        bench.pass_time(1_000)
    assert bench.ends == ["deferred"]
    assert len(bench.dialler.opened) == 1
    head = bench.wire.written[0].split(b"\r\n\r\n")[0]
    assert b"x-should-retry: false" in head


def test_up_14_no_answer_raises_a_limit():
    bench = Bench(TARGET.format(port=9).replace("900000000 per 1s", "3 per 60s"))
    warm(bench.gate)
    limits = {name: cell.limits for name, cell in bench.gate.store.book.cells.items()}
    lies = "".join(
        f"x-ratelimit-{word}-{unit}: {lie}\r\n"
        for word, lie in (("limit", 10**12), ("remaining", 10**12), ("reset", "1s"))
        for unit in ("requests", "tokens")
    )
    for _ in range(9):
        bench.client.data_received(
            request(body=b'{"model":"m"}').replace(b"host: g", b"host: g\r\nx-swarmgate-wait: 0s")
        )
        if bench.dialler.dials:
            bench.dialler.succeed()
        if bench.gate.pump.open:
            bench.dialler.opened[-1][0].data_received(
                whole(UNARY, extra=lies + "ratelimit: limit=1e12, remaining=1e12\r\n")
            )
        bench.pass_time(300)
    assert 1 <= bench.ends.count("answered") <= 3
    assert bench.ends.count("answered") + bench.ends.count("deferred") == 9
    assert {name: cell.limits for name, cell in bench.gate.store.book.cells.items()} == limits


CAPPED = (
    TEXT.replace("[routes]", 'key_limits = ["1_000_000 tokens per 60s"]\n[routes]')
    + """
[prices."up/*"]
input = 1
output = 1
[agents]
limits = ["100_000_000 tokens per 1d", "5 USD per 1d"]
"""
)


PORTALS = {
    "a page": b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 19\r\n\r\n<html>log in</html>",
    "nothing": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "a redirect": b"HTTP/1.1 302 Found\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n",
    "an error": whole({"error": {"message": "it broke", "type": "server_error"}}),
    "an error in a stream": STREAM_HEAD
    + framed(event({"error": {"message": "it broke", "type": "server_error"}}))
    + LAST,
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", PORTALS)
def test_up_09_what_is_no_answer_is_an_error_and_nobody_is_billed(name, stream):
    bench = Bench(CAPPED)
    warm(bench.gate)
    body = json.dumps({"model": "fast", "stream": stream, "max_tokens": 500})
    bench.client.data_received(request(body=body.encode()).replace(b"host: g", b"host: g\r\nx-swarmgate-agent: a", 1))
    until_ended(bench, PORTALS[name])
    status, error = told(bench)
    assert status == 502
    assert error["code"].startswith("target_")
    assert len(bench.dialler.opened) == 4
    cell = bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert (cell.level, cell.pending) == (0, 0)


LIES = [(2**60, 2**60), (9, 2**70), (2**50, 0), (-(2**60), 2**60 + 5), (-5, 5), (-1, -1), (LONGEST_CONTEXT + 1, 9)]


@pytest.mark.parametrize("usage", [*LIES, (9, 50_000_000)])
@pytest.mark.parametrize("stream", [False, True])
def test_lg_12_a_lie_about_use_takes_what_was_reserved_and_gives_nothing_back(usage, stream):
    """Else one answer would shut its key's budget for weeks, and the caller's caps at every other target."""
    prompt, output = usage
    counts = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    bench = Bench(CAPPED)
    warm(bench.gate)
    body = json.dumps({"model": "fast", "stream": stream, "messages": [{"role": "user", "content": "x" * 400}]})
    bench.client.data_received(request(body=body.encode()).replace(b"host: g", b"host: g\r\nx-swarmgate-agent: a", 1))
    cells = {name: cell for name, cell in bench.gate.store.book.cells.items() if "tokens" in name or "USD" in name}
    bench.dialler.succeed()
    before = {name: (cell.level, cell.pending) for name, cell in cells.items()}
    assert any(pending for _, pending in before.values())
    end, _ = bench.dialler.opened[0]
    if stream:
        end.data_received(STREAM_HEAD + framed(token("a")) + framed(event({"choices": [], "usage": counts})))
        end.data_received(framed(DONE) + LAST)
    else:
        end.data_received(whole(UNARY | {"usage": counts}))
    assert len(bench.ends) == 1
    assert bench.reserved == 0
    for name, cell in cells.items():
        level, pending = before[name]
        assert level <= cell.level <= level + pending * cell.limits.scale, name


@pytest.mark.parametrize(("window", "level"), [(2_000, 1), (200_000, 1_500_001)])
def test_lg_12_what_the_operator_says_of_a_window_decides_what_is_believed(window, level):
    bench = Bench(CAPPED.replace("[routes]", f'windows = {{ "*" = {window} }}\n[routes]'))
    warm(bench.gate)
    body = b'{"model":"fast","max_tokens":1}'
    bench.client.data_received(request(body=body).replace(b"host: g", b"host: g\r\nx-swarmgate-agent: a", 1))
    bench.dialler.succeed()
    counts = {"prompt_tokens": 1, "completion_tokens": 1_500_000, "total_tokens": 1_500_001}
    bench.dialler.opened[0][0].data_received(whole(UNARY | {"usage": counts}))
    assert bench.gate.store.book.cells["agent a: tokens per 86400s"].level in {level, level + 1}


def test_lg_12_what_a_call_can_have_used_is_believed():
    assert could_use(1_000_000, 64_000, 128_000)  # of a target that ran tools itself, round after round
    assert not could_use(2_000_000, 64_000, 128_000)
    assert not could_use(9, 2_000_000, 128_000)
    assert could_use(LONGEST_CONTEXT, LONGEST_CONTEXT, 0)
