"""A prompt beyond its ceiling: a summary by a call of its own, once in many turns; who leaves meanwhile leaves it too."""

import json
import random
import re
from collections import Counter

import pytest
from stage import LAST, UNARY, framed, warm, whole
from test_hostile_targets import PAGE
from wires import Bench, Wire

from swarmgate.core.errors import BadInput
from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.compress import MOST_SUMMARY_BYTES
from swarmgate.gate.peek import peek
from swarmgate.gate.service import Door
from swarmgate.gate.turns import read_conversation, summary_in

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
key_limits = ["900000000 tokens per 1s"]
[task_types.literature]
context = 4_000
over = "compress"
"""
SUMMARY = UNARY | {"choices": [{"index": 0, "message": {"role": "assistant", "content": "They met."}}]}


def turn(role, text="x" * 1_000, **more):
    return {"role": role, "content": text} | more


STORY = [
    turn("system", "be brief"),
    turn("user"),
    turn("assistant", tool_calls=[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
    turn("tool", tool_call_id="c1"),
    *[turn("user" if at % 2 else "assistant") for at in range(18)],
]


class Conversation:
    """One agent that sends its whole story with each turn."""

    def __init__(self, text=TEXT):
        self.bench = Bench(text)
        warm(self.bench.gate)

    def ask(self, story, task_type="literature", path="chat/completions", **words):
        words = {"task-type": task_type} | {name.replace("_", "-"): word for name, word in words.items()}
        said = "".join(f"x-swarmgate-{name}: {word}\r\n" for name, word in words.items() if word)
        body = json.dumps({"model": "m", "messages": story}).encode()
        head = f"POST /v1/{path} HTTP/1.1\r\nhost: g\r\n{said}content-length: {len(body)}\r\n\r\n".encode()
        self.before = len(self.bench.wire.written)
        self.bench.client.data_received(head + body)
        if self.bench.dialler.dials:
            self.bench.dialler.succeed()

    def sent(self):
        """What the target was asked last."""
        _, _, body = self.bench.dialler.opened[-1][1].written[-1].partition(b"\r\n\r\n")
        return json.loads(body)["messages"]

    def answer(self, said, status="200 OK"):
        self.bench.dialler.opened[-1][0].data_received(whole(said, status))
        assert self.bench.bugs == []

    def heard(self):
        head, _, body = b"".join(self.bench.wire.written[self.before :]).partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


def test_a_summary_is_made_once_in_many_turns():
    agent = Conversation()
    agent.ask(STORY)
    asking = agent.sent()
    assert asking[0]["content"].startswith("Summarise")
    assert '"tool_call_id"' in asking[1]["content"]
    agent.answer(SUMMARY)
    kept = agent.sent()
    assert kept[0] == STORY[0]
    assert kept[1]["content"] == "Summary of the conversation up to here:\nThey met."
    assert kept[2:] == STORY[-len(kept[2:]) :]
    assert len(json.dumps(kept)) // 4 < 2_000
    agent.answer(UNARY)
    assert agent.heard()[0] == 200
    longer = [*STORY, turn("assistant"), turn("user")]
    agent.ask(longer)
    assert agent.sent() == [*kept, *longer[-2:]]  # the same summary
    agent.answer(UNARY)
    assert agent.bench.ends == ["answered"] * 3
    assert agent.bench.reserved == 0


def test_up_06_a_summary_without_end_is_not_held():
    agent = Conversation()
    agent.ask(STORY)
    end, _ = agent.bench.dialler.opened[-1]
    end.data_received(PAGE + framed(b"{"))
    for _ in range(30):
        end.data_received(framed(b" " * 100_000))
    (attempt,) = agent.bench.gate.exchanges.live
    assert sum(map(len, attempt.call.client.end._body)) <= MOST_SUMMARY_BYTES
    end.data_received(LAST)
    status, said = agent.heard()
    assert (status, said["error"]["code"]) == (413, "policy_context_ceiling")
    assert "the model gave no summary" in said["error"]["message"]


def test_ti_03_08_no_team_gets_what_was_written_for_another():
    agent = Conversation()
    keys = {key_hash(f"sgk_{team}", b"p"): Scope(team, team) for team in ("red", "blue")}
    agent.bench.gate.ask_for_keys(required=True).replace(b"p", keys)
    written = {"red": "RED-CANARY", "blue": "BLUE-CANARY"}
    for team, words in written.items():
        agent.ask(STORY, key=f"sgk_{team}")
        assert agent.sent()[0]["content"].startswith("Summarise"), "a summary of its own"
        agent.answer({"choices": [{"index": 0, "message": {"role": "assistant", "content": words}}]})
        agent.answer(UNARY)
    for team, words in written.items():
        agent.ask(STORY, key=f"sgk_{team}")
        assert agent.sent()[1]["content"].endswith(words)
        agent.answer(UNARY)


NAMED = re.compile(r"canary-([\w-]+)\.")


class Crowd:
    """Agents of two teams, each with its canary in every turn; they send at once, and answers come back in any order."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.bench = Conversation().bench
        keys = {key_hash(f"sgk_{team}", b"p"): Scope(team, team) for team in ("red", "blue")}
        self.bench.gate.ask_for_keys(required=True).replace(b"p", keys)
        self.agents = [f"{team}-{number}" for team in ("red", "blue") for number in range(12)]
        self.summaries = Counter()

    def say(self, turns, *, leaving=0):
        """Everybody sends so many turns, and some leave; what each heard."""
        bench, wires, doors = self.bench, {}, {}
        for agent in self.agents:
            wires[agent], doors[agent] = Wire(), Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100)
            doors[agent].connection_made(wires[agent])
            story = [turn("user" if at % 2 else "assistant", f"canary-{agent}. " * 90) for at in range(turns)]
            body = json.dumps({"model": "m", "messages": [STORY[0], *story]}).encode()
            words = f"x-swarmgate-key: sgk_{agent.partition('-')[0]}\r\nx-swarmgate-task-type: literature\r\n"
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{words}content-length: {len(body)}\r\n\r\n"
            doors[agent].data_received(head.encode() + body)
        for agent in self.chance.sample(self.agents, leaving):
            doors[agent].connection_lost(None)
            del wires[agent]
        self.answer()
        return {agent: b"".join(wire.written).decode() for agent, wire in wires.items()}

    def answer(self):
        """The target answers each request, and finds one agent's words in it; one summary in five is none."""
        bench = self.bench
        while bench.dialler.dials or (asked := [pair for pair in bench.dialler.opened if pair[1].written]):
            while bench.dialler.dials:
                bench.dialler.succeed()
            asked = [pair for pair in bench.dialler.opened if pair[1].written]
            end, wire = self.chance.choice(asked)
            text = b"".join(wire.written).decode()
            wire.written.clear()
            (agent,) = set(NAMED.findall(text))
            is_summary = "Summarise" in text
            self.summaries[agent] += is_summary
            said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"canary-{agent}."}}]}
            end.data_received(whole({"choices": []} if is_summary and self.chance.random() < 0.2 else UNARY | said))


