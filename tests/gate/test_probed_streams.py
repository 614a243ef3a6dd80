"""A key that comes back after a 429 is tried by one call; that its answer begins is enough, however long the stream lasts."""

import json

from stage import DONE, LAST, STREAM_HEAD, framed, token, warm, whole
from test_front import TEXT, request
from wires import Bench, Door, Wire

REFUSED = whole({"error": {"message": "Rate limit reached", "type": "requests"}}, "429 Too Many Requests")


def ask(bench):
    """One more call, by a caller of its own."""
    caller = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100)
    caller.connection_made(Wire())
    caller.data_received(request(body=json.dumps({"model": "fast", "stream": True}).encode()))
    while bench.dialler.dials:
        bench.dialler.succeed()


def sent(bench):
    """Targets' ends that got a request, the oldest first; one for each send, since no connection is used twice here."""
    return [end for end, wire in bench.dialler.opened for _ in wire.written]


def test_the_next_call_goes_while_the_probe_streams():
    bench = Bench(TEXT)
    warm(bench.gate)
    ask(bench)
    sent(bench)[0].data_received(REFUSED)
    bench.pass_time(30_000)  # the first call is sent away
    bench.pass_time(60_000)
    ask(bench)
    ask(bench)
    assert len(sent(bench)) == 2  # the probe; the other waits for what it tells
    sent(bench)[1].data_received(STREAM_HEAD + framed(token("a")))
    while bench.dialler.dials:
        bench.dialler.succeed()
    assert len(sent(bench)) == 3
    sent(bench)[1].data_received(framed(token("b") + DONE) + LAST)
    assert bench.ends == ["deferred", "answered"]
