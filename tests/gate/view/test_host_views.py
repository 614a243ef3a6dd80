"""What agents and schedulers read of hosts: their budgets once they were called, and plans before."""

from looking import LIMITED, read, run

from swarmgate.core.target import parse_target


def test_a_plan_paces_hosts_that_nobody_has_called_yet_and_makes_none_known():
    async def scene(running, client):
        running.gate.store.book.birth_ms = 0  # nothing can have been forgotten
        asked = {
            "steps": [
                *[{"id": f"new{number}", "url": "https://new.example/x"} for number in range(3)],
                *[{"id": f"arxiv{number}", "url": "https://export.arxiv.org/api/query"} for number in range(2)],
                {"id": "model", "model": "free"},
            ]
        }
        plan = (await client.post("/swarmgate/v1/plan", json=asked)).json()
        return plan, list(running.gate.egress.hosts.rungs())

    plan, rungs = run(scene)
    start = {one["id"]: one["not_before_ms"] for one in plan["order"]}
    assert rungs == []
    assert start["model"] == start["new0"] == 0
    assert 0 < start["new1"] < start["new2"]
    assert {one["target"] for one in plan["order"]} >= {"https://new.example", "https://export.arxiv.org#api"}


def test_hosts_are_told_like_models_once_they_were_called():
    async def scene(running, client):
        egress = running.gate.egress
        egress.hosts.place(parse_target("https://new.example/x").target, "GET", "/x")
        page = await read(client, "budgets", target="new.example")
        arxiv = await read(client, "budgets", target="arxiv-api/anonymous")
        before = await read(client, "budgets")
        egress.hosts.place(parse_target("https://export.arxiv.org/").target, "GET", "/api/query")
        return page, arxiv, before, await read(client, "budgets")

    page, arxiv, before, listed = run(scene)
    assert [row["state"] for row in arxiv["budgets"]] == ["ready"] * len(arxiv["budgets"])
    assert not any(row["target"] == "arxiv-api/anonymous" for row in before["budgets"])
    assert {row["unit"] for row in page["budgets"]} == {"requests", "concurrent"}
    assert "https://new.example" in {row["target"] for row in listed["targets"]}
    assert any(row["target"] == "arxiv-api/anonymous" for row in listed["budgets"])


def test_a_plan_counts_the_bytes_that_a_step_says():
    text = '[policies.p]\nhosts = ["p.example"]\nlimits = ["90_000_000 bytes per 60s"]\n[egress]\nunknown = "900 per 1s"\nceiling = "900 per 1s"\n'

    async def scene(_running, client):
        starts = []
        for size in (1_000, 4_000_000):
            steps = [{"id": name, "url": "https://p.example/", "bytes": size} for name in "abc"]
            answer = await client.post("/swarmgate/v1/plan", json={"steps": steps})
            starts.append(max(one["not_before_ms"] for one in answer.json()["order"]))
        return starts

    small, large = run(scene, text=LIMITED + text)
    assert large > small + 2_000


def test_every_limit_of_a_policy_is_told_once_its_host_was_called():
    text = '[policies.p]\nhosts = ["p.example"]\nlimits = ["5 per 1s", "90_000 bytes per 1s", "2 concurrent"]\n'

    async def scene(running, client):
        running.gate.egress.hosts.place(parse_target("https://p.example/").target, "GET", "/")
        return await read(client, "budgets")

    told = [row["budget"] for row in run(scene, text=LIMITED + text)["budgets"] if row["target"] == "p"]
    assert told == ["p: requests per 1s", "p: bytes per 1s", "p: concurrent"]
