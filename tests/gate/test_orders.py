"""Whatever happens to a call, in whatever order: one end, nothing reserved, no bug, and an answer for who is still there."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from stage import DONE, FINISH, LAST, ROLE, STREAM_HEAD, UNARY, USAGE, framed, token, warm, whole
from wires import Bench

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
limits = ["30 per 10s", "60000 tokens per 10s", "2 concurrent"]
largest_tokens = 2000
keys = { a = "env:KEY", b = "env:KEY" }
key_limits = ["20 per 10s"]
"""
ERROR = {"error": {"message": "try again in 2s", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
ANSWERS = {
    "unary": whole(UNARY),
    "streamed": STREAM_HEAD
    + b"".join([framed(payload) for payload in (ROLE, token("fo"), token("ur"), FINISH, USAGE, DONE)])
    + LAST,
    "no done": STREAM_HEAD + framed(ROLE) + framed(token("fo")) + LAST,
    "limited": whole(ERROR, "429 Too Many Requests"),
    "failed": whole({"error": {"message": "oops"}}, "500 Oops"),
    "bad": whole({"error": {"message": "no"}}, "400 Bad Request"),
    "dead key": whole({"error": {"message": "no", "code": "invalid_api_key"}}, "401 No"),
    "error in 200": whole({"error": {"message": "overloaded", "type": "server_error"}}),
    "garbage": b"SSH-2.0-OpenSSH\r\n\r\n",
}

answers = st.tuples(st.just("answer"), st.sampled_from(sorted(ANSWERS)), st.sampled_from([0.2, 0.6, 0.95, 1, 1]))
often = st.sampled_from([("dialled",), ("dialled",), ("rest",), ("rest",), ("time", 40), ("time", 1_500)])
seldom = st.sampled_from(
    [("refused",), ("reset",), ("eof",), ("pause",), ("resume",), ("left",), ("time", 9_000), ("time", 31_000)]
)
first = st.sampled_from([("dialled",), ("dialled",), ("dialled",), ("refused",), ("left",)])
steps = st.lists(st.one_of(answers, answers, often, often, often, seldom), min_size=1, max_size=25)
orders = st.tuples(first, answers, steps).map(lambda order: [order[0], order[1], *order[2]])


class Player:
    """Plays events to a gate; those that cannot happen now are passed over, as the world would."""

    def __init__(self, *, stream, priority, wait):
        self.bench = Bench(TEXT)
        warm(self.bench.gate)
        self.rest = {}
        self.reads = True
        body = json.dumps({"model": "m", "stream": stream, "messages": [], "max_tokens": 50}).encode()
        self.bench.client.data_received(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-agent: a\r\nx-swarmgate-timeout: 60s\r\n"
            b"x-swarmgate-priority: %b\r\nx-swarmgate-wait: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (priority, wait, len(body), body)
        )

    def play(self, name, *arguments):
        getattr(self, "on_" + name)(*arguments)

    @property
    def busy(self):
        return next(((end, wire) for end, wire in self.bench.dialler.opened if end._owner and not wire.closing), None)

    def on_dialled(self):
        if self.bench.dialler.dials:
            self.bench.dialler.succeed()

    def on_refused(self):
        if self.bench.dialler.dials:
            self.bench.dialler.fail()

    def on_answer(self, kind, share):
        if self.busy and self.busy[0] not in self.rest:
            raw = ANSWERS[kind]
            cut = int(len(raw) * share)
            end = self.busy[0]
            self.rest[end] = raw[cut:]
            if cut:
                end.data_received(raw[:cut])
            self.on_rest() if share == 1 else None

    def on_rest(self):
        if self.busy and self.busy[0] in self.rest:
            end = self.busy[0]
            end.data_received(self.rest.pop(end))

    def on_reset(self):
        if self.busy:
            end, wire = self.busy
            self.rest.pop(end, None)
            wire.closing = True
            end.connection_lost(ConnectionResetError())

    def on_eof(self):
        if self.busy:
            end, wire = self.busy
            self.rest.pop(end, None)
            end.eof_received()
            wire.closing = True
            end.connection_lost(None)

    def on_pause(self):
        self.bench.client.pause_writing()
        self.reads = False

    def on_resume(self):
        self.bench.client.resume_writing()
        self.reads |= not self.bench.wire.closing  # else it was cut off

    def on_time(self, ms):
        self.bench.pass_time(ms)

    def on_left(self):
        if not self.bench.wire.closing:
            self.bench.wire.closing = True
            self.bench.client.connection_lost(None)


@settings(max_examples=150)
@given(
    orders,
    st.booleans(),
    st.sampled_from([b"P0", b"P2"]),
    st.sampled_from([b"0s", b"20s"]),
)
def test_every_order_of_events_has_one_end(order, stream, priority, wait):
    player = Player(stream=stream, priority=priority, wait=wait)
    bench = player.bench
    for step in order:
        player.play(*step)
        assert not bench.bugs
    left = any(step == ("left",) for step in order)
    for _ in range(80):  # by then the caller's own time is over
        bench.pass_time(1_000)
    assert not bench.bugs
    assert len(bench.ends) == 1
    assert not bench.gate.pump.open
    assert bench.reserved == 0
    assert not bench.gate.exchanges.live
    said = b"".join(bench.wire.written)
    assert said or left or not player.reads  # who never reads is cut off, also before anything was said
    assert said.count(b"HTTP/1.1 ") <= 1 or b"HTTP/1.1 408" in said
    if bench.ends == ["answered"] and not left:
        assert said.endswith((LAST, b"}"))
    if b"event: error" in said:
        assert b"[DONE]" not in said.partition(b"event: error")[2]
        assert not said.endswith(LAST)
