"""What a process finds its signals set to: whoever runs the tests may ignore some (`nohup make test`), and children inherit that."""

import contextlib
import signal


@contextlib.contextmanager
def found(disposition, *numbers):
    """These signals are so while this lasts, here and in what is started meanwhile."""
    before = {number: signal.signal(number, disposition) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
