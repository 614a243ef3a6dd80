"""A busy machine is told from a slow one and from a gate that fails; what the system does not tell is not invented."""

from swarmgate.lab.demo.machine import Machine, Used, machine, used_now

BEFORE = Used(100.0, 10.0, 1.0, 50.0)


def test_what_others_and_the_hypervisor_took_is_what_we_did_not():
    found = machine(BEFORE, Used(130.0, 28.0, 4.0, 60.0), [1] * 90 + [9] * 10)
    assert found.others == (30 - 18 + 3) / 10
    assert found.late_ms == 9
    assert found.is_busy
    assert "too busy" in found.verdict()


def test_rounding_never_makes_less_than_nothing():
    assert machine(BEFORE, Used(110.0, 20.5, 1.0, 60.0), []).others == 0.0


def test_a_quiet_machine_leaves_the_gate_to_blame_and_a_slow_one_the_machine():
    assert "the gate broke it" in Machine(2, 0.05, 3).verdict()
    assert "too slow" in Machine(2, 0.05, 300).verdict()


def test_where_the_system_does_not_tell_only_timers_speak(tmp_path):
    assert used_now(tmp_path / "none") is None
    (tmp_path / "stat").write_text("cpu  a b\n")
    assert used_now(tmp_path / "stat") is None
    found = machine(None, BEFORE, [40, 40])
    assert found.others is None
    assert not found.is_busy
    assert found.is_slow
    assert "processors; agents' timers were 40 ms late" in found.told()


def test_counters_of_the_system_are_read_as_seconds(tmp_path):
    (tmp_path / "stat").write_text("cpu  100 200 300 9999 50 1 2 400 0 0\ncpu0 1 1 1 1\n")
    found = used_now(tmp_path / "stat")
    assert found.everybody_s > 0
    assert round(found.everybody_s / found.stolen_s, 3) == round(603 / 400, 3)
