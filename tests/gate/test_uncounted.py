"""What a target made and did not count stands in the evidence as an estimate, whoever ended it (llm_gateways 51)."""

import asyncio
import json

import pytest
from stage import DONE, FINISH, LAST, STREAM_HEAD, event, framed, token, warm, whole
from test_complaints import LADDER
from test_front import request
from wires import Bench

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { first = "env:KEY" }
"""
MADE = 400  # tokens, of four letters each
LIKELY = 1_024  # of an answer, while none was seen
STARTED = {"type": "message_start", "message": {"usage": {"input_tokens": 25, "output_tokens": 1}}}
ITEM = {"type": "response.output_item.added", "item": {"id": "msg_1", "status": "in_progress", "content": []}}


def chat(text):
    return token(text)


def thought(text):
    return event({"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": text}}]})


def arguments(text):
    call = {"index": 0, "function": {"arguments": text}}
    return event({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})


def message(text):
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return b"event: content_block_delta\n" + event(said)


def response(text):
    said = {"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}
    return b"event: response.output_text.delta\n" + event(said)


DIALECTS = {  # path, what comes before the pieces, a piece, tokens in each piece, and what was told of the prompt
    "chat": ("/v1/chat/completions", b": hello\n\n", chat, 1, None),
    "chat in long pieces": ("/v1/chat/completions", b"", chat, 8, None),
    "thoughts": ("/v1/chat/completions", b"", thought, 1, None),
    "arguments of a tool": ("/v1/chat/completions", b"", arguments, 4, None),
    "messages": ("/v1/messages", b"event: message_start\n" + event(STARTED), message, 5, 25),
    "responses": ("/v1/responses", b"event: response.output_item.added\n" + event(ITEM), response, 1, None),
}


class Seen:
    """Keeps what the journal is told of each attempt at its end (ports.Journal)."""

    def __init__(self, gate):
        self._own, self._wires = gate.journal, {}
        self.facts = []
        gate.pump.attach(gate.store, gate.exchanges, gate.callers, self)

    def intent(self, call, intent):
        self._wires[call] = call.wire
        self._own.intent(call, intent)

    def note(self, call, note):
        if call in self._wires:
            self.facts.append(self._wires.pop(call).facts())
        self._own.note(call, note)

    def lost(self, call, lose):
        self._own.lost(call, lose)

    def end(self, call, answer):
        self._own.end(call, answer)


def asked(path="/v1/chat/completions", *lines, stream=True, text=TEXT, model="m"):
    """A call that has left, and its target's end of it."""
    bench = Bench(text)
    warm(bench.gate)
    bench.seen = Seen(bench.gate)
    said = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi " * 400}]}
    bench.client.data_received(request(path, json.dumps(said).encode(), "POST", *lines))
    bench.dialler.succeed()
    return bench, bench.dialler.opened[-1][0]


def leaves(bench, _end):
    bench.client.connection_lost(None)


def breaks(_bench, end):
    end._transport.closing = True
    end.connection_lost(None)


def too_early(_bench, end):
    end.data_received(LAST)


def out_of_time(bench, _end):
    bench.pass_time(60_000)
    bench.gate._upkeep.on_deadline()


def stops(bench, _end):
    asyncio.run(bench.gate.stop(0))


def fails(_bench, end):
    end.data_received(framed(event({"type": "error", "error": {"type": "overloaded_error", "message": "no"}})) + LAST)


def never_counts(_bench, end):
    end.data_received(framed(FINISH + DONE) + LAST)


ENDS = (leaves, breaks, too_early, out_of_time, stops, fails)


def shown(bench):
    """The usage that `calls/ID` tells, and whether it is an estimate."""
    _, usage, estimated = bench.gate.callers.ended[-1]
    return usage, estimated


@pytest.mark.parametrize("at_once", [1, 7], ids=["one by one", "in bursts"])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_llm_gateways_51_what_flowed_is_estimated_within_5_percent(dialect, ends, at_once):
    path, before, piece, tokens, told = DIALECTS[dialect]
    bench, end = asked(path, "x-swarmgate-timeout: 60s")
    pieces = [piece("word" * tokens) for _ in range(MADE // tokens)]
    end.data_received(STREAM_HEAD + framed(before + pieces[0]) if before else STREAM_HEAD + framed(pieces[0]))
    for at in range(1, len(pieces), at_once):
        end.data_received(framed(b"".join(pieces[at : at + at_once])))
    ends(bench, end)
    (facts,) = bench.seen.facts
    assert facts.estimated
    assert facts.prompt_tokens == told or 300 <= facts.prompt_tokens <= 320
    assert facts.output_tokens == pytest.approx(MADE, rel=0.05)
    assert shown(bench) == ((facts.prompt_tokens, facts.output_tokens), True)


def test_a_stream_that_is_whole_and_was_not_counted_is_one_too():
    bench, end = asked()
    end.data_received(STREAM_HEAD + framed(token("word")))
    for _ in range(1, MADE):
        end.data_received(framed(token("word")))
    never_counts(bench, end)
    assert bench.ends == ["answered"]
    assert bench.seen.facts[0].estimated
    assert bench.seen.facts[0].output_tokens == pytest.approx(MADE, rel=0.05)


@pytest.mark.parametrize("cut", [1, 40, 90])
def test_pieces_that_are_cut_anywhere_are_not_counted_twice(cut):
    bench, end = asked()
    stream = token("word") * MADE
    end.data_received(STREAM_HEAD + framed(stream[:cut]))
    for at in range(cut, len(stream), 97):
        end.data_received(framed(stream[at : at + 97]))
    leaves(bench, end)
    assert bench.seen.facts[0].output_tokens == pytest.approx(MADE, rel=0.01)


@pytest.mark.parametrize("ends", [leaves, breaks, stops])
def test_an_answer_that_comes_whole_is_made_before_it_is_seen(ends):
    bench, end = asked(stream=False)
    ends(bench, end)
    (facts,) = bench.seen.facts
    assert (facts.estimated, facts.output_tokens) == (True, LIKELY)


def test_so_is_one_that_cannot_be_read():
    bench, end = asked(stream=False)
    end.data_received(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00")
    assert bench.ends == ["answered"]
    assert bench.seen.facts[0].estimated
    assert shown(bench)[0][1] == LIKELY


def test_a_target_that_did_not_begin_took_the_prompt_and_the_next_one_counts_for_itself():
    bench, _ = asked(text=LADDER, model="fast")
    bench.pass_time(8_000)
    bench.dialler.succeed()
    end = bench.dialler.opened[-1][0]
    end.data_received(STREAM_HEAD + framed(token("a")))
    end.data_received(
        framed(event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}) + DONE) + LAST
    )
    assert bench.ends == ["answered"]
    late, served = bench.seen.facts
    assert (late.estimated, late.output_tokens) == (True, 0)
    assert 300 <= late.prompt_tokens <= 320
    assert (served.estimated, served.prompt_tokens, served.output_tokens) == (False, 9, 3)
    assert shown(bench) == ((9, 3), False)


def test_nobody_bills_an_error_or_what_never_left():
    bench, end = asked(stream=False)
    end.data_received(whole({"error": {"message": "no"}}, "400 Bad Request"))
    assert shown(bench) == ((0, 0), False)
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/chat/completions", b'{"model":"m"}'))
    bench.client.connection_lost(None)
    assert shown(bench) == ((-1, -1), False)


def test_a_use_that_cannot_be_is_no_estimate():
    bench, end = asked(stream=False)
    end.data_received(whole({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -9}}))
    assert shown(bench)[1] is False
