"""Streams that the gate asked to count: the caller gets every byte but the count, the ledger has it."""

import asyncio
import json
from itertools import pairwise

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import DONE, FINISH, LAST, ROLE, STREAM_HEAD, USAGE, event, framed, stage, token, warm
from test_front import TEXT, request
from wires import Bench

from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.gate.injection import Sieve
from swarmgate.gate.peek import peek
from swarmgate.gate.taps import MOST_CARRIED_BYTES, SSE_END

ASK = {"model": "any", "messages": [{"role": "user", "content": "2 + 2?"}]}
COMMENT = b": still here\n\n"
COUNTS = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
KEPT = [
    USAGE,
    event({"choices": [], "usage": COUNTS, "service_tier": "default"}),
    b'id: 7\ndata: { "choices" : [ ], "usage" : { "prompt_tokens" : 9 } }\n\n',
    b'data: {"choices":[],\ndata: "usage":{"prompt_tokens":9}}\n\n',
]
SHOWN = [
    COMMENT,
    ROLE,
    FINISH,
    DONE,
    token("fo"),
    token('"choices":[],"usage":{}'),
    event({"choices": [], "usage": None, "prompt_filter_results": []}),
    event({"choices": [{"index": 0, "delta": {"content": "ur"}}], "usage": COUNTS}),
    event({"choices": [], "usage": COUNTS, "error": {"message": "overloaded"}}),
    event({"usage": COUNTS}),
    b'data: {"choices":[],"usage":{\n\n',
    b'data: "choices":[] "usage":{}}\n\n',
    b"\n\n",
]
EVENTS = st.lists(st.sampled_from(KEPT + SHOWN), max_size=12)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def pieces(stream, cuts):
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[a:b] for a, b in pairwise(edges)]


@given(EVENTS, ENDINGS, st.lists(st.integers(0, 4_000)))
def test_se_01_02_what_goes_on_is_the_stream_without_the_counts_however_it_is_cut(events, ending, cuts):
    spelt = {one: one.replace(b"\n", ending) for one in events}
    sieve, goes_on, stays = Sieve(), b"", b""
    for told in [*map(sieve.feed, pieces(b"".join(spelt[one] for one in events), cuts)), sieve.close()]:
        goes_on, stays = goes_on + told[0], stays + told[1]
    assert goes_on == b"".join(spelt[one] for one in events if one in SHOWN)
    assert stays == b"".join(spelt[one] for one in events if one in KEPT)


@given(st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=2, max_size=2))
def test_an_event_ends_at_any_two_ends_of_lines(two):
    ended = b"data: x" + b"".join(two) + b"data: y"
    is_one_crlf = two == [b"\r", b"\n"]
    assert bool(SSE_END.search(ended)) == (not is_one_crlf)


@pytest.mark.parametrize("size", [777, 16_000, 200_000])
def test_an_event_too_long_to_hold_goes_on_as_it_comes(size):
    long = event({"choices": [], "usage": COUNTS, "padding": "x" * 2 * MOST_CARRIED_BYTES})
    stream, sieve, goes_on = long + USAGE + DONE, Sieve(), b""
    for at in range(0, len(stream), size):
        goes_on += sieve.feed(stream[at : at + size])[0]
        assert len(sieve.carry) <= MOST_CARRIED_BYTES
    assert goes_on == (long if size < MOST_CARRIED_BYTES else b"") + DONE


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("", {"include_usage": True}),
        ("null", {"include_usage": True}),
        ("{}", {"include_usage": True}),
        ('{"include_usage":false,"include_obfuscation":false}', {"include_usage": True, "include_obfuscation": False}),
        ('{"include_usage":null}', {"include_usage": True}),
        ('{"include_usage":true}', None),
        ('{"include_usage":1}', None),
        ('"yes"', None),
        ("[]", None),
    ],
)
def test_what_a_caller_says_of_its_usage_stands(said, sent):
    options = f',"stream_options":{said}' if said else ""
    body = b'{"model":"m","stream":true,"messages":[1.0]%b}' % options.encode()
    peeked = peek(body)
    asked = peeked.counting()
    if sent is None:
        assert asked is None
    else:
        assert json.loads(peeked.sent_as("other", asked)) == json.loads(body) | {
            "stream_options": sent,
            "model": "other",
        }
        assert b'"messages":[1.0]' in peeked.sent_as("", asked)


