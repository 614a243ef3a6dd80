"""
Deep-research tasks on real sockets: every page fetched once, no host asked faster than it takes, by witnesses of their own.

Hosts and witnesses are a process of their own (`swarmgate lab serve`); a host takes one request a second, as long as recorded
answers took, and says 429 to more. Each task is an agent that knows nothing of limits: what is deferred it puts aside until
`not_before`, and goes on elsewhere. All speak http here; TLS is tested elsewhere.
"""

import asyncio
import contextlib
import heapq
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from outside import Caller, to, warm

from swarmgate import config, wiring
from swarmgate.core.target import parse_target
from swarmgate.core.target_policy import counts_requests, judge
from swarmgate.lab.standin.witness_log import read_rows, witnesses
from swarmgate.wiring.egress import policy_table

SAMPLE = Path(__file__).parents[2] / "data/research_tasks.json"
ALL = Path(__file__).parents[4] / "shared/data/egress/deep_research_task_urls.jsonl"
LIMIT, WINDOW_MS = 1, 1_000
SERVE = "import sys; from swarmgate.lab.processes import serve_for_demo; serve_for_demo(*sys.argv[1:])"


@contextlib.contextmanager
def hosts_of(names, folder):
    """A stand-in for all of them; its port, and the file of its witness."""
    limit = {"kind": "sliding_log", "limit": LIMIT, "window_ms": WINDOW_MS}
    plan, seen = folder / "plan.json", folder / "seen.jsonl"
    plan.write_text(json.dumps({"hosts": {name: {"limits": [limit]} for name in names}}))
    process = subprocess.Popen([sys.executable, "-c", SERVE, plan, seen], stdout=subprocess.PIPE)
    try:
        ports = json.loads(process.stdout.readline())
        yield next(port for name, port in ports.items() if name.startswith("web")), seen
        process.terminate()
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.communicate()


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


async def research(tasks, port):
    """Run all tasks at once; (seconds, failures, calls by end)."""
    loop = asyncio.get_running_loop()
    place = f'"127.0.0.1:{port}"'
    text = "[resolve]\n" + "\n".join(f'"{host}" = {place}' for host in sorted(hosts_in(tasks)))
    bugs, failures = [], []
    gate = wiring.gate(loop, config.parse(text, {}), lambda _call, error: bugs.append(error))
    warm(gate)
    door = await gate.start("127.0.0.1", 0)
    begun = loop.time()
    await asyncio.gather(*[agent(door, number, task, failures) for number, task in enumerate(tasks)])
    took_s = loop.time() - begun
    ends = Counter(entry.noted.end.value for entry in gate.journal.entries if hasattr(entry.noted, "end"))
    await gate.stop(drain_s=1)
    assert bugs == []
    return took_s, failures, ends


def hosts_in(tasks):
    return {parse_target(url).target.host for task in tasks for url in task}


def fetched(tasks, folder):
    """What came of the tasks; that every page came once and no host was asked too often is checked."""
    tasks = [[parse_target(url.replace("https://", "http://", 1)).url for url in task] for task in tasks]
    policies = policy_table(config.parse("", {}))
    told = [(parse_target(url), url) for task in tasks for url in task]
    judged = {url: judge(policies, one.target.host, "GET", one.path) for one, url in told}
    known = [u for u, one in judged.items() if counts_requests(one.policy.budgets.get(one.path_class, ()))]
    assert known == []  # nobody publishes a limit for any of these pages
    with hosts_of(hosts_in(tasks), folder) as (port, seen):
        took_s, failures, ends = asyncio.run(research(tasks, port))
    assert failures == []
    found = {scope: witness for (_, scope), witness in witnesses(read_rows(seen)).items()}
    assert {name for name, one in found.items() if one.over_limit(LIMIT, WINDOW_MS)} == set()
    assert {name: one.sent for name, one in found.items()} == Counter(one.target.host for one, _ in told)
    assert sum(one.refused for one in found.values()) == 0
    return took_s, len(told), ends


def test_a_sample_of_tasks(tmp_path):
    _, pages, ends = fetched(json.loads(SAMPLE.read_text())["tasks"].values(), tmp_path)
    assert ends["answered"] == pages


@pytest.mark.soak
@pytest.mark.skipif(not ALL.exists(), reason="the tasks lie outside the repository")
def test_every_task(tmp_path):
    tasks = [json.loads(line)["urls"] for line in ALL.read_text().splitlines()]
    tasks = tasks[: int(os.environ.get("RESEARCH_TASKS", "100"))]
    took_s, pages, ends = fetched(tasks, tmp_path)
    print(f"{len(tasks)} tasks, {pages} pages, {took_s:.0f} s, ends {dict(ends)}")
    assert took_s <= 180
