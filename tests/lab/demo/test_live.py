import io

from rich.console import Console

from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.live import LiveScreen, Tail
from swarmgate.lab.demo.plan import PROVIDER, Lengths, make_plan
from swarmgate.lab.demo.run import ArmSetup, Places
from swarmgate.lab.standin.witness_log import Seen, WitnessLog

PLAN = make_plan(40, Lengths(0, 10, 0, 0, 0))
SETUP = ArmSetup("gate", "gate", 10, 1, calm_s=5)
COUNTS = {"wanted": 50, "answered": 40, "deferrals": 7, "refused": 1}
NOW = Progress(123, 6.0, {"waiting": 3, "answering": 4}, COUNTS, 12.5, 2_500_000.0, {"P0": 900})


def witness(path):
    log = WitnessLog(path)
    log.write(Seen(1_000, PROVIDER, "scope-1", "key-1", 1, "a/1", PLAN.tokens_limit // 2, 200))
    log.write(Seen(1_001, "web", "a.org", "", 2, "a/2", 0, 200))
    log.close()
    return Places(path.parent, path, {}, 8_787, ())


def shown(tmp_path, progress, *, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with LiveScreen(console, PLAN) as screen:
        screen.arm(SETUP, witness(tmp_path / "seen.jsonl"))
        screen.progress(progress)
    return out.getvalue()


def test_a_terminal_shows_states_rates_and_what_is_left(tmp_path):
    text = shown(tmp_path, NOW, terminal=True)
    for words in (
        "through the gate",
        "6 of 15 s, above capacity",
        "33 thinking",
        "2.5 M",
        "P0 900 ms",
        "least 50%",
        "a.org 1",
    ):
        assert words in text


def test_before_the_first_wish_agents_connect(tmp_path):
    waiting = Progress(0, 0.0, {}, {}, 0.0, 0.0, {})
    assert "agents connect" in shown(tmp_path, waiting, terminal=True)


def test_a_log_gets_a_line(tmp_path):
    assert "refused by targets 1" in shown(tmp_path, NOW, terminal=False)


def test_an_unfinished_row_waits(tmp_path):
    path = tmp_path / "seen.jsonl"
    path.write_bytes(b'["seen", 5, "web", "a.org", "", 1, "", 0, 200]\n["seen", 6, "we')
    tail = Tail(path)
    tail.read()
    assert tail.hosts() == "a.org 1"
    with path.open("ab") as file:
        file.write(b'b", "a.org", "", 1, "", 0, 200]\n')
    tail.read()
    assert tail.hosts() == "a.org 2"
