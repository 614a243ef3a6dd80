"""An error among the events of a stream: before content it is a failed attempt, after it the last thing that is said."""

import pytest
from stage import DONE, FINISH, LAST, ROLE, STREAM_HEAD, event, framed, token
from test_triggers import TWO, asked, said, sent_to, waits

LENGTH_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
ERROR = event(said("overloaded_error"))
NAMED = b"event: error\n" + ERROR
LIMIT = event({"error": {"message": "Rate limit", "type": "requests", "code": "rate_limit_exceeded"}})
BARE = event({"type": "error", "code": "overloaded", "message": "overloaded", "param": None, "sequence_number": 1})
OBJECT = event({"object": "error", "message": "overloaded", "type": "x", "code": 529})
BY_NAME = b'event: error\ndata: {"code":"overloaded","message":"overloaded"}\n\n'  # nowhere else in it
TEXT = b"event: error\ndata: overloaded\n\n"
ANTHROPIC = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
FAILED = event({"type": "response.failed", "response": {"error": {"code": "overloaded", "message": "overloaded"}}})
COMPLETED = event({"type": "response.completed", "response": {}})
SINGLE = TWO.replace('["first/large", "second/small"]', '"first/large"')
FIRST = {
    "an error, then its end": (ERROR, DONE),
    "an error by name": (NAMED, DONE),
    "a limit": (LIMIT, DONE),
    "the role before it": (ROLE, ERROR, DONE),
    "both in one": (ERROR + DONE,),
    "a text behind it": (ERROR, b"data: no json\n\n", DONE),
    "content behind it": (ERROR, token("a"), FINISH, DONE),
    "the form of Responses": (BARE, DONE),
    "that of old servers": (OBJECT, DONE),
    "by nothing but its name": (BY_NAME, DONE),
    "no JSON": (TEXT, DONE),
    "that of Anthropic": (ANTHROPIC, STOP),
    "a failed response": (FAILED, COMPLETED),
    "content in the same read": (token("a") + ERROR + DONE,),
}


@pytest.mark.parametrize("chunks", FIRST.values(), ids=FIRST)
def test_an_error_before_content_leads_on_whatever_follows_it(chunks):
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + b"".join(map(framed, chunks)) + LAST)
    waits(bench, 2_000)
    assert sent_to(bench)[-1] == "second"
    assert bench.wire.written == []


@pytest.mark.parametrize(
    "chunks", list(FIRST.values())[:-1], ids=list(FIRST)[:-1]
)  # content in a read of its own is content
def test_so_it_does_in_pieces_and_if_the_stream_has_a_length_or_is_left_open(chunks):
    for cut in (1, 7, 40):
        bench, end = asked(stream=True)
        stream = b"".join(chunks)
        raw = LENGTH_HEAD % (len(stream) + 9) + stream
        for at in range(0, len(raw), cut):
            if not bench.dialler.opened[0][1].closing:
                end.data_received(raw[at : at + cut])
        waits(bench, 4_000)
        assert sent_to(bench)[-1] == "second"
        assert bench.wire.written == []


def test_with_nobody_else_to_ask_it_becomes_an_error_status():
    bench, end = asked(stream=True, text=SINGLE)
    for sends in range(1, 5):
        while len(sent_to(bench)) < sends:
            bench.pass_time(250)
        end = bench.dialler.opened[-1][0]
        end.data_received(STREAM_HEAD + framed(event(said("server_error"))) + framed(DONE) + LAST)
    written = b"".join(bench.wire.written)
    assert written.startswith(b"HTTP/1.1 502 ")
    assert b"data:" not in written


def events_of(bench):
    raw = b"".join(bench.wire.written).partition(b"\r\n\r\n")[2]
    found = []
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        found.append(rest[: int(size, 16)])
        raw = rest[int(size, 16) + 2 :]
    return b"".join(found)


LATER = {
    "its end in another": ((ERROR,), (DONE,), ERROR),
    "its end in the same": ((ERROR + DONE,), (), ERROR),
    "content before it in the same": ((token("b") + ERROR + DONE,), (), token("b") + ERROR),
    "cut in two": ((ERROR[:9], ERROR[9:] + DONE), (), ERROR),
    "cut before its last byte": ((ERROR[:-1], ERROR[-1:] + DONE), (), ERROR),
    "by name": ((NAMED,), (DONE,), NAMED),
    "that of Anthropic": ((ANTHROPIC + STOP,), (), ANTHROPIC),
    "the form of Responses": ((BARE + COMPLETED,), (), BARE),
    "a failed response": ((FAILED,), (COMPLETED,), FAILED),
    "by nothing but its name": ((BY_NAME,), (DONE,), BY_NAME),
    "its name without a blank": ((BY_NAME.replace(b": error", b":error"),), (), BY_NAME.replace(b": error", b":error")),
    "no JSON": ((TEXT,), (DONE,), TEXT),
}


@pytest.mark.parametrize(("chunks", "after", "shown"), LATER.values(), ids=LATER)
def test_an_error_after_content_is_the_last_event_and_the_only_error(chunks, after, shown):
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    for chunk in (*chunks, *after):
        if not bench.dialler.opened[0][1].closing:
            end.data_received(framed(chunk))
    assert events_of(bench) == token("a") + shown
    is_whole = shown is FAILED  # the one that ends its stream as it should
    assert bench.wire.closing is not is_whole
    assert bench.wire.written[-1].endswith(LAST) is is_whole
    assert sent_to(bench) == ["first"]
    assert bench.ends == ["failed"]


def test_an_error_that_no_sdk_raises_on_is_followed_by_one_that_it_does():
    choice = event({"id": "c", "choices": [{"index": 0, "delta": {}, "error": {"message": "overloaded", "code": 502}}]})
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    end.data_received(framed(choice + DONE))
    assert events_of(bench).startswith(token("a") + choice + b'data: {"error":')
    assert b"[DONE]" not in events_of(bench)


def test_after_a_stream_with_a_length_the_caller_hears_no_more_than_the_error():
    bench, end = asked(stream=True)
    stream = token("a") + ERROR + DONE
    end.data_received(LENGTH_HEAD % len(stream) + token("a"))
    end.data_received(ERROR + DONE)
    assert b"".join(bench.wire.written).endswith(token("a") + ERROR)
    assert bench.wire.closing


def test_the_connection_serves_the_next_call_if_no_error_was_seen():
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(ROLE + token('"error"') + FINISH) + framed(DONE) + LAST)
    assert bench.ends == ["answered"]
    assert not bench.dialler.opened[0][1].closing


def test_what_came_before_an_error_is_counted():
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a") + token("b")))
    end.data_received(framed(token("c") + ERROR + DONE) + LAST)
    ((_, usage, estimated),) = bench.gate.callers.ended
    assert usage[1] == 3
    assert estimated
