import io

from rich.console import Console

from swarmgate.lab.agents.records import CallRow, lines_of
from swarmgate.lab.demo.arm import Progress
from swarmgate.lab.demo.live import LiveScreen
from swarmgate.lab.demo.plan import PROVIDER, Lengths, make_plan
from swarmgate.lab.demo.run import CALLS, ArmSetup, Places
from swarmgate.lab.demo.table import ROWS
from swarmgate.lab.demo.tail import Tail
from swarmgate.lab.standin.witness_log import Seen, WitnessLog

PLAN = make_plan(40, Lengths(0, 10, 0, 0, 0))._replace(keys=2)
SETUP = ArmSetup("gate", "gate", 10, 1, calm_s=5)
COUNTS = {"wanted": 50, "answered": 40, "deferrals": 7, "refused": 1}
NOW = Progress(123, 6.0, {"waiting": 3, "answering": 4}, COUNTS, 12.5, 2_500_000.0)


def row(call, priority, wanted_ms):
    return CallRow(call, "chat", priority, "model", wanted_ms, 0, 9_500, "answered", 9, 9, 9, 1, 0, 0, "", 0, 200, "")


def places(folder):
    """What an arm's processes have written so far: one key was asked for half of its limit, the other for four times as much."""
    log = WitnessLog(folder / "seen.jsonl")
    half = PLAN.tokens_limit // 2
    log.write(Seen(1_000, PROVIDER, "scope-1", "key-1", 1, "a/1", half, 200))
    log.write(Seen(9_000, PROVIDER, "scope-2", "key-2", 1, "a/2", 2 * half, 200))
    log.write(Seen(9_001, PROVIDER, "scope-2", "key-2", 1, "a/3", 6 * half, 429))
    log.write(Seen(9_001, "web", "a.org", "", 2, "a/4", 0, 200))
    log.close()
    (folder / CALLS).write_bytes(lines_of([row("a/1", "P0", 100), row("a/2", "P2", 1_000), row("a/3", "P1", 2_000)]))
    return Places(folder, folder / "seen.jsonl", {}, 8_787, ())


def shown(tmp_path, progress, *, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with LiveScreen(console, PLAN) as screen:
        screen.arm(SETUP, places(tmp_path))
        screen.progress(progress)
    return out.getvalue()


def test_a_terminal_shows_states_rates_and_what_is_left(tmp_path):
    text = shown(tmp_path, NOW, terminal=True)
    for words in (
        "through the gate",
        "6 of 15 s, above capacity",
        "33 thinking",
        "2.5 M",
        "P0 900 ms, P2 8.0 s",
        "0 % to 50 % of the limit",
        "a.org\N{NO-BREAK SPACE}1",
    ):
        assert words in text


def test_the_table_has_the_same_words(tmp_path):
    text, labels = shown(tmp_path, NOW, terminal=True), {label for label, _ in ROWS}
    words = {"model calls answered", "tokens answered", "refusals agents saw"}
    assert words < labels
    assert all(word in text for word in words)
    assert "P0 waits, P99" in labels
    assert "waits, P99" in text


def test_before_the_first_wish_agents_connect(tmp_path):
    waiting = Progress(0, 0.0, {}, {}, 0.0, 0.0)
    assert "agents connect" in shown(tmp_path, waiting, terminal=True)


def test_a_log_gets_a_line(tmp_path):
    assert "7 deferrals, 1 refusals" in shown(tmp_path, NOW, terminal=False)


def test_an_unfinished_row_waits(tmp_path):
    path = tmp_path / "seen.jsonl"
    path.write_bytes(b'["seen", 5, "web", "a.org", "", 1, "", 0, 200]\n["seen", 6, "we')
    tail = Tail(path, tmp_path / "none")
    tail.read()
    assert tail.hosts() == "a.org\N{NO-BREAK SPACE}1"
    with path.open("ab") as file:
        file.write(b'b", "a.org", "", 1, "", 0, 200]\n')
    tail.read()
    assert tail.hosts() == "a.org\N{NO-BREAK SPACE}2"
