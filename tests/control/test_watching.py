import asyncio
import io
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "telemetry"))

from processes import provider, query, up

from eventually import eventually, eventually_says
from facts import START_MS, end, note
from swarmgate.control.token import FILE
from swarmgate.control.watching import REMEMBERED, Watching


def standing(at_ms, *, left=100, waiting=0, agents=()):
    row = {
        "budget": "openai: 100 per 60s", "target": "openai", "unit": "requests", "amount": 125, "burst": 100, "state": "ready",
        "remaining": [left, left, left], "backlog": [0, waiting, 0],
    }  # fmt: skip
    gauges = {
        "open": {"queued": waiting},
        "oldest_ms": [["openai", "P1", 4_000]],
        "pools": {"openai": {"reused_permille": 900, "size": 8, "mean_permille": 100}},
        "retries_left": [("openai", "m", 10)],
        "keys_out": [("openai", "k1", 4_000)],
        "watched": [],
        "debt_units": 7,
    }
    return {"now_ms": at_ms, "budgets": [row], "turned_away": {"key": 2}, "agents": list(agents), **gauges}


def test_rows_and_states_become_metrics_alerts_and_lines():
    stream = io.StringIO()
    watching = Watching(lambda *_: None, stream)
    watching.hear([note("req-1"), end("req-2", budget="openai: 100 per 60s")])
    watching.look(standing(START_MS + 1_000, left=0, waiting=3))
    scrape = watching.scrape().decode()
    assert 'swarmgate_backlog_calls{budget="openai: 100 per 60s",priority="P1",target="openai"} 3.0' in scrape
    assert "swarmgate_debt_units_total 7.0" in scrape
    assert 'swarmgate_alerts_firing{alert="budget_exhausted",subject="openai: 100 per 60s"} 1.0' in scrape
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["answered", "deferred", "alert"]
    watching.look(standing(START_MS + 200_000))
    told = watching.alerts()
    assert told["firing"] == []
    assert [(one["alert"], one["begins"]) for one in told["notices"]] == [
        ("budget_exhausted", True),
        ("budget_exhausted", False),
    ]


def test_notices_are_bounded():
    watching = Watching(lambda *_: None, io.StringIO())
    for number in range(REMEMBERED + 10):
        watching.look(
            standing(START_MS + number, agents=[{"agent": f"a{number}", "state": "running", "silent_ms": 90_000}])
        )
    assert len(watching.alerts()["notices"]) == REMEMBERED


def test_a_row_that_nobody_understands_stops_nothing():
    def broken(_batch):
        raise KeyError("state")

    stream = io.StringIO()
    watching = Watching(lambda *_: None, stream)
    watching._hear = (broken, *watching._hear)
    watching.hear([note("req-1")])
    bug, line = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (bug["event"], bug["error"], line["request_id"]) == ("bug", "KeyError", "req-1")


def test_what_the_gate_says_of_itself_is_understood_and_agents_caps_are_in_no_label(tmp_path):
    limits = '["60 per 60s"]\n[agents]\nlimits = ["5 per 60s"]'

    async def play():
        async with provider() as (_, port), up(tmp_path / "state", port, limits=limits) as gate:
            await gate.ready()
            first = gate.child
            assert (await gate.call("x", agent="agent-canary")).status == 200
            budgets = [row["budget"] for row in (await gate.operate("GET", "/budgets")).said]
            assert any("agent-canary" in name for name in budgets)
            await eventually(lambda: query(gate.folder, "SELECT count(*) FROM attempts") == [(1,)], 20)
            assert (await gate.operate("GET", "/alerts")).said["firing"] == []
            scrapes = []

            async def has_looked():
                scrapes.append(await scrape(gate))
                return "budget_used_ratio{" in scrapes[-1]

            await eventually_says(has_looked, 20)
            assert gate.child == first
        assert "agent-canary" not in "".join(scrapes)
        assert not [text for text in gate.said if "Traceback" in text or "not looked at" in text]

    asyncio.run(play())


async def scrape(gate):
    token = (gate.folder / FILE).read_text().strip()
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.operator_port)
    head = f"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:{gate.operator_port}\r\nauthorization: Bearer {token}\r\n"
    writer.write(f"{head}connection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text
