"""A promise that is broken is told, ends the demo with 1, and is laid at the right door."""

import json

from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.figures import Evidence, Lines, Times, Waits, figures, lines_of
from swarmgate.lab.demo.machine import Machine
from swarmgate.lab.demo.plan import Lengths, make_plan
from swarmgate.lab.demo.table import ROWS, as_json, as_words, broken, promises, verdict

SMALL = make_plan(40, Lengths(0, 30, 0, 0, 0))
WHOLE = SMALL._replace(agents=2_000, lengths=Lengths())
QUIET, BUSY = Machine(2, 0.0, 1), Machine(2, 1.5, 90)


def arm(**more):
    """Nothing was asked and nothing was answered: goodput is broken, limits are kept."""
    found = figures("gate", SMALL, Evidence([], []), Times.of(1_000, 0, 30), keys=1)
    return [found._replace(**{"machine": QUIET, "lines": Lines(40, 40, 80, 0)} | more)]


def of(found, words):
    return next(one for one in promises(WHOLE, found) if words in one.text)


def test_a_small_run_is_judged_by_its_limits_alone():
    assert not of(arm(), "goodput").kept
    assert not broken(SMALL, arm())
    assert "cannot show every promise" in verdict(SMALL, arm())
    over = arm(over_limit={"a.org": 3})
    assert [one.came_to for one in broken(SMALL, over)] == ["3"]


def test_a_whole_run_is_judged_by_all_of_them_and_the_machine_is_heard():
    assert of(arm(), "goodput") in broken(WHOLE, arm())
    assert "the gate broke it" in verdict(WHOLE, arm())
    assert "too busy" in verdict(WHOLE, arm(machine=BUSY))
    told = json.loads(json.dumps(as_json(WHOLE, arm(machine=BUSY))))
    assert told["kept"] is False
    assert "too busy" in told["verdict"]
    assert told["arms"][0]["machine"] == {"cores": 2, "others": 1.5, "late_ms": 90}


def test_nothing_is_said_of_a_run_that_kept_everything():
    found = arm(compiled_share=1.0, reuse=1.0)
    assert not broken(WHOLE, found)
    assert not verdict(WHOLE, found)


def test_connections_are_kept_if_everybody_always_had_one_and_every_heartbeat_was_heard():
    assert of(arm(), "connected").kept
    for lines in (Lines(39, 40, 80, 0), Lines(40, 40, 80, 1), Lines(40, 40, 0, 0)):
        assert not of(arm(lines=lines), "connected").kept


def test_the_fewest_connected_after_the_first_window_count():
    def at(t_s, connected):
        return Progress(1, t_s, {}, {"heartbeats": 9, "lost heartbeats": 2}, 0.0, 0.0, 40, connected)

    assert lines_of([at(1.0, 3), at(15.0, 38), at(29.0, 37), at(30.0, 40)]) == Lines(37, 40, 9, 2)
    assert lines_of([at(0.5, 12)]).kept == 12


def test_the_table_says_what_is_counted_over_which_span_and_in_how_many_places():
    found = figures("gate", WHOLE, Evidence([], []), Times.of(1_000, 15, 45), keys=20)
    direct = found._replace(over_limit={"openai-like/scope-1": 4_018, "openai-like/scope-2": 2, "a.org": 20})
    cells = {label.strip(): cell(direct) for label, cell in ROWS}
    assert (cells["played, for counts"], cells["measured, for rates"]) == ("60 s", "35 s")
    assert cells["arrivals over a limit"] == "4,040"
    assert (cells["at how many keys"], cells["at how many hosts"]) == ("2", "1")
    assert "in its first 15 s" in of([found], "no deferral").text


def test_words_say_what_agents_paid_without_a_gate_and_who_waits_behind_it():
    (gate,) = arm(waits={"P2": Waits(9, 8_368, 19_000)})
    direct = gate._replace(name="direct", refused=2_007, over_limit={"k": 4_118})
    told = as_words([gate, direct])
    assert told.startswith("Arms were played for unequal times")
    assert "2,007 refusals, 4,118 arrivals over a limit" in told
    assert "P2 (cleaning), 8.4 s at the median" in told
    assert "direct" not in as_words([gate, gate])
