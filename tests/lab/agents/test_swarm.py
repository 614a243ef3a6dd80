"""A swarm against stand-ins in the same loop: nobody is stopped by a slow target, everybody's fate is written down."""

import asyncio

from swarmgate.http1.upstreams import Origin
from swarmgate.lab.agents.records import CallRow, Fate, lines_of, read_calls
from swarmgate.lab.agents.swarm import Swarm
from swarmgate.lab.agents.ways import ByThemselves, Direct
from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.serving import StandIns
from swarmgate.lab.standin.trouble import Trouble
from swarmgate.lab.standin.witness_log import Seen, read_rows
from swarmgate.lab.traces.players import Character, closed_players, open_players
from swarmgate.lab.traces.reading import Trace
from swarmgate.lab.traces.rows import TraceCall

SOMEBODY = Character("load", "literature", "P1", "model", 15_000)
OPEN = Trace("t", tuple(TraceCall(t, 50, 4) for t in range(0, 1_000, 50)))
CLOSED = Trace("t", tuple(TraceCall(t, 50, 4, "s", ("a.org",)) for t in range(0, 1_000, 50)))


def played(players, seconds, path, *, limit=1_000, trouble=(), way=ByThemselves):
    """(rows of the agents, rows of the witness) of one run."""
    provider = {
        "name": "p",
        "dialect": "openai",
        "limits": [[{"kind": "sliding_log", "limit": limit, "window_ms": 60_000}]],
    }
    plan = StandInPlan.model_validate({"providers": [provider | {"latency": "gpt-5.4-nano"}]})

    async def scene():
        loop = asyncio.get_running_loop()
        stand_ins = StandIns(loop, plan, path / "seen.jsonl")
        ports = await stand_ins.start()
        until_ms = int(loop.time() * 1_000) + 60_000
        for kind, amount in trouble:
            stand_ins.troubles.begin(Trouble(kind, "p", until_ms, amount))
        keys = {player.name: plan.providers[0].key_of(1) for player in players}
        there = Origin("http", "127.0.0.1", ports["p"]), (Origin("http", "127.0.0.1", ports["web-1"]),)
        rows = []
        swarm = Swarm(loop, way(Direct(*there, keys, "m"), 1), players, rows.append)
        await swarm.run(seconds)
        await stand_ins.stop()
        return rows

    return asyncio.run(scene()), [row for row in read_rows(path / "seen.jsonl") if isinstance(row, Seen)]


def test_every_wish_has_one_fate_and_every_send_was_seen(tmp_path):
    rows, seen = played(open_players(OPEN, SOMEBODY, 4, 20, 1.0), 1.0, tmp_path, trouble=[("slow", 1)])
    assert len(rows) == 20
    assert {row.fate for row in rows} == {"answered"}
    assert sorted(row.call for row in rows) == sorted(row.call for row in seen)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(lines_of(rows))
    assert read_calls(path) == rows
    assert isinstance(read_calls(path)[0], CallRow)


def test_a_stalled_target_stops_nobody_from_wanting(tmp_path):
    rows, seen = played(open_players(OPEN, SOMEBODY, 4, 20, 1.0), 1.0, tmp_path, trouble=[("stall", 0)])
    assert len(rows) == 20
    assert {row.fate for row in rows} == {"open"}
    assert len(seen) == 20


def test_closed_agents_fetch_what_their_answers_cite(tmp_path):
    rows, seen = played(closed_players(CLOSED, SOMEBODY, 3, 30, 1.0, 50), 1.0, tmp_path, trouble=[("slow", 1)])
    models = [row for row in rows if row.kind == "literature" and row.fate == Fate.ANSWERED]
    pages = [row for row in seen if row.place == "web"]
    assert models
    assert 0 < len(pages) <= len(models)
    assert {row.scope for row in pages} == {"a.org"}


def test_refusals_are_counted_and_repeats_are_few(tmp_path):
    rows, seen = played(open_players(OPEN, SOMEBODY, 4, 20, 1.0), 1.0, tmp_path, limit=5, trouble=[("slow", 1)])
    answered = [row for row in rows if row.fate == "answered"]
    assert len(answered) == sum(row.status == 200 for row in seen) == 5
    refused = [row for row in rows if row.refused]
    assert len(refused) == 15
    assert sum(row.refused for row in rows) == sum(row.status == 429 for row in seen)
    assert max(row.sends for row in rows) <= 3


class InAChain(ByThemselves):
    chained = True


def test_se_07_streams_of_a_chain_are_heard_token_by_token(tmp_path):
    rows, _ = played(open_players(OPEN, SOMEBODY, 4, 20, 1.0), 1.0, tmp_path, trouble=[("slow", 1)], way=InAChain)
    assert [row.fate for row in rows] == ["answered"] * 20
    assert [(row.heard, row.lost, row.doubled, row.moved) for row in rows] == [(4, 0, 0, 0)] * 20
