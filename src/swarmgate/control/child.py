"""
The control process as seen from the data process: started beside it, started again when it dies, never waited for by calls.

It runs in an interpreter of its own, so that nothing it imports weighs on the data process (design 3: Two processes), and in
a session of its own, so that Ctrl-C reaches the data process first.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from swarmgate.core.backoff import delay_ms

MODULE: Final = "swarmgate.control"
FINISH_S: Final = 20.0
_HEALTHY_S: Final = 60.0  # a child that lived for so long begins its restarts anew


class Child:
    """
    One control process, and its successors, which get the `arguments` as they are then; `say` hears of deaths.
    What its environment holds of `secrets` is left out: it needs none of them.

    `refused` is set to the exit code of a first one that will not run here whatever is tried: its words are on stderr. What
    keeps a later one from running may pass, as a full table of processes does, or be mended: it is tried again.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        final_codes: frozenset[int],
        say: Callable[[str], None],
        secrets: frozenset[str] = frozenset(),
    ) -> None:
        self._command = (sys.executable, "-m", MODULE)
        self.arguments = list(arguments)
        self._final = final_codes
        self._say = say
        self._secrets = secrets
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._is_wanted = True
        self._deaths = 0
        self.refused: int | None = None
        self.ready = asyncio.Event()  # set by whoever hears that it works, and when it refuses

    async def start(self) -> None:
        """Start it, and watch it from now on. Errors: OSError."""
        await self._spawn()
        self._watch = asyncio.get_running_loop().create_task(self._keep_alive(), name="control process")

    async def finish(self, within_s: float = FINISH_S) -> int | None:
        """Wait for its end, which the end of the link brings about; its exit code, None if it had to be killed."""
        self._is_wanted = False
        if self._process is None or self._watch is None:
            return 0
        if self._process.returncode is not None:
            self._watch.cancel()
            return self._process.returncode
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                return await self._process.wait()
        self._process.kill()
        await self._process.wait()
        return None

    @property
    def pid(self) -> int:
        """Of the process that runs now; 0 if there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else 0

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *self.arguments,
            stdin=DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if value not in self._secrets},
        )

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            process, since_s = self._process, loop.time()
            assert process is not None
            code = await process.wait()
            if not self._is_wanted:
                return
            if code in self._final and not self.ready.is_set():
                self.refused = code
                self.ready.set()
                return
            self._deaths = 1 if loop.time() - since_s > _HEALTHY_S else self._deaths + 1
            await self._again(process.pid, f"ended ({code})")

    async def _again(self, last: int, why: str) -> None:
        """Start the next one as soon as it can be, more slowly each time."""
        while True:
            wait_ms = delay_ms(f"control {last}", self._deaths - 1)
            self._say(f"the control process {why}; calls go on, and it is started again in {wait_ms} ms")
            await asyncio.sleep(wait_ms / 1_000)
            try:
                await self._spawn()
            except OSError as error:
                self._deaths += 1
                why = f"cannot be started ({error.strerror})"
            else:
                return
