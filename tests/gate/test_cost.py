"""What one call costs in Python calls: the budget of the hot path (design 3), counted without sockets."""

from pathlib import Path

import pytest
from stage import DONE, LAST, STREAM_HEAD, UNARY, framed, token, warm, whole
from wires import Bench

from python_calls import entered
from swarmgate.core.scope import Scope, key_hash

HERE = str(Path(__file__).parent)
UNARY_CALLS = 116  # of them up to four where caps begin a slice, and one where a share of the last seconds moves on
CHUNK_CALLS = 6
DEFERRED_CALLS = 230  # of a caller that is sent away; it comes back, so it must not cost much more than an answer
SERVED = 21
KEY_CALLS = (
    16  # on top, of a caller with an agent key: who it is, what it may, and its own caps, of which one begins a slice
)
READING_CALLS = 26  # on top, four times a second per key
HEAD_CALLS = 16  # on top, of a head whose lines the target has not sent before on this connection
KEYS = ", ".join(f'k{number} = "env:KEY"' for number in range(20))
TEXT = f"""
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = {{ {KEYS} }}
key_limits = ["900000000 per 1s", "900000000 tokens per 1s"]
"""


CAPS = """
[agents]
limits = ["1000000 per 1s", "900000000 tokens per 60s", "100 concurrent"]

[teams.biology]
agents = ["bio-*"]
limits = ["1000000 per 1s", "900000000 tokens per 60s"]

[teams.rest]
agents = ["*"]
"""


COUNTED = b',"stream_options":{"include_usage":true}'


def ask(*, stream, words=b"", options=b""):
    body = b'{"model":"m","stream":%b%b,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}' % (stream, options)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n"
    return head + b"authorization: Bearer agent\r\n%bcontent-length: %d\r\n\r\n%b" % (words, len(body), body)


def counted(act):
    """How many Python functions `act` enters, the lambdas of named tuples included."""
    codes = entered(act)
    return [
        code.co_qualname for code in codes if not code.co_filename.startswith(HERE)
    ]  # stand-ins are C in a running gate


def ready(text=TEXT, asked=None, scope=None):
    """A gate that has served a call with each of its keys on its kept connection; `scope` = that of the only agent key."""
    bench = Bench(text)
    warm(bench.gate)
    if scope is not None:
        bench.gate.ask_for_keys(required=True).replace(b"p", {key_hash("sgk_1_x", b"p"): scope})
        bench.gate.cap_callers()
    for _ in range(SERVED):
        bench.client.data_received(asked or ask(stream=b"false"))
        if bench.dialler.dials:
            bench.dialler.succeed()
        end, _ = bench.dialler.opened[0]
        end.data_received(whole(UNARY))
    assert bench.ends == ["answered"] * SERVED
    return bench, end


def unary(bench, end, asked, answered):
    def call():
        bench.client.data_received(asked)
        end.data_received(answered)

    return counted(call)


@pytest.mark.parametrize("text", [TEXT, TEXT + CAPS], ids=["plain", "capped"])
def test_a_unary_call(text):
    words = b"" if text is TEXT else b"x-swarmgate-agent: bio-7\r\nx-swarmgate-task-type: literature\r\n"
    asked = ask(stream=b"false", words=words)
    bench, end = ready(text, asked)
    bench.pass_time(1)
    calls = unary(bench, end, asked, whole(UNARY))
    assert bench.ends == ["answered"] * (SERVED + 1)
    assert bench.dialler.dials == []
    assert len(calls) <= UNARY_CALLS, f"{len(calls)}: {sorted(calls)}"


KEYED = Scope("1", "biology", limits=("1000000 per 1s", "900000000 tokens per 60s"), capped_as="1")


@pytest.mark.parametrize("scope", [Scope("1", "biology"), KEYED], ids=["key", "key with caps"])
@pytest.mark.parametrize("text", [TEXT, TEXT + CAPS], ids=["plain", "capped"])
def test_a_unary_call_with_an_agent_key(text, scope):
    asked = ask(stream=b"false", words=b"x-swarmgate-agent: bio-7\r\nx-swarmgate-key: sgk_1_x\r\n")
    bench, end = ready(text, asked, scope)
    bench.pass_time(1)
    calls = unary(bench, end, asked, whole(UNARY))
    assert bench.ends == ["answered"] * (SERVED + 1)
    assert len(calls) <= UNARY_CALLS + KEY_CALLS, f"{len(calls)}: {sorted(calls)}"


def test_a_unary_call_whose_answer_says_what_is_left():
    """What is left is read four times a second per key: now and then a call costs more, the others next to nothing."""
    rates = "date: Mon, 21 Sep 2026 14:13:20 GMT\r\n" + "".join(
        f"x-ratelimit-limit-{what}: 9000\r\nx-ratelimit-remaining-{what}: 8000\r\nx-ratelimit-reset-{what}: 6m0s\r\n"
        for what in ("tokens", "requests")
    )
    bench, end = ready()
    bench.pass_time(1)
    without = len(unary(bench, end, ask(stream=b"false"), whole(UNARY)))
    answered = whole(UNARY, extra=rates)
    read = [len(unary(bench, end, ask(stream=b"false"), answered)) for _ in range(40)]  # two turns of twenty keys
    assert read[0] <= without + READING_CALLS + HEAD_CALLS
    assert max(read[1:20]) <= without + READING_CALLS
    assert max(read[20:]) <= without + 8


@pytest.mark.parametrize("options", [COUNTED, b""], ids=["asked for", "injected"])
def test_a_relayed_chunk(options):
    bench, end = ready()
    bench.client.data_received(ask(stream=b"true", options=options))
    end.data_received(STREAM_HEAD + framed(token("a")))
    chunk = framed(token("b"))
    calls = counted(lambda: end.data_received(chunk))
    assert bench.wire.written[-1] == chunk
    assert len(calls) <= CHUNK_CALLS, calls
    end.data_received(framed(DONE) + LAST)
    assert bench.ends == ["answered"] * (SERVED + 1)


@pytest.mark.parametrize("scarce", ["key_limits", "agents"])
def test_a_call_that_is_sent_away(scarce):
    """What blocks it blocks it at every key; twenty keys with eight budgets each are looked at once."""
    text = (TEXT + CAPS).replace("1000000 per 1s", "5 per 60s", 1)
    if scarce == "key_limits":
        text = TEXT.replace("key_limits", 'limits = ["15 per 60s"]\nkey_limits') + CAPS
    bench = Bench(text)
    warm(bench.gate)
    asked = ask(stream=b"false", words=b"x-swarmgate-agent: bio-7\r\nx-swarmgate-wait: 0s\r\n")
    while bench.ends.count("deferred") < SERVED:
        bench.client.data_received(asked)
        if bench.dialler.dials:
            bench.dialler.succeed()
        if bench.gate.pump.open:
            bench.dialler.opened[0][0].data_received(whole(UNARY))
    bench.pass_time(1)
    calls = counted(lambda: bench.client.data_received(asked))
    assert bench.ends.count("deferred") == SERVED + 1
    assert len(calls) <= DEFERRED_CALLS, f"{len(calls)}: {sorted(calls)}"
