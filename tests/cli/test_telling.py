import io

from rich.console import Console

from swarmgate.cli.telling import Telling


def told(*, terminal, every_s=0.0):
    out = io.StringIO()
    with Telling(Console(file=out, force_terminal=terminal, width=100, color_system=None), every_s) as telling:
        telling.at("p2-flood, 200 agents", 0.25)
        telling.at("direct agents", 0.5, "7 [open]")
    return out.getvalue()


def test_a_log_gets_plain_lines_and_not_too_often():
    assert told(terminal=False).splitlines() == ["p2-flood, 200 agents: 25 %", "direct agents: 50 %, 7 [open]"]
    assert told(terminal=False, every_s=3_600) == ""


def test_a_terminal_gets_a_bar_for_each_piece_of_work():
    text = told(terminal=True)
    assert "p2-flood, 200 agents" in text
    assert "direct agents" in text
