"""Streams that their heads call something else: SDKs read the events that they asked for, whatever they are called, and so does the gate."""

import json

import pytest
from stage import DONE, FINISH, LAST, ROLE, USAGE, event, framed, token
from test_injection import started
from test_recordings import FOLDER
from test_triggers import asked as laddered
from test_triggers import said, sent_to

from swarmgate.core.outcome import Verdict
from swarmgate.gate.understanding import Answer, understand
from swarmgate.providers.tables import DIALECTS

NAMES = [b"application/json", b"text/plain; charset=utf-8", b"application/octet-stream"]
STREAM = ROLE + token("fo") + token("ur") + FINISH + USAGE + DONE


def head(name, framing=b"transfer-encoding: chunked"):
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n\r\n" % (name, framing)


def body_of(bench):
    return b"".join(bench.wire.written).partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mark", [b"", b": hello\n\n", b"\xef\xbb\xbf", b"\n"])
def test_it_goes_on_as_it_comes_and_is_counted(name, mark):
    bench, end, _ = started(stream_options={"include_usage": True})
    end.data_received(head(name) + framed(mark + ROLE))
    end.data_received(framed(token("fo")))
    assert framed(mark + ROLE + token("fo")) in b"".join(bench.wire.written)
    end.data_received(framed(token("ur") + FINISH + USAGE) + framed(DONE) + LAST)
    assert bench.ends == ["answered"]
    assert bench.gate.callers.ended[-1][1:] == ((9, 3), False)


def test_a_count_that_only_the_gate_asked_for_stays_here():
    bench, end, sent = started()
    assert sent["stream_options"] == {"include_usage": True}
    end.data_received(head(NAMES[0], b"content-length: %d" % len(STREAM)) + STREAM)
    assert bench.ends == ["answered"]
    assert b"usage" not in body_of(bench)
    assert b"[DONE]" in body_of(bench)
    assert bench.gate.callers.ended[-1][1] == (9, 3)


def test_an_error_in_it_leads_on():
    bench, end = laddered(stream=True)
    end.data_received(head(NAMES[0]) + framed(event(said("overloaded_error"))) + LAST)
    for _ in range(8):
        bench.pass_time(250)
    assert sent_to(bench)[-1] == "second"
    assert bench.wire.written == []


@pytest.mark.parametrize("page", [b"<html>data: x</html>", b"data of ours: none", b"OK", b"idle"])
def test_a_page_is_no_stream(page):
    bench, end = laddered(stream=True)
    end.data_received(head(b"text/html", b"content-length: %d" % len(page)) + page)
    assert (bench.wire.written, bench.ends) == ([], [])  # it is sent again


def test_who_asked_for_no_stream_gets_none():
    bench, end = laddered(stream=False)
    end.data_received(head(NAMES[0], b"content-length: %d" % len(STREAM)) + STREAM)
    assert (bench.wire.written, bench.ends) == ([], [])  # it is sent again


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the recordings lie beside the repository")
@pytest.mark.parametrize("name", ["openai-020", "openai-022", "openai-024"])
def test_explain_reads_it_as_the_gate_does(name):
    response = json.loads((FOLDER / "openai" / f"{name}.json").read_text())["response"]
    answer = Answer(response["status"], tuple(response["headers"].items()), "".join(response["sse"]).encode())
    assert understand(DIALECTS["openai"], answer, 0).outcome.verdict is Verdict.OK
