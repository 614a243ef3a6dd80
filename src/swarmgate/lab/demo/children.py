"""
The demo's processes: started with the same interpreter, told and ended by their pid, and by no other's.

Their words on stderr go to a file each in the demo's folder, so that a failure can be shown.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from swarmgate.lab.errors import LabError

COMMAND = "from swarmgate.cli import main; main()"
STAND_INS = "import sys; from swarmgate.lab.processes import serve_for_demo; serve_for_demo(*sys.argv[1:])"
AGENTS = "import sys; from swarmgate.lab.processes import play; play(*sys.argv[1:])"
STOP_S = 40.0


class Order(NamedTuple):
    """What to run: a piece of Python, its arguments, and what stands in its environment besides ours."""

    code: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = {}


class Child:
    """One running process of ours."""

    def __init__(self, name: str, order: Order, folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own command
                [sys.executable, "-c", order.code, *order.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **order.environment},
                start_new_session=True,  # Ctrl-C is for the parent, which ends its children in order
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def lines(self) -> Iterator[bytes]:
        """What it says, line by line, until it ends."""
        while line := self._out.readline():
            yield line

    def first_line(self) -> bytes:
        """Its first line. Errors: `LabError` with its last words if it ends before."""
        line = self._out.readline()
        if not line:
            raise LabError(self.name, f"did not start: {self.last_words()}")
        return line

    def must_run(self) -> None:
        """Errors: `LabError` with its last words if it has ended."""
        if self._process.poll() is not None:
            raise LabError(self.name, f"ended with {self._process.returncode}: {self.last_words()}")

    @property
    def _out(self) -> IO[bytes]:
        out: IO[bytes] | None = self._process.stdout
        assert out is not None
        return out

    def last_words(self) -> str:
        """The end of what it said on stderr."""
        self._process.wait()
        return self._log.read_text(encoding="utf-8", errors="replace")[-2_000:].strip() or "it said nothing"

    def stop(self) -> int:
        """Ask it to end, then make it; its exit code."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        code = self._process.wait()
        self._out.close()
        return code

    def wait(self) -> int:
        """Its exit code, when it has ended by itself."""
        return self._process.wait()


@contextmanager
def ending_in_order() -> Iterator[None]:
    """A stop and a terminal that is gone end the children as Ctrl-C does: with KeyboardInterrupt."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]  # nohup stays what it is
    for number in heard:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


@contextmanager
def running(name: str, order: Order, folder: Path) -> Iterator[Child]:
    """A child that has ended when the block ends, however it ends."""
    child = Child(name, order, folder)
    try:
        yield child
    finally:
        child.stop()
