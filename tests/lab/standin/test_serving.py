"""Stand-ins on real sockets, asked by urllib, by the official SDKs, and through their admin port."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import anthropic
import openai
import pytest

from eventually import at_last
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.plan import DEFAULT_PLAN, StandInPlan, load_plan
from swarmgate.lab.standin.serving import StandIns
from swarmgate.lab.standin.witness_log import Left, Seen, read_rows

LIMITS = [[{"kind": "sliding_log", "limit": 6, "window_ms": 60_000}]]
WIDE = [[{"kind": "sliding_log", "limit": 1_000, "window_ms": 60_000}]]


def plan(**more):
    provider = {"name": "p", "dialect": "openai", "keys": 2, "scopes": 2, "limits": WIDE, "latency": "gpt-5.4-nano"}
    return StandInPlan.model_validate({"providers": [provider | more], "seed": 7})


class Ports(dict):
    """Ports by place, and who serves them."""

    running = None


@contextmanager
def serving(told, witness=None):
    """Stand-ins on a loop of their own; gives their ports."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(made):
        return asyncio.run_coroutine_threadsafe(made, loop).result(10)

    async def make():
        return StandIns(loop, told, witness)

    running = do(make())
    try:
        ports = Ports(do(running.start()))
        ports.running = running
        yield ports
    finally:
        do(running.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def call(port, path, body=None, **headers):
    """(status, headers, body) of one request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def hurry(ports, place="p"):
    """Answers in a hundredth of a model's time."""
    trouble(ports, "slow", 1, place)


def ask(port, key=1, words="Answer in 3 tokens.", name="p", **more):
    body = {"model": "m", "messages": [{"role": "user", "content": words}], "user": "a/1"} | more
    return call(port, "/v1/chat/completions", body, Authorization=f"Bearer sk-lab-{name}-{key}")


def test_answers_have_the_length_that_was_asked_for_and_the_witness_saw_them(tmp_path):
    witness = tmp_path / "seen.jsonl"
    with serving(plan(), witness) as ports:
        status, headers, body = ask(ports["p"], words="x" * 400 + "Answer in 25 tokens.")
        said = json.loads(body)
        assert status == 200
        assert said["usage"] == {"prompt_tokens": 107, "completion_tokens": 25, "total_tokens": 132}
        assert len(said["choices"][0]["message"]["content"]) == 100
        assert headers["x-ratelimit-remaining-requests"] == "999"
        assert ask(ports["p"], max_tokens=2)[2].count(b"and so t") == 1
        assert call(ports["p"], "/v1/nothing")[0] == 404
        assert call(ports["p"], "/v1/chat/completions", {"model": 5}, Authorization="Bearer x")[0] == 400
        assert ask(ports["p"], key=3)[0] == 401
    rows = list(read_rows(witness))
    assert [(type(row), row.call, row.tokens) for row in rows[:2]] == [(Seen, "a/1", 107), (Left, "a/1", 25)]
    assert len(rows) == 4


def test_each_scope_has_limits_of_its_own():
    with serving(plan(limits=LIMITS)) as ports:
        hurry(ports)
        assert [ask(ports["p"])[0] for _ in range(7)] == [200] * 6 + [429]
        assert ask(ports["p"], key=2)[0] == 200


def test_the_official_sdks_understand_both_dialects():
    told = plan(limits=LIMITS)
    other = told.providers[0].model_copy(update={"name": "q", "dialect": "anthropic"})
    with serving(told.model_copy(update={"providers": (*told.providers, other)})) as ports:
        hurry(ports)
        hurry(ports, "q")
        first = openai.OpenAI(base_url=f"http://127.0.0.1:{ports['p']}/v1", api_key="sk-lab-p-1", max_retries=0)
        question = [{"role": "user", "content": "Answer in 12 tokens."}]
        with first:
            parts = list(first.chat.completions.create(model="m", messages=question, stream=True))
            assert len("".join(p.choices[0].delta.content or "" for p in parts)) == 48
            assert first.chat.completions.create(model="m", messages=question).usage.completion_tokens == 12
            for _ in range(4):
                first.chat.completions.create(model="m", messages=question)
            with pytest.raises(openai.RateLimitError):
                first.chat.completions.create(model="m", messages=question)
        second = anthropic.Anthropic(base_url=f"http://127.0.0.1:{ports['q']}", api_key="sk-lab-q-1", max_retries=0)
        with second:
            with second.messages.stream(model="m", max_tokens=50, messages=question) as stream:
                final = stream.get_final_message()
            assert (len(final.content[0].text), final.usage.output_tokens) == (48, 12)
            for _ in range(5):
                second.messages.create(model="m", max_tokens=50, messages=question)
            with pytest.raises(anthropic.RateLimitError):
                second.messages.create(model="m", max_tokens=50, messages=question)


def trouble(ports, kind, amount, place="p", for_ms=60_000):
    said = {"kind": kind, "place": place, "for_ms": for_ms, "amount": amount}
    status, _, body = call(ports["admin"], "/lab/trouble", said)
    return status, json.loads(body)


@pytest.mark.parametrize(
    ("kind", "amount", "status", "word"),
    [
        ("brownout", 1_000, 503, "overloaded"),
        ("capacity", 1_000, 429, "capacity exceeded"),
        ("dead_key", 1, 401, "invalid_api_key"),
        ("no_money", 1, 429, "insufficient_quota"),
        ("daily", 1, 429, "86400 seconds"),
    ],
)
def test_trouble_on_command(kind, amount, status, word):
    with serving(plan()) as ports:
        assert trouble(ports, kind, amount)[0] == 200
        told, _, body = ask(ports["p"])
        assert told == status
        assert word in body.decode()
        if kind in {"dead_key", "no_money", "daily"}:
            assert ask(ports["p"], key=2)[0] == 200


def test_streams_break_off_and_end_in_errors():
    with serving(plan()) as ports:
        trouble(ports, "overload", 1_000)
        status, _, body = ask(ports["p"], words="Answer in 40 tokens.", stream=True)
        assert status == 200
        assert b"server_is_overloaded" in body
        assert b"[DONE]" not in body
    with serving(plan()) as ports:
        trouble(ports, "cut", 1_000)
        with pytest.raises(Exception, match=r"IncompleteRead|reset"):
            ask(ports["p"], words="Answer in 40 tokens.", stream=True)


def test_limits_shrink_on_command_and_come_back():
    with serving(plan(limits=LIMITS)) as ports:
        hurry(ports)
        trouble(ports, "shrink", 17)
        assert [ask(ports["p"])[0] for _ in range(2)] == [200, 429]
        all_of_it = ports.running.troubles.all
        all_of_it[:] = [one._replace(until_ms=0) for one in all_of_it]  # its time is over
        at_last(lambda: not json.loads(call(ports["admin"], "/lab/state")[2])["trouble"])
        assert [ask(ports["p"])[0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "flood", "place": "p", "for_ms": 1, "amount": 1},
        {"kind": "stall", "place": "nowhere", "for_ms": 1},
        {"kind": "stall", "place": "p", "for_ms": 0},
        {"kind": "cut", "place": "p", "for_ms": 1, "amount": 1_001},
        {"kind": "cut", "place": "p", "for_ms": 1, "amount": "all"},
        {"kind": "cut", "place": "p", "for_ms": 10**9, "amount": 5},
    ],
)
def test_trouble_that_cannot_be_is_refused(said):
    with serving(plan()) as ports:
        status, _, body = call(ports["admin"], "/lab/trouble", said)
        assert status == 400
        assert json.loads(body)["error"]
        assert json.loads(call(ports["admin"], "/lab/state")[2])["trouble"] == []


