"""Names that agents make up: where they may not lead, what is told of them, and how many may be looked up."""

import asyncio

from outside import stage

from swarmgate.gate.lookups import Found


def run(act):
    async def whole_run():
        async with stage() as on:
            return await act(on)

    return asyncio.run(whole_run())


def test_a_name_that_leads_inside_is_refused_at_the_dial():
    async def act(on):
        on.gate.egress.resolver._asking._look_up = lambda _name: Found(("10.0.0.1",))
        return await on.get("http://evil.example/"), on.ends

    answer, ends = run(act)
    assert (answer.status, answer.said["code"], ends) == (403, "policy_address", ["refused"])


def test_a_name_that_is_not_there_is_told_at_once_and_tried_once():
    async def act(on):
        on.gate.egress.resolver._asking._look_up = lambda _name: Found(())
        return await on.get("http://invented.example/"), on.gate.egress.resolver.lookups, on.ends

    answer, lookups, ends = run(act)
    assert (answer.status, answer.said["code"], lookups, ends) == (502, "target_no_such_name", 1, ["failed"])
    assert "error=dns_error" in answer.headers["proxy-status"]


def test_an_agent_that_invents_names_is_deferred_and_told_apart():
    async def act(on):
        on.gate.egress.resolver._asking._look_up = lambda _name: Found(())
        answers = [await on.get(f"http://n{number}.evil.example/", x_swarmgate_agent="a1") for number in range(70)]
        deferred = [
            entry for entry in on.gate.journal.entries if getattr(entry.noted, "reason", None) == "policy_names"
        ]
        return answers, on.gate.egress.resolver.lookups, len(deferred)

    answers, lookups, deferred = run(act)
    assert {(one.status, one.said["code"]) for one in answers[:64]} == {(502, "target_no_such_name")}
    assert {(one.status, one.said["code"]) for one in answers[64:]} == {(429, "policy_names")}
    assert answers[-1].said["deferral"]["not_before_ms"] > 0
    assert (lookups, deferred) == (64, 6)
