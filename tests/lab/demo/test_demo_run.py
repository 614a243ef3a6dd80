"""The demo on real sockets with few agents: processes start, arms run, witnesses judge, and nothing is left running."""

import json
import os

import pytest

from swarmgate.lab.demo import children
from swarmgate.lab.demo.page import DRAWINGS, page
from swarmgate.lab.demo.plan import Lengths, make_plan
from swarmgate.lab.demo.run import run_demo
from swarmgate.lab.demo.table import as_json
from swarmgate.lab.errors import LabError


class Quiet:
    def __init__(self):
        self.arms, self.told, self.pids = [], [], []

    def arm(self, setup, places):
        self.arms.append(setup.name)
        self.pids += [server.pid for server in places.servers]

    def progress(self, progress):
        self.told.append(progress)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_few_agents_through_the_gate_and_directly(tmp_path):
    plan, screen = make_plan(40, Lengths(calm=1, gate=2, direct=1, one_budget=0, one_key=0)), Quiet()
    gate, direct = run_demo(plan, tmp_path, screen)
    assert screen.arms == ["gate", "direct"]
    assert any(progress.counts.get("answered") for progress in screen.told)
    assert not any(is_running(pid) for pid in screen.pids)
    assert gate.fates["answered"] > 0
    assert gate.fates["failed"] == gate.fates["gave_up"] == gate.refused == 0
    assert gate.over_limit == {}
    assert gate.calm.calls > 0
    assert gate.waits
    assert gate.cost_micro > 0
    assert gate.reuse > direct.reuse
    told = json.loads(json.dumps(as_json(plan, [gate, direct])))
    assert [arm["name"] for arm in told["arms"]] == screen.arms
    assert [promise["kept"] for promise in told["promises"]][1:3] == [True, True]
    drawn = page(plan, [gate, direct], ["a <source>"])
    assert drawn.count("<svg") == drawn.count("<figcaption>") in {0, len(DRAWINGS)}
    assert "a &lt;source&gt;" in drawn
    assert "http://" not in drawn.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_a_child_that_does_not_start_says_why(tmp_path):
    with (
        pytest.raises(LabError, match=r"(?s)gate: did not start: .*option"),
        children.running("gate", children.Order(children.COMMAND, ["up", "--sideways"]), tmp_path) as child,
    ):
        child.first_line()


def test_a_child_that_ends_is_noticed(tmp_path):
    with children.running("short", children.Order("raise SystemExit(3)", []), tmp_path) as child:
        child.wait()
        with pytest.raises(LabError, match="short: ended with 3"):
            child.must_run()


def test_limits_follow_from_the_load():
    plan = make_plan(2_000, Lengths())
    compiled = plan.tokens_compiled * plan.keys
    assert plan.keys == 20
    assert compiled * 1.19 < plan.offered_tokens < compiled * 1.21
    assert plan.offered_tokens * 6 >= 48_000_000
