"""
Deep-research tasks on real sockets: every URL fetched once, no host asked faster than it takes, by witnesses of their own.

Each task is an agent that knows nothing of limits: what is deferred it puts aside until `not_before`, and goes on elsewhere.
Hosts without a published limit take one request a second. All speak http here; TLS is tested elsewhere.
"""

import asyncio
import heapq
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from outside import Caller, World, to, warm, whole

from swarmgate import config, wiring
from swarmgate.core.compiler import Unit
from swarmgate.core.target import parse_target
from swarmgate.core.target_policy import judge
from swarmgate.lab.limiters import SlidingLog
from swarmgate.wiring.egress import policy_table

SAMPLE = Path(__file__).parents[2] / "data/research_tasks.json"
ALL = Path(__file__).parents[4] / "shared/data/egress/deep_research_task_urls.jsonl"


def limits_of(url):
    """What the host of a URL publishes for it, as (name, amount, window_ms); one request a second if nothing."""
    judged = judge(POLICIES, url.target.host, "GET", url.path)
    told = [one for one in judged.policy.budgets.get(judged.path_class, ()) if one.unit is Unit.REQUESTS]
    found = [(one.name, one.published.amount, one.published.window_ms) for one in told]
    return found or [(url.target.host, 1, 1_000)]


POLICIES = policy_table(config.parse("", {}))


class Referee:
    """Counts at the hosts: what came too early is refused there, and told."""

    def __init__(self):
        self.limiters = {}
        self.served = Counter()
        self.over = []

    def reply(self, hit):
        now_ms = int(hit.at_s * 1_000)
        url = parse_target(f"http://{hit.host}{hit.path}")
        self.served[url.url] += 1
        for name, amount, window_ms in limits_of(url):
            limiter = self.limiters.setdefault(name, SlidingLog(amount, window_ms))
            if not limiter.arrive(now_ms).ok:
                self.over.append((name, url.url))
        return whole(body=b"page")


async def agent(port, number, urls, failures):
    """One task: fetch all, in any order that works."""
    caller, loop = Caller(port), asyncio.get_running_loop()
    todo = [(0.0, index, url, "") for index, url in enumerate(urls)]
    heapq.heapify(todo)
    while todo:
        due_s, index, url, ticket = heapq.heappop(todo)
        await asyncio.sleep(max(0, due_s - loop.time()))
        said = {"x-swarmgate-agent": f"task-{number}", "x-swarmgate-step": str(index)}
        if ticket:
            said["x-swarmgate-ticket"] = ticket
        answer = await caller.ask("GET", to(url), said)
        if answer.status == 429:
            deferral = answer.said["deferral"]
            heapq.heappush(todo, (loop.time() + deferral["not_before_ms"] / 1_000, index, url, deferral["ticket"]))
        elif answer.status != 200:
            failures.append((url, answer))
    caller.close()


async def research(tasks):
    """Run all tasks at once; (seconds, referee, failures, calls by end)."""
    referee, loop = Referee(), asyncio.get_running_loop()
    world = World(referee.reply)
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0, backlog=4_096)
    urls = [[parse_target(url.replace("https://", "http://", 1)).url for url in task] for task in tasks]
    hosts = {parse_target(url).target.host for task in urls for url in task}
    place = f'"127.0.0.1:{server.sockets[0].getsockname()[1]}"'
    text = "[resolve]\n" + "\n".join(f'"{host}" = {place}' for host in sorted(hosts))
    bugs, failures = [], []
    gate = wiring.gate(loop, config.parse(text, {}), lambda _call, error: bugs.append(error))
    warm(gate)
    port = await gate.start("127.0.0.1", 0)
    begun = loop.time()
    await asyncio.gather(*[agent(port, number, task, failures) for number, task in enumerate(urls)])
    took_s = loop.time() - begun
    ends = Counter(entry.noted.end.value for entry in gate.journal.entries if hasattr(entry.noted, "end"))
    await gate.stop(drain_s=1)
    server.close()
    for writer in world.writers:
        writer.close()
    await asyncio.sleep(0)
    assert bugs == []
    return took_s, referee, failures, ends, Counter(url for task in urls for url in task)


def test_a_sample_of_tasks():
    tasks = list(json.loads(SAMPLE.read_text())["tasks"].values())
    took_s, referee, failures, _, asked = asyncio.run(research(tasks))
    assert failures == []
    assert referee.over == []
    assert referee.served == asked
    assert took_s < 12


@pytest.mark.soak
@pytest.mark.skipif(not ALL.exists(), reason="the tasks lie outside the repository")
def test_every_task():
    tasks = [json.loads(line)["urls"] for line in ALL.read_text().splitlines()]
    took_s, referee, failures, ends, asked = asyncio.run(
        research(tasks[: int(os.environ.get("RESEARCH_TASKS", "100"))])
    )
    print(f"{len(tasks)} tasks, {sum(asked.values())} URLs, {took_s:.0f} s, ends {dict(ends)}")
    assert failures == []
    assert referee.over == []
    assert referee.served == asked
    assert took_s <= 180
