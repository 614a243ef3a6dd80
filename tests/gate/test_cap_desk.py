"""Caps before the gate: who asks too often is held back alone, and everything that was taken is given back."""

import json

import pytest
from stage import UNARY, warm, whole
from wires import Bench

from swarmgate.config import parse
from swarmgate.config.problems import FileError

TARGET = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY", two = "env:KEY" }
key_limits = ["900000000 per 1s", "900000000 tokens per 1s"]
"""
ANSWER = whole(UNARY)


class Caller:
    """Agents that ask one after another at the same gate."""

    def __init__(self, text):
        self.bench = Bench(TARGET + text)
        warm(self.bench.gate)
        self._connected = False

    def ask(self, agent="", messages=(), **said):
        """The status of one call that does not wait, and what it says."""
        said = {"wait": "0s", "agent": agent} | said
        words = "".join(f"x-swarmgate-{name.replace('_', '-')}: {word}\r\n" for name, word in said.items() if word)
        body = json.dumps({"model": "m", "messages": list(messages), "max_tokens": 10}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{words}content-length: {len(body)}\r\n\r\n"
        bench, before = self.bench, len(self.bench.wire.written)
        bench.client.data_received(head.encode() + body)
        if bench.dialler.dials:
            bench.dialler.succeed()
        if len(bench.wire.written) == before:
            bench.dialler.opened[-1][0].data_received(ANSWER)
        answer = b"".join(bench.wire.written[before:])
        head, _, body = answer.partition(b"\r\n\r\n")
        assert bench.bugs == []
        return int(head.split()[1]), json.loads(body)


def blocking(said):
    return [one["budget"] for one in said["error"]["deferral"]["blocking"]]


def test_llm_gateways_9_an_agent_that_asks_too_often_is_held_back_alone():
    caller = Caller('[agents]\nlimits = ["2 per 1s"]\n')
    assert [caller.ask("a")[0] for _ in range(3)] == [200, 200, 429]
    status, said = caller.ask("a")
    assert (status, blocking(said)) == (429, ["agent a: requests per 1s"])
    assert caller.ask("b")[0] == 200
    assert [caller.ask()[0] for _ in range(5)] == [200] * 5  # nobody in particular
    caller.bench.pass_time(1_100)
    assert caller.ask("a")[0] == 200
    assert caller.bench.reserved == 0


TEAMS = """
[teams.biology]
agents = ["bio-*"]
limits = ["3 per 60s"]
[teams.rest]
agents = ["*"]
"""


def test_a_team_has_its_caps():
    caller = Caller(TEAMS)
    assert [caller.ask(f"bio-{number}")[0] for number in range(4)] == [200, 200, 200, 429]
    assert blocking(caller.ask("bio-9")[1]) == ["team biology: requests per 60s"]
    assert caller.ask("else")[0] == 200


def test_no_team_has_a_target_for_itself():
    caller = Caller('limits = ["5 per 1s"]\n' + TEAMS)
    assert [caller.ask()[0] for _ in range(4)] == [200] * 4
    assert blocking(caller.ask()[1]) == ["team rest at up: share of requests per 1s"]
    assert caller.ask("bio-1")[0] == 200


def test_llm_gateways_30_tokens_and_places_come_back():
    caller = Caller('[agents]\nlimits = ["100 tokens per 60s", "1 concurrent"]\nlargest_tokens = 50\n')
    # each costs 12: 1 that was guessed of the prompt, 8 more of it, 3 of output; at 96 the next still fits by its guess
    assert [caller.ask("a")[0] for _ in range(9)] == [200] * 9
    status, said = caller.ask("a")
    assert (status, blocking(said)) == (429, ["agent a: tokens per 60s"])
    assert caller.bench.reserved == 0


def test_a_task_type_has_its_caps_and_its_ceiling():
    caller = Caller('[task_types.literature]\ncontext = 100\nlimits = ["2 per 60s"]\n')
    assert [caller.ask(task_type="literature")[0] for _ in range(3)] == [200, 200, 429]
    assert caller.ask(task_type="other")[0] == 200
    long = [{"role": "user", "content": "x" * 1_000}]
    status, said = caller.ask(task_type="literature", messages=long)
    assert (status, said["error"]["code"]) == (413, "policy_context_ceiling")
    assert "'literature' reads at most 100 tokens" in said["error"]["message"]
    assert 'have it compressed (over = "compress"' in said["error"]["message"]
    assert caller.ask(messages=long)[0] == 200


PRICE = '[prices."up/m"]\ninput = 1_000\noutput = 2_000\n'  # 9 of prompt and 3 of output cost 15,000 micro-dollars


def test_llm_gateways_37_money_is_charged_as_the_target_counts():
    caller = Caller('[agents]\nlimits = ["0.05 USD per 1d"]\n' + PRICE)
    assert [caller.ask("a")[0] for _ in range(3)] == [200] * 3
    cell = caller.bench.gate.store.book.cells["agent a: USD per 86400s"]
    assert (cell.level, cell.pending) == (45_000, 0)
    status, said = caller.ask("a")  # would cost 1,000 for the prompt and 6,000 for 3 tokens of output
    assert (status, blocking(said)) == (429, ["agent a: USD per 86400s"])
    assert caller.ask("b")[0] == caller.ask()[0] == 200
    assert caller.bench.reserved == 0


def test_an_unknown_price_is_refused_where_money_is_capped():
    caller = Caller('[agents]\nlimits = ["5 USD per 1d"]\n')
    status, said = caller.ask("a")
    assert (status, said["error"]["code"]) == (403, "policy_price_unknown")
    assert caller.ask()[0] == 200  # nobody in particular has no cap
    assert caller.bench.reserved == 0


def test_one_team_alone_has_no_share():
    caller = Caller('limits = ["5 per 60s"]\n[teams.all]\nagents = ["*"]\n')
    assert [caller.ask()[0] for _ in range(6)] == [200] * 5 + [429]


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ('[agents]\nlimits = "2 per 1s"\n', "agents.limits", "is no list; write"),
        ('[agents]\nlimits = ["2 per 1s", "9 tokens per 1s"]\n', "agents.limits[1]", "largest_tokens"),
        ('[teams.a]\nlimits = ["2 per 1s"]\n', "teams.a.agents", "is missing"),
        ("[teams.a]\nagents = []\n", "teams.a.agents", "must not be empty"),
        ('[teams.a]\nagents = ["*"]\nshar = 3\n', "teams.a.shar", "nearest is 'share'"),
        ('[task_types.a]\nover = "compres"\n', "task_types.a.over", "nearest is 'compress'"),
        ('[agents]\nlimits = ["2.5 per 1s"]\n', "agents.limits[0]", "only money has fractions"),
        ('[agents]\nlimits = ["2 EUR per 1d"]\n', "agents.limits[0]", "no unit"),
        ('[environments.a]\nagents = ["*"]\nreserve = 60\n', "environments.a.reserve", "50"),
    ],
)
def test_mistakes(text, field, reason):
    with pytest.raises(FileError) as caught:
        parse(TARGET + text, {"KEY": "sk-1"})
    assert (caught.value.field, reason in caught.value.reason) == (field, True)
