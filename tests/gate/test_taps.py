"""What an answer says while it passes, however it is cut into reads."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import DONE, FINISH, ROLE, USAGE, event, token

from swarmgate.gate import taps
from swarmgate.gate.taps import ABSURD, NO_CACHE, NO_USAGE, StreamTap, data_of, read_answer, read_cached, read_tail
from swarmgate.providers.errors import read_error_body

COMMENT = b": OPENROUTER PROCESSING\n\n"
STREAM = COMMENT + ROLE + token("fo") + token('"usage":{"error"') + FINISH + USAGE + DONE
ANTHROPIC = [
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}\n\n',
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"type":"text","text":""}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":15}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
RESPONSES = [
    b'event: response.created\ndata: {"type":"response.created","response":{"error":null,"usage":null}}\n\n',
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n',
    b'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":4,"output_tokens":2}}}\n\n',
]


def pieces(stream, cuts):
    edges = [0, *sorted(cuts), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


def reference(stream):
    """The data of each event, read line by line as the standard has it (WHATWG HTML 9.2.6)."""
    found, data = [], []
    for line in re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf")):
        name, _, value = line.partition(b":")
        if line and name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line and data:
            found.append(b"\n".join(data))
            data = []
    return found


class Whole(StreamTap):
    """Hands on each event as it becomes whole."""

    def _look(self, event):
        self.heard(event)


LINES = st.sampled_from(
    [
        b"",
        b"",
        b"data: a",
        b"data:b",
        b"data",
        b"data:  c",
        b" data: no",
        b": data",
        b"event: data",
        b"datax: 1",
        b"\xf0\x9f\x98\x80",
    ]
)
SPELT = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12)


@pytest.mark.interpreted  # by a tap of its own kind
@given(SPELT, st.sampled_from([b"", b"\xef\xbb\xbf"]), st.lists(st.integers(0, 200), max_size=6))
def test_se_02_events_are_those_of_a_reference_parser_however_they_are_spelt_and_cut(lines, bom, cuts):
    stream = bom + b"".join(b"".join(pair) for pair in lines) + b"\n\n"
    events, tap = [], Whole()
    tap.heard = events.append
    for piece in pieces(stream, {cut % (len(stream) + 1) for cut in cuts}):
        tap.feed(piece)
    tap.feed(b"\n")  # a CR that was read last waits for what follows
    assert [data for data in map(data_of, events) if data] == [data for data in reference(stream) if data]


@given(st.sets(st.integers(1, len(STREAM) - 1)), st.sampled_from([b"\n", b"\r\n"]))
def test_a_stream_means_the_same_however_it_is_cut(cuts, newline):
    tap = StreamTap()
    for piece in pieces(STREAM, cuts):
        tap.feed(piece.replace(b"\n", newline))
    tap.close()
    assert tap.usage == (9, 3)
    assert tap.finished
    assert tap.begun
    assert tap.failure is None


@pytest.mark.parametrize(
    ("events", "first"),
    [
        ([COMMENT, ROLE, token("a"), DONE], 2),
        ([COMMENT, ROLE, event({"choices": [], "prompt_filter_results": []}), FINISH, DONE], 3),
        ([event({"choices": [{"index": 0, "text": "a"}]}), DONE], 0),
        ([event({"choices": [{"index": 0, "delta": {"tool_calls": [{"id": "t"}]}}]}), DONE], 0),
        ([event({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}), DONE], 0),
        ([ROLE, DONE], 1),
        (ANTHROPIC, 3),
        (RESPONSES, 1),
        ([b"data: no json\n\n"], 0),
    ],
)
def test_the_first_content_is_no_comment_and_no_preamble(events, first):
    tap = StreamTap()
    begun = []
    for payload in events:
        tap.feed(payload)
        begun.append(tap.begun)
    assert begun.index(True) == first


@pytest.mark.parametrize(("events", "usage"), [(ANTHROPIC, (25, 15)), (RESPONSES, (4, 2))])
def test_usage_in_other_dialects(events, usage):
    tap = StreamTap()
    for payload in events:
        tap.feed(payload)
    assert tap.usage == usage
    assert tap.finished


def test_an_error_inside_a_stream_is_no_content():
    tap = StreamTap()
    tap.feed(event({"error": {"message": "overloaded", "type": "server_error", "code": 503}}))
    assert not tap.begun
    assert tap.failure == ("server_error", "503", "overloaded", "")


def test_an_event_without_an_end_is_not_held_for_ever():
    tap = StreamTap()
    for _ in range(200):
        tap.feed(b"data: " + b"x" * 1_000)
    assert len(tap.carry) <= 64 * 1024


class Searched:
    """An end-of-event search that counts the bytes it was given."""

    def __init__(self, pattern):
        self.pattern = pattern
        self.searched = 0

    def finditer(self, data, start):
        self.searched += len(data) - start
        return self.pattern.finditer(data, start)


@pytest.mark.interpreted  # replaces a constant
@pytest.mark.parametrize("size", [1, 16, 1_000])
def test_a_long_event_in_small_pieces_is_searched_once(monkeypatch, size):
    search = Searched(taps.SSE_END)
    monkeypatch.setattr(taps, "SSE_END", search)
    stream = b"data: " + b"x" * 60_000 + b"\n\n" + DONE
    tap = StreamTap()
    for at in range(0, len(stream), size):
        tap.feed(stream[at : at + size])
    assert tap.finished
    assert search.searched <= len(stream) + 3 * -(-len(stream) // size)


@pytest.mark.parametrize(
    ("body", "usage", "failure"),
    [
        (b'{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}', (5, 2), None),
        (b'{"usage":{"prompt_tokens":5,"total_tokens":5}}', (5, 0), None),
        (b'{"usage":{"prompt_tokens":35,"completion_tokens":12,"total_tokens":109}}', (35, 74), None),  # thoughts
        (b'{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":0}}', (5, 2), None),
        (b'{"usage":{"input_tokens":5,"output_tokens":2},"error":null}', (5, 2), None),
        (b'{"usage":null}', NO_USAGE, None),
        (b'{"usage":{"prompt_tokens":"5"}}', ABSURD, None),
        (b'{"usage":{"prompt_tokens":5.5,"completion_tokens":1}}', ABSURD, None),
        (b'{"usage":{"prompt_tokens":-5,"completion_tokens":1,"total_tokens":-4}}', ABSURD, None),
        (b'{"usage":{"input_tokens":5,"output_tokens":-2}}', ABSURD, None),
        (b'{"usage":7,"error":{"message":"m"}}', ABSURD, ("", "", "m", "")),
        (b'{"error":"broken"}', NO_USAGE, ("", "", "broken", "")),
        (b'{"error":{}}', NO_USAGE, None),
        (b"no json", NO_USAGE, None),
        (b"", NO_USAGE, None),
    ],
)
def test_whole_answers(body, usage, failure):
    assert read_answer(body) == (usage, failure)


@pytest.mark.parametrize(
    ("raw", "cached"),
    [
        (b'{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":7}}}', (7, 0)),
        (b'{"usage":{"input_tokens":9,"cache_read_input_tokens":70,"cache_creation_input_tokens": 5}}', (70, 75)),
        (b'{"usage":{"prompt_cache_hit_tokens":3,"prompt_tokens_details":{"cached_tokens":3}}}', (3, 0)),
        (b'{"input":{"cached_tokens":99},"usage":{"prompt_tokens":9}}', NO_CACHE),
        (b'{"usage":{"cached_tokens":"7"}}', NO_CACHE),
        (b"", NO_CACHE),
    ],
)
def test_what_was_read_from_a_cache(raw, cached):
    assert read_cached(raw) == cached
    tap = StreamTap()
    tap.feed(b"data: " + raw + b"\n\n")
    assert tap.cached == cached


def test_the_usage_of_an_answer_too_long_to_hold():
    tail = b'..."usage":{"old":1}},"usage":{"prompt_tokens":5,"completion_tokens":2,"d":{"cached":0}},"x":1}'
    assert read_tail(tail) == (5, 2)
    assert read_tail(b"...") == NO_USAGE


@given(st.binary() | st.text().map(lambda text: b'{"error":' + text.encode() + b"}"))
def test_any_bytes_can_be_read(body):
    read_answer(body)
    read_error_body(body)
    read_tail(body)
    tap = StreamTap()
    tap.feed(b"data: " + body + b"\n\n")
    tap.feed(body)
    tap.close()
