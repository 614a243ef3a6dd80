"""Whatever ends the demo, its children end first."""

import os
import signal

import pytest

from swarmgate.lab.demo.children import Order, ending_in_order, running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_and_a_terminal_that_is_gone_end_the_children(number, tmp_path):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ending_in_order(), running("one", Order("input()", []), tmp_path) as child:
        os.kill(os.getpid(), number)
    assert child.wait() != 0
    assert signal.getsignal(number) is before


def test_what_was_told_to_go_on_without_a_terminal_does():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_in_order():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
