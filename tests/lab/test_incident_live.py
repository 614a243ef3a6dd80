"""The stage of the live incident: both processes up, the operator port asked, nothing left; the play itself takes minutes."""

from swarmgate.lab import incident_live


def test_the_stage_stands_and_is_gone_afterwards(tmp_path):
    with incident_live.world(tmp_path) as places:
        assert incident_live._ask(places, "/alerts") == {"firing": [], "notices": []}
        gate = places.gate
        gate.must_run()
    assert gate.stop() == 0
    assert "context" not in (tmp_path / "gate.toml").read_text()
