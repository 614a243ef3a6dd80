"""`swarmgate audit` beside a running gate (AZ-13): who changed what, with its old and new, and whether it was touched."""

import asyncio
import json
import signal

from processes import provider, up
from typer.testing import CliRunner

from eventually import eventually
from swarmgate.cli import app
from swarmgate.stores.journal.audit import FILE, Audit


def swarmgate(state, *arguments, code=0):
    done = CliRunner().invoke(app, [*arguments, "--state", str(state)])
    assert done.exit_code == code, done.output
    return done.output


async def changes(gate, config):
    """Every kind of change that an operator can make."""
    said = {"budget": "up", "author": "ann@desk", "reason": "they asked"}
    assert (await gate.operate("POST", "/orders/limit", said | {"amount": 90, "window_ms": 60_000})).status == 200
    assert (await gate.operate("POST", "/orders/pause", said)).status == 200
    said = {"name": "reader", "team": "lab", "limits": ["5 USD per 1d"], "author": "bob"}
    key = (await gate.operate("POST", "/keys", said)).said["key"]
    assert (await gate.operate("POST", f"/keys/{key.split('_')[1]}/revoke", {"author": "eve"})).status == 200
    config.write_text(config.read_text().replace("100 per 60s", "80 per 60s") + '[agents]\nlimits = ["9 per 1s"]\n')
    gate.process.send_signal(signal.SIGHUP)
    await eventually(lambda: any("read again" in text for text in gate.said), 20)
    assert (
        await gate.operate("POST", "/orders/resume", {"budget": "up", "author": "ann", "reason": "it is over"})
    ).status == 200
    told = await gate.operate("GET", "/audit")
    assert (told.status, told.said["wrong"]) == (200, "")
    assert key not in json.dumps(told.said)
    return told.said


def test_az_13_every_change_of_an_operator_is_told_and_a_touched_record_is_found_out(tmp_path):
    state = tmp_path / "state"

    async def play():
        async with provider() as (_, port), up(state, port, limits='["100 per 60s"]') as gate:
            await gate.ready()
            told = await changes(gate, tmp_path / "gate.toml")
            assert await gate.end() == 0
        async with provider() as (_, port), up(state, port, limits='["100 per 60s"]'):
            return told  # an operator's limit ends with the run that it was set in

    told = asyncio.run(play())
    rows = json.loads(swarmgate(state, "audit", "--json", "--since", told["newest"]))["changes"]
    whats = ["limit set", "paused", "agent key created", "agent key revoked", "configuration read again", "resumed"]
    whats.append("configuration at start")
    assert [row["what"] for row in rows] == whats
    limit, pause, created, revoked, _read, resumed, restart = rows
    assert (limit["subject"], limit["reason"], "@" in limit["who"]) == ("up", "they asked", True)
    assert (list(limit["old"].values()), list(limit["new"].values())) == (["100 per 60000 ms"], ["90 per 60000 ms"])
    assert (list(pause["old"].values()), list(pause["new"].values())) == (
        ["90 per 60000 ms"],
        ["90 per 60000 ms (paused)"],
    )
    assert (created["who"], created["old"], created["new"]["limits"]) == ("bob", {}, "['5 USD per 86400s']")
    assert (revoked["who"], revoked["subject"]) == ("eve", created["subject"])
    assert list(resumed["new"].values()) == ["90 per 60000 ms"]
    assert (restart["who"], list(restart["old"].values()), list(restart["new"].values())) == (
        "configuration",
        ["90 per 60000 ms"],
        ["100 per 60000 ms"],
    )
    text = swarmgate(state, "audit")
    assert "7 changes; each line stands as it was written" in text
    assert "they asked" in text
    assert "eve" in text
    lines = (state / FILE).read_text()
    (state / FILE).write_text(lines.replace('"who":"eve"', '"who":"bob"'))
    assert "BROKEN: line 4 was changed after it was written" in swarmgate(state, "audit", code=1)
    (state / FILE).write_text("".join(lines.splitlines(keepends=True)[:-1]))
    newest = rows[-1]["hash"]
    assert swarmgate(state, "audit", "--since", told["newest"])
    assert "missing at the end" in swarmgate(state, "audit", "--since", newest, code=1)
    assert len(Audit(state).read().changes) == 6
