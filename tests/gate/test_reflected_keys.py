"""A target that answers with what it was asked shows nobody the key that it was asked with (reliability SC-02)."""

import pytest
from stage import DONE, FINISH, KEY, LAST, STREAM_HEAD, TARGET, UNARY, framed, token, warm, whole
from test_front import request
from wires import Bench

from swarmgate import config

ECHO = f"x-echo: Bearer {KEY}\r\nx-request-authorization: {KEY}\r\n"
SAID = UNARY | {"choices": [{"message": {"content": f"You sent Bearer {KEY}"}}]}
NOTHING = b'{"model":"m"}'
STREAM = b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'
_HEAD, _, _BODY = STREAM_HEAD.partition(b"\r\n\r\n")
ECHOING = _HEAD + b"\r\n" + ECHO.encode() + b"\r\n"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/chat/completions", NOTHING, whole(SAID, extra=ECHO)),
        ("/v1/chat/completions", NOTHING, whole({"error": {"message": f"no, {KEY}"}}, "400 Bad", ECHO)),
        ("/v1/chat/completions", NOTHING, whole(UNARY | {"more": "x" * 70_000}, extra=ECHO)),
        ("/v1/chat/completions", STREAM, ECHOING + framed(token(f"said {KEY}")) + framed(FINISH + DONE) + LAST),
        ("/v1/files", NOTHING, whole({"id": 1, "asked": f"Bearer {KEY}"}, extra=ECHO)),
        ("/v1/files", NOTHING, whole({"error": {"message": f"no, {KEY}"}}, "404 Not Found", ECHO)),
    ],
    ids=["whole", "error", "long", "stream", "unread", "unread error"],
)
def test_headers_and_bodies_are_starred_out(path, body, said, monkeypatch):
    parse = config.parse
    monkeypatch.setattr(config, "parse", lambda text, _environment: parse(text, {"KEY": KEY}))
    bench = Bench(TARGET.format(port=9))
    warm(bench.gate)
    bench.client.data_received(request(path, body))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    assert KEY.encode() in wire.written[0]
    assert KEY.encode() in said
    end.data_received(said)
    seen = b"".join(bench.wire.written)
    assert seen
    assert KEY.encode() not in seen
    assert b"x-echo: Bearer " + b"*" * len(KEY) in seen or b"502" in seen
    assert bench.bugs == []