def started(*, path=b"/v1/chat/completions", provider="generic", **said):
    """A call of which the request has left: the bench, the target's end, what was sent to it."""
    bench = Bench(TEXT.replace("[targets.up]", f'[targets.up]\nprovider = "{provider}"'))
    warm(bench.gate)
    asked = request(body=json.dumps({"model": "fast", "stream": True, "prompt": "hi", **said}).encode())
    bench.client.data_received(asked.replace(b"/v1/chat/completions", path))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    return bench, end, json.loads(b"".join(wire.written).partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    ("asked", "is_injected"),
    [
        ({}, True),
        ({"path": b"/v1/completions"}, True),
        ({"path": b"/v1/responses"}, False),
        ({"path": b"/v1/messages"}, False),
        ({"stream": False}, False),
        ({"provider": "mistral"}, False),
        ({"provider": "openai"}, True),
        ({"stream_options": {"include_usage": True}}, False),
    ],
    ids=str,
)
def test_only_streams_that_would_not_count_are_asked_to(asked, is_injected):
    bench, end, sent = started(**asked)
    assert sent.get("stream_options", {}).get("include_usage", False) == (is_injected or "stream_options" in asked)
    if sent["stream"]:
        end.data_received(STREAM_HEAD + framed(token("a")))
        end.data_received(framed(USAGE))
        assert (USAGE in b"".join(bench.wire.written)) != is_injected


@given(st.lists(st.integers(1, 2_000), max_size=6))
def test_llm_gateways_26_the_caller_gets_whole_events_and_the_ledger_the_count(cuts):
    bench, end, _ = started()
    shown = COMMENT + ROLE + token("fo") + token("ur") + FINISH
    for at, piece in enumerate(pieces(shown + USAGE + DONE, cuts)):
        end.data_received((b"" if at else STREAM_HEAD) + framed(piece))
    end.data_received(LAST)
    chunks = b"".join(bench.wire.written).partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2]
    assert b"".join(chunks) == shown + DONE
    assert all(SSE_END.search(chunk[-4:]) for chunk in chunks if chunk)
    assert bench.ends == ["answered"]
    assert bench.gate.callers.ended[-1][1] == (9, 3)


def test_a_stream_that_breaks_inside_an_event_shows_none_of_it():
    bench, end, _ = started()
    end.data_received(STREAM_HEAD + framed(token("a")))
    end.data_received(framed(token("b")[:20]))
    end.connection_lost(None)
    said = b"".join(bench.wire.written)
    assert framed(token("a")) in said
    assert token("b")[:20] not in said.partition(token("a"))[2]
    assert b'data: {"error":{' in said


def test_a_count_in_the_last_event_without_an_end_is_kept_too():
    bench, end, _ = started()
    end.data_received(STREAM_HEAD + framed(token("a") + DONE))
    end.data_received(framed(USAGE[:-2]) + LAST)
    assert bench.gate.callers.ended[-1][1] == (9, 3)
    assert b"usage" not in b"".join(bench.wire.written)


def test_the_official_sdk_sees_no_count_that_it_did_not_ask_for(monkeypatch):
    facts = []
    monkeypatch.setattr(MemoryJournal, "note", lambda _self, call, _note: facts.append(call.wire.facts()))

    async def play():
        async with stage() as on, openai.AsyncOpenAI(base_url=on.url, api_key="agent", max_retries=0) as client:
            seen = {}
            for options in ({}, {"stream_options": {"include_usage": True}}):
                stream = await client.chat.completions.create(**ASK, stream=True, **options)
                seen[bool(options)] = [chunk.usage async for chunk in stream]
            assert set(seen[False]) == {None}
            assert [usage.total_tokens for usage in seen[True] if usage] == [12]
            assert [hit.said["stream_options"] for hit in on.stand_in.hits] == [{"include_usage": True}] * 2
            assert [(one.prompt_tokens, one.output_tokens) for one in facts] == [(9, 3)] * 2

    asyncio.run(play())


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("sizes", [(90_000,), (70_000, 20_000), (70_000, 20_000, 30_000), (1, 70_000, 1, 1)])
def test_the_count_behind_an_event_too_long_to_hold_is_read(sizes, ending):
    """The rest of the long event goes on, and comes in the same read as the event that stays here."""
    bench, end, _ = started()
    long = token("x" * (sum(sizes) + 100))
    stream = (token("a") + long + USAGE + DONE).replace(b"\n", ending)
    begins = len(token("a").replace(b"\n", ending))
    end.data_received(STREAM_HEAD + framed(stream[:begins]))
    for size in sizes:
        end.data_received(framed(stream[begins : begins + size]))
        begins += size
    end.data_received(framed(stream[begins:]) + LAST)
    assert bench.ends == ["answered"]
    assert bench.gate.callers.ended[-1][1] == (9, 3)
