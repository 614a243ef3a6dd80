"""The users' incident from its first long prompt to the ceiling that ends it, through the real gate, on a loop that skips silence."""

import asyncio
import contextlib
import io
import json
import os
import signal
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from quick_loop import QuickLoop
from swarmgate import config
from swarmgate.cli import app
from swarmgate.config import Listen
from swarmgate.control import data, link
from swarmgate.control.importer import Importer
from swarmgate.control.watching import Watching
from swarmgate.engine.clock import unix_ms
from swarmgate.lab import incident
from swarmgate.lab.incident import BATCH, PROVIDER, Agents
from swarmgate.lab.standin.serving import StandIns

CALM_S = 20
BLOWN_S = 90
CEILING_S = 150


class Story:
    """What is told at the end."""

    def __init__(self):
        self.marks = {}
        self.notices = []
        self.agents = self.folder = None
        self.offset_ms = 0  # of the wall clock as it would be, had anybody waited

    def time_of(self, mark):
        """A mark as commands read it."""
        return datetime.fromtimestamp((self.marks[mark] + self.offset_ms) / 1_000, UTC).isoformat()


async def watch(folder, watching, importer):
    """What the control process does beside the gate, in this loop and with its clock."""
    peer = await link.connect(folder, lambda: link.Peer({}))
    looks = 0
    while True:
        while not importer.step():
            pass
        if looks % 25 == 0:
            watching.look(await peer.ask("standing"))
        looks += 1
        await asyncio.sleep(0.2)


async def play(folder, story):
    loop = asyncio.get_running_loop()
    stand_ins = StandIns(loop, incident.STAND_IN)
    ports = await stand_ins.start()
    file = folder / "gate.toml"

    def configure(*, ceiling):
        file.write_text(incident.configuration(ports[PROVIDER], ceiling=ceiling))
        return config.load(file, incident.environment())

    state, begun, said = folder / "state", asyncio.Event(), []
    port = []
    setting = data.Setting(
        Listen("127.0.0.1", 0),
        state,
        None,
        said.append,
        lambda bound, _operator: (port.append(bound), begun.set()),
        lambda call, error: said.append(f"bug in {call.id}: {error!r}"),
        lambda: config.load(file, incident.environment()),
    )
    serving = loop.create_task(data.serve(configure(ceiling=False), setting), name="gate")
    await begun.wait()
    importer = Importer.opened(state)
    watching = Watching(importer.price, io.StringIO())
    importer.listeners.append(watching.hear)
    looking = loop.create_task(watch(state, watching, importer), name="control")
    story.agents = agents = Agents(loop, port[0])

    def mark(name):
        story.marks[name] = int(loop.time() * 1_000)

    story.offset_ms = offset_ms = unix_ms() - int(loop.time() * 1_000)
    mark("begin")
    agents.start()
    await asyncio.sleep(CALM_S)
    mark("blown")
    agents.batch_tokens = incident.BLOWN_TOKENS
    await asyncio.sleep(BLOWN_S)
    configure(ceiling=True)
    mark("ceiling")
    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.sleep(CEILING_S)
    mark("end")
    await agents.stop()
    looking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await looking
    os.kill(os.getpid(), signal.SIGTERM)
    assert await serving == 0
    while not importer.step():
        pass
    importer.close()
    await stand_ins.stop()
    assert not [text for text in said if "bug" in text]
    names = ("alert", "subject", "begins", "at_ms", "text")
    notices = [[notice[name] for name in names] for notice in watching.alerts()["notices"]]
    story.notices = [
        (alert, subject, begins, at_ms - offset_ms, text) for alert, subject, begins, at_ms, text in notices
    ]
    story.folder = state


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    story = Story()
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=QuickLoop) as runner:
        loop = runner.get_loop()
        wall_ms = unix_ms() - int(loop.time() * 1_000)
        patch.setattr(data, "unix_ms", lambda: wall_ms + int(loop.time() * 1_000))
        runner.run(play(tmp_path_factory.mktemp("incident"), story))
    return story


def subjects():
    return {f"{PROVIDER}/key-{number} {incident.MODEL} {BATCH}" for number in range(1, incident.KEYS + 1)}


def test_the_mean_hid_it(story):
    blown = story.marks["blown"], story.marks["ceiling"]
    everybody, batch = story.agents.times(*blown), story.agents.times(*blown, BATCH)
    assert everybody.mean_ms < everybody.p99_ms / 10  # the users': 2 s and 40 s
    assert everybody.p99_ms > 35_000
    assert batch.p99_ms > 35_000
    assert story.agents.times(*blown, incident.DENSE).p99_ms < 8_000


def test_within_a_minute_the_alert_names_key_model_and_task_type(story):
    begun = {subject: at_ms for alert, subject, begins, at_ms, _ in story.notices if begins and alert == "slow_p99"}
    assert begun.keys() == subjects()
    assert all(0 < at_ms - story.marks["blown"] <= 60_000 for at_ms in begun.values())
    assert {alert for alert, *_ in story.notices} == {"slow_p99"}


def test_the_ceiling_ends_it(story):
    times = story.agents.times(story.marks["ceiling"], story.marks["end"], BATCH)
    assert times.answers >= 20
    assert times.p99_ms < 6_000
    refused = [one for one in story.agents.seen if one.status != 200]
    assert [(one.task_type, one.why) for one in refused] == [(BATCH, incident.TOO_LONG)]
    ended = [(subject, at_ms) for _, subject, begins, at_ms, _ in story.notices if not begins]
    assert {subject for subject, _ in ended} == subjects()
    assert all(at_ms > story.marks["ceiling"] for _, at_ms in ended)
    assert len(story.notices) == 2 * len(ended)


def told(story, *arguments):
    span = ("--from", story.time_of("begin"), "--to", story.time_of("end"))
    done = CliRunner().invoke(app, [*arguments, *span, "--json", "--state", str(story.folder)])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_report_shows_both(story):
    found = told(story, "report", "--target", PROVIDER)
    assert found["verdict"] == "kept a right budget"
    before, after = [one for one in found["spells"] if one["task_type"] == BATCH]
    assert (before["ceiling"], after["ceiling"]) == (0, incident.CEILING_TOKENS)
    assert before["p99_ms"] > 35_000
    assert after["p99_ms"] < 6_000
    assert before["longest"] > 200_000
    assert after["longest"] <= incident.CEILING_TOKENS
    assert before["cost_micro"] > 5 * after["cost_micro"] > 0
    ceilings = [one for one in found["incidents"] if one["kind"] == "ceiling"]
    assert [one["reason"] for one in ceilings] == [BATCH]
    assert after["from_ms"] == ceilings[0]["at_ms"]


def test_and_the_drawing_has_every_window(story):
    found = told(story, "report", "--target", PROVIDER)
    p99_ms = [one["p99_ms"] for one in found["moments"] if one["task_type"] == BATCH]
    assert max(p99_ms) > 35_000
    assert p99_ms[-1] < 6_000


def test_so_does_the_table_of_contexts(story):
    rows = told(story, "costs", "--by", "context")
    p99_ms = {row["band"]: row["p99_ms"] for row in rows if row["task_type"] == BATCH}
    assert p99_ms["over 64K"] > 35_000
    assert p99_ms["4K to 16K"] < 6_000