@pytest.mark.parametrize("seed", range(3))
def test_ti_08_many_agents_at_once_have_their_own_text_only(seed):
    crowd = Crowd(seed)
    first = crowd.say(20, leaving=5)
    second = crowd.say(22)
    assert (len(first), len(second)) == (19, 24)
    for heard in (first, second):
        assert all(set(NAMED.findall(text)) <= {agent} for agent, text in heard.items())
        statuses = Counter(text.split()[1] for text in heard.values())
        assert statuses.keys() <= {"200", "413"}  # where there was no summary
        assert statuses["200"] > statuses["413"]
    assert 1 in crowd.summaries.values()  # a second turn is served by the first one's summary
    assert crowd.bench.reserved == 0
    assert not crowd.bench.bugs


def test_without_a_task_type_nothing_is_cut():
    agent = Conversation()
    agent.ask(STORY, task_type="")
    assert agent.sent() == STORY
    agent.answer(UNARY)


def test_what_no_summary_can_shorten_is_refused():
    agent = Conversation()
    agent.ask([turn("system", "x" * 16_000), *STORY[1:]])
    assert (agent.heard()[0], agent.heard()[1]["error"]["code"]) == (413, "policy_context_ceiling")
    agent.ask(STORY, path="responses")
    assert agent.heard()[0] == 413
    agent.ask(["no message"] * 9)
    assert agent.bench.ends == ["refused"] * 2  # they have an end that `why` shows


def test_the_trouble_of_the_child_is_the_callers():
    agent = Conversation(TEXT + '[agents]\nlimits = ["1 per 60s"]\n')
    agent.ask(STORY, agent="a", wait="0s")
    agent.answer(SUMMARY)  # the child took the agent's one call
    status, said = agent.heard()
    assert (status, said["error"]["deferral"]["blocking"][0]["budget"]) == (429, "agent a: requests per 60s")
    agent.ask(STORY, agent="b", wait="0s")  # the summary is known by now
    assert agent.sent()[1]["content"].startswith("Summary")
    agent.answer(UNARY)
    assert agent.bench.reserved == 0


LONG = turn("system", "x" * 9_000)
CALLED = turn("assistant", tool_calls=[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}])


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ([LONG, LONG, *STORY[1:]], r"Compressing was tried: with a summary .* it still has about \d{4} \("),
        ([turn("user", "x" * 9_000)] * 4, r"Compressing was tried: no message may give way \(system .*last 4"),
        ([turn("user", "x" * 19_000), CALLED, turn("tool", tool_call_id="c1")], "Compressing was tried: no message"),
        ([turn("user", "x")] * 5_000, "Compressing was tried: this is no conversation of at most 4096 messages"),
    ],
)
def test_what_cannot_be_made_short_enough_is_told_so(story, words):
    agent = Conversation()
    agent.ask(story)
    status, said = agent.heard()
    assert (status, said["error"]["code"]) == (413, "policy_context_ceiling")
    assert re.search(
        "'literature' reads at most 4000 tokens; this prompt has about .*" + words, said["error"]["message"]
    )
    assert (agent.bench.ends, agent.bench.dialler.opened) == (["refused"], [])


def test_a_summary_that_is_none():
    agent = Conversation()
    agent.ask(STORY)
    agent.answer({"choices": []})
    assert agent.heard()[0] == 413
    assert "Compressing was tried: the model gave no summary." in agent.heard()[1]["error"]["message"]
    assert agent.bench.reserved == 0


@pytest.mark.parametrize(
    "body", [b'{"choices":' * 3_000 + b"1" + b"}" * 3_000, b'{"choices":[{"message":"\xff"}]}', b"{}", b"[]"]
)
def test_an_answer_that_holds_no_summary_in_any_form_is_none(body):
    assert summary_in(body) == ""


def test_who_leaves_leaves_the_child():
    agent = Conversation()
    agent.ask(STORY)
    agent.bench.client.connection_lost(None)
    assert agent.bench.ends == ["cancelled"]
    assert agent.bench.reserved == 0


def test_messages_that_are_none_are_told_before_they_are_all_read():
    body = b'{"model":"m","messages":[%b1]}' % (b"1," * 1_000_000)
    with pytest.raises(BadInput, match="no list of messages"):
        read_conversation(peek(body), b"/v1/chat/completions")
