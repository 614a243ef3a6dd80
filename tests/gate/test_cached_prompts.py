"""Where a provider counts input and output apart, and cached prompts not at all, so does the gate."""

import json

import pytest
from stage import warm, whole
from wires import Bench

from swarmgate.core.histogram import LOOK_EVERY

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
provider = "%s"
keys = { one = "env:KEY" }
key_limits = ["9_000 per 1s", "900_000 tokens per 60s", "300_000 input tokens per 60s", "90_000 output_tokens per 60s"]
"""
CLAUDE = {
    "type": "message",
    "content": [{"type": "text", "text": "four"}],
    "usage": {
        "input_tokens": 300,
        "output_tokens": 40,
        "cache_read_input_tokens": 3_500,
        "cache_creation_input_tokens": 200,
    },
}
GPT = {
    "choices": [{"message": {"content": "four"}}],
    "usage": {"prompt_tokens": 4_000, "completion_tokens": 40, "total_tokens": 4_040}
    | {"prompt_tokens_details": {"cached_tokens": 3_500}},
}
EVENTS = (
    {"type": "message_start", "message": {"usage": CLAUDE["usage"] | {"output_tokens": 1}}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "four"}},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 40}},
    {"type": "message_stop"},
)
PATHS = {"anthropic": "/v1/messages", "groq": "/v1/chat/completions", "openai": "/v1/chat/completions"}


class Talk:
    """Calls with a prompt of 4,000 tokens, one after another, at a gate that was long up."""

    def __init__(self, provider, more=""):
        self.bench = Bench(TEXT % provider + more)
        self.provider = provider
        self.sums = {"tokens": 0, "input": 0, "output": 0}
        warm(self.bench.gate)

    def ask(self, said, *, stream=False, task="", agent="", characters=15_900):
        """One call; what it reserved of each limit, and what it was charged."""
        bench = self.bench
        turns = [{"role": "user", "content": "x" * characters}]
        body = json.dumps({"model": "m", "messages": turns, "max_tokens": 100, "stream": stream}).encode()
        words = "".join(f"x-swarmgate-{k}: {v}\r\n" for k, v in (("task-type", task), ("agent", agent)) if v)
        head = f"POST {PATHS[self.provider]} HTTP/1.1\r\nhost: g\r\n{words}content-length: {len(body)}\r\n\r\n"
        warm(bench.gate)
        bench.client.data_received(head.encode() + body)
        if bench.dialler.dials:
            bench.dialler.succeed()
        taken = self.cells()
        end = bench.dialler.opened[-1][0]
        if stream:
            events = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in said)
            end.data_received(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events)
            end.connection_lost(None)
        else:
            end.data_received(whole(said))
        assert bench.ends[-1:] == ["answered"], bench.bugs
        assert bench.reserved == 0
        return taken, self.cells()

    def cells(self):
        """(level in units, pending) of each limit on tokens."""
        cells = self.bench.gate.store.book.cells
        names = {"tokens": "tokens", "input": "input_tokens", "output": "output_tokens"}
        found = {short: cells[f"up/one: {name} per 60s"] for short, name in names.items()}
        return {short: (cell.level // cell.scale, cell.pending) for short, cell in found.items()}


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_cache_held_is_charged_nowhere(stream):
    taken, charged = Talk("anthropic").ask(EVENTS if stream else CLAUDE, stream=stream)
    prompt = taken["input"][0]
    assert prompt > 3_900  # nothing is known of caches yet
    assert taken == {"tokens": (prompt, 100), "input": (prompt, 0), "output": (0, 100)}
    assert charged["output"] == (40, 0)
    assert charged["input"] == (prompt, 0)  # nothing that was taken comes back ...
    talk = Talk("anthropic")
    for _ in range(LOOK_EVERY):
        talk.ask(EVENTS if stream else CLAUDE, stream=stream, task="chat")
    taken, charged = talk.ask(EVENTS if stream else CLAUDE, stream=stream, task="chat")
    fresh = 500 * prompt // 4_000
    assert fresh <= taken["input"][0] <= fresh * 9 // 8 + 9  # ... but less is taken of the next
    assert taken["input"][0] <= charged["input"][0] <= taken["input"][0] + 60
    assert charged["output"] == (40, 0)
    other, _ = talk.ask(CLAUDE, task="other")
    assert other["input"][0] == prompt


def test_prompts_that_no_cache_holds_any_more_are_charged_whole():
    talk = Talk("anthropic")
    for _ in range(LOOK_EVERY):
        talk.ask(CLAUDE)
    cold = CLAUDE | {"usage": {"input_tokens": 4_000, "output_tokens": 40}}
    _, charged = talk.ask(cold)
    assert charged["input"] == (4_000, 0)
    assert charged["tokens"] == (4_040, 0)


def test_a_prompt_of_which_nobody_says_what_was_cached_is_charged_whole():
    talk = Talk("anthropic")
    for _ in range(LOOK_EVERY):
        talk.ask(CLAUDE)
    before = talk.cells()
    body = json.dumps({"model": "m", "max_tokens": 100, "messages": "x" * 15_900}).encode()
    talk.bench.client.data_received(
        b"POST /v1/messages HTTP/1.1\r\nhost: g\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )
    taken = talk.cells()
    assert taken["input"][0] - before["input"][0] < 600
    talk.bench.client.eof_received()  # whoever learns that little is taken and leaves early must not send for nothing
    assert talk.bench.ends[-1] == "cancelled"
    after = talk.cells()
    assert after["input"][0] - before["input"][0] == 15_902 // 4 + 1
    assert after["tokens"][0] - before["tokens"][0] == 15_902 // 4 + 1 + taken["output"][1]
    assert talk.bench.reserved == 0


def test_a_cache_that_is_written_counts():
    written = CLAUDE | {"usage": CLAUDE["usage"] | {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 9_000}}
    _, charged = Talk("anthropic").ask(written)
    assert charged["input"] == (9_300, 0)


@pytest.mark.parametrize(("provider", "counts"), [("groq", False), ("openai", True)])
def test_whether_cached_prompts_count_is_the_provider_s_rule(provider, counts):
    talk = Talk(provider)
    for _ in range(LOOK_EVERY):
        talk.ask(GPT)
    taken, charged = talk.ask(GPT, characters=100)
    assert charged["output"] == (40, 0)
    assert charged["input"][0] == (4_000 if counts else 500)
    assert taken["input"][0] < 100


def test_a_ladder_with_a_provider_that_counts_all_of_it_takes_all_of_it():
    more = """
    [targets.other]
    base_url = "http://127.0.0.1:10/v1"
    provider = "openrouter"
    keys = { one = "env:KEY" }
    [routes]
    m = ["up/m", "other/m"]
    """
    talk = Talk("anthropic", more)
    for _ in range(LOOK_EVERY):
        talk.ask(CLAUDE)
    taken, _ = talk.ask(CLAUDE)
    assert taken["input"][0] > 3_900


def test_money_is_charged_at_the_prices_of_caches():
    more = """
    [agents]
    limits = ["900 USD per 1d"]
    [prices."up/m"]
    input = 10
    output = 50
    cached = 1
    cache_written = 12.5
    """
    talk = Talk("anthropic", more)
    talk.ask(CLAUDE, agent="a")
    cell = talk.bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert cell.level == 300 * 10 + 40 * 50 + 3_500 * 1 + 200 * 25 // 2


def test_money_is_reserved_at_the_price_of_the_output():
    """OpenAI counts max_tokens with the prompt; they are paid for as output all the same."""
    talk = Talk("openai", '[agents]\nlimits = ["900 USD per 1d"]\n[prices."up/m"]\ninput = 1\noutput = 100\n')
    seen = []
    talk.cells = lambda: seen.append(talk.bench.gate.store.book.cells["agent a: USD per 86400s"].pending)
    talk.ask(GPT, agent="a", characters=100)
    assert 100 * 100 < seen[0] < 100 * 100 + 100
    assert seen[1] == 0
