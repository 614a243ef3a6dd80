"""LG-12: whatever a target says it used, and if it says nothing: never a credit, never more than was reserved."""

import json

import pytest
from stage import DONE, LAST, STREAM_HEAD, UNARY, framed, token, warm, whole
from test_front import request
from test_hostile_targets import CAPPED
from wires import Bench

SAID = [
    b'{"prompt_tokens":NaN,"completion_tokens":1}',
    b'{"prompt_tokens":1e400,"completion_tokens":1}',
    b'{"prompt_tokens":-1e9,"completion_tokens":-1e9}',
    b'{"prompt_tokens":1180591620717411303424,"completion_tokens":3}',
    b'{"prompt_tokens":"9","completion_tokens":"3"}',
    b'{"prompt_tokens":{},"completion_tokens":[]}',
    b'{"completion_tokens":true}',
    b"{}",
    b"null",
    b"[7]",
    b"9",
]


def asked(*, stream):
    """A call in progress, and what each budget of tokens and money holds of it."""
    bench = Bench(CAPPED)
    warm(bench.gate)
    body = json.dumps({"model": "fast", "stream": stream, "messages": [{"role": "user", "content": "x" * 400}]})
    bench.client.data_received(request(body=body.encode()).replace(b"host: g", b"host: g\r\nx-swarmgate-agent: a", 1))
    cells = [cell for name, cell in bench.gate.store.book.cells.items() if "tokens" in name or "USD" in name]
    bench.dialler.succeed()
    before = [(cell, cell.level, cell.pending) for cell in cells]
    assert any(pending for _, _, pending in before)
    end, _ = bench.dialler.opened[0]
    return bench, before, end


def within_the_reserve(bench, before):
    assert len(bench.ends) == 1
    assert bench.reserved == 0
    assert not bench.bugs
    for cell, level, pending in before:
        assert level <= cell.level <= level + pending * cell.limits.scale, cell.name


@pytest.mark.parametrize("said", SAID, ids=bytes.decode)
@pytest.mark.parametrize("stream", [False, True])
def test_lg_12_whatever_stands_where_use_is_told(said, stream):
    bench, before, end = asked(stream=stream)
    if stream:
        chunk = b'data: {"choices":[],"usage":' + said + b"}\n\n"
        end.data_received(STREAM_HEAD + framed(token("a")) + framed(chunk) + framed(DONE) + LAST)
    else:
        plain = json.dumps({name: value for name, value in UNARY.items() if name != "usage"}).encode()
        body = plain[:-1] + b',"usage":' + said + b"}"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        end.data_received(head % len(body) + body)
    within_the_reserve(bench, before)


@pytest.mark.parametrize("rest", [DONE, b"", None], ids=["no chunk of use", "no end of events", "cut off"])
def test_lg_12_a_stream_that_never_tells_its_use(rest):
    bench, before, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    if rest is None:
        end.connection_lost(None)
    else:
        end.data_received((framed(rest) if rest else b"") + LAST)
    within_the_reserve(bench, before)


def test_lg_12_an_answer_without_use():
    bench, before, end = asked(stream=False)
    end.data_received(whole({name: value for name, value in UNARY.items() if name != "usage"}))
    within_the_reserve(bench, before)
