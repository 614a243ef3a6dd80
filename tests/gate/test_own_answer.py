"""`explain` of what the gate itself said, as a caller of a running gate would paste it."""

import asyncio

import httpx
import pytest
from stage import stage

from swarmgate.core.outcome import Verdict
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.gate.own_answer import own_answer
from swarmgate.gate.understanding import UNTOLD, Answer

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY" }}
limits = ["1_000 per 1s", "900_000 tokens per 60s"]
provider = "openai"

[targets.other]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY" }}
limits = ["1_000 per 1s"]
provider = "anthropic"

[routes]
"m" = "up/m"
"a" = "other/a"
"""
SAID = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
NOW = {"x-swarmgate-wait": "0s"}


def asked(path="/chat/completions", model="m", *, paused=""):
    async def main():
        async with stage(text=TEXT) as running, httpx.AsyncClient(timeout=10, base_url=running.url) as client:
            if paused:
                running.gate.operator.pause(paused)
            return await client.post(path, json=SAID | {"model": model}, headers=NOW)

    return asyncio.run(main())


def pasted(said, *, whole=True):
    headers = tuple((name.lower(), value) for name, value in said.headers.items())
    return Answer(said.status_code, headers, said.content) if whole else Answer(UNTOLD, (), said.content)


@pytest.mark.parametrize(("path", "model", "target"), [("/chat/completions", "m", "up"), ("/messages", "a", "other")])
@pytest.mark.parametrize("whole", [True, False], ids=["with its head", "a body alone"])
def test_a_deferral_says_who_holds_it_up_and_that_waiting_helps(path, model, target, whole):
    said = asked(path, model, paused=target)
    found = own_answer(pasted(said, whole=whole))
    assert said.status_code == 429
    assert found.provider == "swarmgate"
    assert found.outcome.verdict is Verdict.WAIT
    assert found.wait_ms >= 2_000
    assert "paused" in found.reason
    assert f"{target}: requests per 1s" in found.reason
    assert found.readings[0].dimension == f"{target}: requests per 1s"
    assert found.readings[0].limit == 1_000


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
def test_a_refusal_is_one_whoever_sends_it(path):
    found = own_answer(pasted(asked(path, "x")))
    assert found.outcome.verdict is Verdict.REFUSE
    assert "No route has this model" in found.reason
    assert found.wait_ms is None


def test_what_a_target_said_is_the_targets():
    said = asked()
    assert said.status_code == 200
    assert own_answer(pasted(said)) is None
    headers = (("proxy-status", "swarmgate; received-status=429"),)
    body = b'{"error":{"message":"m","code":"policy_rate"}}'
    assert own_answer(Answer(429, headers, body)) is None
    assert own_answer(Answer(429, (), body)) is None, "a status, and no word that it is the gate's"
    for nothing in (b"", b"[]", b'"x"', b'{"error":[]}', b'{"error":{"code":["policy_rate"]}}', b'{"code":1}'):
        assert own_answer(Answer(UNTOLD, (), nothing)) is None


def test_an_error_of_the_last_target_lists_what_was_tried():
    error = {"code": "target_unreachable", "attempts": [{"target": "up", "model": "m", "reason": "target_unreachable"}]}
    found = own_answer(
        Answer(
            502,
            (("proxy-status", "swarmgate; error=connection_refused"),),
            httpx.Response(502, json={"error": error}).content,
        )
    )
    assert found.outcome.verdict is Verdict.FAILED
    assert "up/m: target_unreachable" in found.reason


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_of_ours_has_a_verdict_that_its_beginning_tells(reason):
    body = httpx.Response(400, json={"error": {"code": reason.value, "message": "m"}}).content
    found = own_answer(Answer(UNTOLD, (), body))
    verdicts = {"caller": Verdict.REFUSE, "policy": Verdict.REFUSE, "target": Verdict.FAILED, "gate": Verdict.RETRY}
    assert found.outcome.verdict is verdicts[reason.value.partition("_")[0]]
    assert found.reason.startswith(SENTENCES[reason])
    assert (found.wait_ms is None) is (found.outcome.verdict is not Verdict.RETRY)