def test_hosts_have_limits_by_name_and_say_no_in_their_own_way(tmp_path):
    slow = {"limits": [{"kind": "sliding_log", "limit": 2, "window_ms": 60_000}]}
    hosts = {"a.org": slow | {"refusal": "429"}, "b.org": slow | {"refusal": "503"}, "c.org": slow | {"refusal": "403"}}
    told = StandInPlan.model_validate({"hosts": hosts, "web_ports": [0, 0]})
    with serving(told, tmp_path / "seen.jsonl") as ports:
        for name, status in (("a.org", 429), ("b.org", 503), ("c.org", 403)):
            answers = [call(ports[f"web-{1 + n % 2}"], "/x", Host=name) for n in range(3)]
            assert [answer[0] for answer in answers] == [200, 200, status]
        assert "retry-after" in {key.lower() for key in answers[-1][1]}
        assert call(ports["web-1"], "/", Host="unheard-of.example")[0] == 200
    assert {row.scope for row in read_rows(tmp_path / "seen.jsonl")} == {
        "a.org",
        "b.org",
        "c.org",
        "unheard-of.example",
    }


def test_a_taken_port_is_named():
    with serving(plan()) as ports, pytest.raises(LabError, match=f"port {ports['p']}"), serving(plan(port=ports["p"])):
        pass


def test_a_taken_port_may_be_another_if_the_plan_says_so():
    with serving(plan()) as first:
        told = plan(port=first["p"]).model_copy(update={"else_free": True})
        with serving(told) as second:
            assert second["p"] not in {0, first["p"]}
            assert ask(second["p"])


def test_plans_are_read_and_their_mistakes_named(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(DEFAULT_PLAN.model_dump_json())
    assert load_plan(path) == DEFAULT_PLAN
    path.write_text('{"providers": [{"name": "p", "dialect": "latin", "limits": [[]]}]}')
    with pytest.raises(LabError, match="dialect"):
        load_plan(path)
