"""`swarmgate audit` beside a running gate (AZ-13): who changed what, with its old and new, and whether it was touched."""

import asyncio
import json
import signal
import subprocess

from processes import COMMAND, provider, up

from eventually import eventually
from swarmgate.stores.journal.audit import FILE, Audit


def swarmgate(state, *arguments, code=0):
    command = [*COMMAND, *arguments, "--state", str(state)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


async def changes(gate, config):
    """Every kind of change that an operator can make."""
    run = asyncio.to_thread
    await run(swarmgate, gate.folder, "limit", "up", "90", "--per", "60s", "--reason", "they asked")
    await run(swarmgate, gate.folder, "pause", "up", "--reason", "an incident")
    said = {"name": "reader", "team": "lab", "limits": ["5 USD per 1d"], "author": "bob"}
    key = (await gate.operate("POST", "/keys", said)).said["key"]
    assert (await gate.operate("POST", f"/keys/{key.split('_')[1]}/revoke", {"author": "eve"})).status == 200
    config.write_text(config.read_text().replace("100 per 60s", "80 per 60s") + '[agents]\nlimits = ["9 per 1s"]\n')
    gate.process.send_signal(signal.SIGHUP)
    await eventually(lambda: any("read again" in text for text in gate.said), 20)
    await run(swarmgate, gate.folder, "resume", "up", "--reason", "it is over")
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
            return told

    told = asyncio.run(play())
    rows = json.loads(swarmgate(state, "audit", "--json", "--since", told["newest"]))["changes"]
    whats = ["limit set", "paused", "agent key created", "agent key revoked", "configuration read again", "resumed"]
    assert [row["what"] for row in rows] == whats
    limit, pause, created, revoked, _read, resumed = rows
    assert (limit["subject"], limit["reason"], "@" in limit["who"]) == ("up", "they asked", True)
    assert (list(limit["old"].values()), list(limit["new"].values())) == (["100 per 60000 ms"], ["90 per 60000 ms"])
    assert (list(pause["old"].values()), list(pause["new"].values())) == (
        ["90 per 60000 ms"],
        ["90 per 60000 ms (paused)"],
    )
    assert (created["who"], created["old"], created["new"]["limits"]) == ("bob", {}, "['5 USD per 86400s']")
    assert (revoked["who"], revoked["subject"]) == ("eve", created["subject"])
    assert list(resumed["new"].values()) == ["90 per 60000 ms"]
    text = swarmgate(state, "audit")
    assert "6 changes; each line stands as it was written" in text
    assert "they asked" in text
    assert "eve" in text
    lines = (state / FILE).read_text()
    (state / FILE).write_text(lines.replace('"who":"eve"', '"who":"bob"'))
    assert "BROKEN: line 4 was changed after it was written" in swarmgate(state, "audit", code=1)
    (state / FILE).write_text("".join(lines.splitlines(keepends=True)[:-1]))
    assert swarmgate(state, "audit")
    assert "missing at the end" in swarmgate(state, "audit", "--since", told["newest"], code=1)
    assert len(Audit(state).read().changes) == 5
