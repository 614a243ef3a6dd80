"""Whatever ends the demo, its children end first."""

import os
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGTERM, getsignal

import pytest

from dispositions import found
from swarmgate.lab.demo.children import Order, ending_in_order, running


@pytest.mark.parametrize("number", [SIGTERM, SIGHUP])
def test_a_stop_and_a_terminal_that_is_gone_end_the_children(number, tmp_path):
    with found(SIG_DFL, number):
        started = running("one", Order("input()", []), tmp_path)
        with pytest.raises(KeyboardInterrupt), ending_in_order(), started as child:
            os.kill(os.getpid(), number)
        assert child.wait() != 0
        assert getsignal(number) is SIG_DFL


def test_what_was_told_to_go_on_without_a_terminal_does():
    with found(SIG_IGN, SIGHUP), ending_in_order():
        os.kill(os.getpid(), SIGHUP)
        assert getsignal(SIGHUP) is SIG_IGN
