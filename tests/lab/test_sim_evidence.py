"""Journals and witnesses are compared: whatever one has and the other has not is told, and nothing else."""

from types import SimpleNamespace

import pytest

from swarmgate.core.record import State
from swarmgate.lab.faults import Fault
from swarmgate.lab.sim import coverage, evidence
from swarmgate.lab.sim.evidence import JOURNAL, Done, contradictions
from swarmgate.lab.sim.seeds import Trial, run
from swarmgate.lab.sim.verdicts import violations
from swarmgate.lab.witness import Arrival
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.segments import listed


@pytest.fixture(scope="module")
def world():
    return run(Trial("store-outage", 0, ()))


def told(world, *more, is_calm=True, change=lambda one, found: found):
    """What is told where the journals say something else than they do."""
    found = [
        SimpleNamespace(
            **{name: getattr(gate.evidence, name) for name in gate.evidence.__slots__},
            may_miss=gate.evidence.may_miss,
            rows=lambda one=gate.evidence: change(one, one.rows()),
        )
        for gate in world.gates
    ]
    arrivals = [row for one in world.targets.values() for witness in one.witnesses for row in witness.arrivals]
    return contradictions(found, [*arrivals, *more], is_calm=is_calm)


def test_a_calm_world_agrees_with_itself(world):
    assert told(world) == []
    assert sum(len(gate.evidence.attempts) for gate in world.gates) > 50


def test_what_no_gate_sent_and_what_came_twice_is_told(world):
    known = next(iter(world.gates[0].evidence.attempts))
    ghosts = [Arrival(1, *one, "key-1", 0, ok=True) for one in (("ghost", 1), known)]
    assert told(world, *ghosts) == [
        "P8: 1 requests reached a target twice",
        "P8: 1 requests reached a target that no gate sent",
        "P8: 1 requests at targets stand in no journal",
    ]


def without(kind, number=1):
    """A journal that lacks its first rows of a kind."""

    def change(_one, found):
        lost = [row for row in found if isinstance(row, kind)][:number]
        return [row for row in found if row not in lost]

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(rows.Intent), "requests at targets stand in no journal"),
        (without(rows.Done), "attempts of a run that ended in order have no end"),
        (lambda _one, found: [*found, found[0]], "numbers of rows do not ascend"),
        (lambda _one, found: [*found, *[row for row in found if isinstance(row, rows.Done)][:1]], "ended twice"),
    ],
)
def test_what_a_journal_lacks_or_has_too_often_is_told(world, change, says):
    sentences = told(world, change=change)
    assert any(says in sentence for sentence in sentences), sentences


def test_in_a_calm_world_what_left_also_arrives(world):
    for gate in world.gates:
        gate.evidence.attempts["never", 1] = Done(1, is_written=True)
    try:
        assert "P12" in told(world, change=lambda _one, found: found)[0]
    finally:
        for gate in world.gates:
            del gate.evidence.attempts["never", 1]


def test_a_loss_of_power_excuses_what_was_not_synced_and_nothing_else():
    trial = Trial("planner", 4, (Fault("power_loss", 30_000, 1_000, "gate-1"),))
    world = run(trial)
    (gate,) = world.gates
    missing = [one for one, done in gate.evidence.attempts.items() if gate.evidence.may_miss(done)]
    assert missing
    assert violations(world) == []
    gate.evidence.dark_ms.clear()
    assert any("stand in no journal" in sentence for sentence in violations(world))


def test_a_full_disk_excuses_only_while_it_is_full():
    fault = Fault("disk_full", 10_000, 15_000, "gate-1")
    world = run(Trial("planner", 4, (fault,)))
    (gate,) = world.gates
    silent = [done.at_ms for done in gate.evidence.attempts.values() if not done.is_written]
    assert silent
    assert all(fault.at_ms <= at_ms <= fault.ends_ms + 2_000 for at_ms in silent)
    assert violations(world) == []
    gaps = [row for row in gate.evidence.rows() if isinstance(row, rows.Gap)]
    assert [row.rows for row in gaps] == [0]  # what waited was written once there was room
    assert len(listed(JOURNAL, gate.evidence.disk)) > 1


def test_an_aim_is_a_world_that_can_be_run_again():
    first, second = (coverage.aimed("disk_error", State.WAITING) for _ in range(2))
    for aim in (first, second):
        aim.world.run()
    assert first.world.time.trace_hash == second.world.time.trace_hash
    assert evidence.UNSEEN.facts().status == 0
