"""
The control process: imports the journal, serves the operator port, and ends when the data process does.

It begins by taking what could be refused: the token, the ledger, the port. Then it says hello over the link; from there on the
data process goes on whatever happens here. When the link ends it imports what is left and goes. Blocking work (disk, SQL) is
done in one thread beside the loop, so that the port answers meanwhile.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn

from swarmgate.control import link, operator
from swarmgate.control.agent_keys import KeyOffice
from swarmgate.control.connections import OperatorConnection
from swarmgate.control.evidence_routes import AT_ONCE
from swarmgate.control.importer import Importer
from swarmgate.control.pricing import kept
from swarmgate.control.token import token
from swarmgate.control.watching import Watching
from swarmgate.control.writes import WriteOrders
from swarmgate.core.errors import BadInput
from swarmgate.core.guesses import Guess
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.shelf import Shelf
from swarmgate.stores.sql import ledger, writes
from swarmgate.stores.sql.agent_keys import AgentKeys

OK: Final = 0
FAILED: Final = 1  # these are cli/exits.py
REFUSED: Final = 2
UNREACHABLE: Final = 3
IDLE_S: Final = (
    0.4  # between two looks at the journal: a transaction for each few rows takes ten times as long for each
)
STATE_S: Final = 1.0
LOOK_S: Final = 5.0  # between two looks at budgets and lines, for metrics and alerts
CLOSES_WITHIN_S: Final = 3
FORGETS_EVERY_S: Final = 3_600.0
MOST_BEHIND_S: Final = 30.0
_WRITES_GONE: Final = (
    "is gone, and with it what was done already, so that a repeated write could be done again; restore a backup, or, once "
    "nobody repeats a write of the last 24 h, move the ledger away too: it is made anew from the journal"
)
_NOT_DURABLE: Final = "a sync failed: writes that happen once and calls under a cap in money are refused until the gate is started on a sound disk"
MOST_WAL_BYTES: Final = 1024 * 1024 * 1024


class Options(NamedTuple):
    """The state folder, and where operators are listened to."""

    state: Path
    host: str
    port: int


class Files(NamedTuple):
    """What it keeps: the ledger behind its importer, keyed writes, agents' keys."""

    importer: Importer
    writes: writes.Writes
    keys: AgentKeys

    @classmethod
    def opened(cls, folder: Path) -> "Files":
        """
        Those of a state folder. Errors: `BadInput` for one that cannot be used; OSError.

        The ledger can be made anew from the journal; what was done already stands in one file only.
        """
        if (folder / ledger.FILE).exists() and not (folder / writes.FILE).exists():
            raise BadInput(str(folder / writes.FILE), _WRITES_GONE)
        kept = writes.Writes.opened(folder)  # before the ledger, whose presence says that there was one
        return cls(Importer.opened(folder), kept, AgentKeys.opened(folder))

    def close(self) -> None:
        """Let all of them go."""
        for file in self:
            file.close()


class Control:
    """One control process."""

    def __init__(self, options: Options, files: Files) -> None:
        self._options = options
        self._importer = importer = files.importer
        self.state = options.state
        self.threads = asyncio.Semaphore(AT_ONCE)
        self.keys = KeyOffice(files.keys, Audit(options.state), self.order, lambda: kept(options.state).providers)
        self._over = asyncio.Event()
        self._is_alone = False  # the data process is gone
        self._peer: link.Peer | None = None
        self._state: Mapping[str, Any] = {}
        self._trouble = ""
        self._guessed = 0  # wrong tokens
        self._damaged = 0  # lines of the journal, that were told
        self._is_wal_large = False
        self._forget_s = 0.0  # when to look for what is too old
        self._caught_up_s = asyncio.get_running_loop().time()
        self._watching = Watching(importer.price, sys.stderr)
        importer.listeners.append(self._watching.hear)
        self._writes = WriteOrders(files.writes)
        self.orders = self._writes.table  # what the data process may ask

    async def run(self, door: socket.socket, secret: str) -> int:
        """Until the data process ends, or a signal comes; without one, whatever its journal holds is imported."""
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._over.set)
        host, port = door.getsockname()[:2]
        app = operator.application(self, secret, _own_names(host, port))
        server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                http=OperatorConnection,
                timeout_graceful_shutdown=CLOSES_WITHIN_S,
            )
        )
        try:
            self._peer = await link.connect(self._options.state, lambda: link.Peer(self.orders, self._gone))
            await self._peer.ask("hello", operator=f"{host}:{port}", agent_keys=self.keys.table())
        except (OSError, link.LinkLost):
            self._is_alone = True
            self._over.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([door]), name="operator port")
            importing = tasks.create_task(self._import(), name="importer")
            looking = [
                tasks.create_task(self._watch(), name="state of the gate"),
                tasks.create_task(self._look(), name="budgets and lines"),
                tasks.create_task(self._tidy(), name="what may be kept no longer"),
            ]
            await self._over.wait()
            for task in looking:
                task.cancel()
            await importing
            if self._is_alone:
                await asyncio.to_thread(self._importer.gate_died, unix_ms())
            server.should_exit = True
        return FAILED if self._trouble else OK

    async def order(self, name: str, said: link.Said) -> Any:
        """What the data process answers (operator.OperatorDesk)."""
        if self._peer is None:
            raise link.LinkLost("there is no data process")
        return await self._peer.ask(name, **said)

    def readiness(self) -> Mapping[str, str]:
        """What keeps the gate from being ready (operator.OperatorDesk)."""
        wrong = {
            "gate": "" if self._state else "has not said its state yet",
            "stopping": "open calls may end, new ones are refused" if self._state.get("is_stopping") else "",
            **self._records(),
        }
        return {part: sentence for part, sentence in wrong.items() if sentence}

    def _records(self) -> Mapping[str, str]:
        """What is wrong with what is kept, by part."""
        journal = self._state.get("journal", {})
        behind_s = asyncio.get_running_loop().time() - self._caught_up_s
        wrong = {
            "journal": journal.get("trouble") or ("" if journal.get("durable", True) else _NOT_DURABLE),
            "ledger": self._trouble or (f"is {behind_s:.0f} s behind the journal" if behind_s > MOST_BEHIND_S else ""),
        }
        return {part: sentence for part, sentence in wrong.items() if sentence}

    def scrape(self) -> bytes:
        """Metrics (operator.OperatorDesk)."""
        return self._watching.scrape()

    def guessed(self, source: str, guess: Guess) -> None:
        """A wrong token came from an address (operator.OperatorDesk): counted, and told once while it goes on."""
        self._guessed += 1
        if guess.begins:
            self._watching.trouble("tokens_guessed", unix_ms(), source=source)

    def alerts(self) -> Mapping[str, object]:
        """Alerts (operator.OperatorDesk)."""
        return self._watching.alerts()

    def _gone(self, _peer: link.Peer) -> None:
        self._is_alone = True
        self._over.set()

    async def _import(self) -> None:
        """Batch by batch until it is over and nothing is left."""
        loop, importer = asyncio.get_running_loop(), self._importer
        while True:
            is_over = self._over.is_set()  # before the look: what was written by then is seen by it
            try:
                is_end = await asyncio.to_thread(importer.step)
                if not (is_over or importer.has_more) and loop.time() >= self._forget_s:
                    is_done = await asyncio.to_thread(importer.forget, unix_ms())
                    self._forget_s = loop.time() + FORGETS_EVERY_S if is_done else 0.0
            except OSError as error:  # the disk is full or gone: what is there is still read later
                self._stands(f"cannot be written: {error}")
                is_end = True
            else:
                self._stands("")
            if is_end or not importer.has_more:
                self._caught_up_s = loop.time() if not self._trouble else self._caught_up_s
                if is_end and is_over:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_S):
                        await self._over.wait()

    def _stands(self, trouble: str) -> None:
        """How it is with the ledger; a change is told, and so are lines of the journal that nobody can read."""
        if trouble and not self._trouble:
            self._watching.trouble("ledger_not_written", unix_ms(), reason=trouble)
        elif self._trouble and not trouble:
            self._watching.trouble("ledger_written_again", unix_ms())
        self._trouble = trouble
        if self._importer.damaged > self._damaged:
            lines, self._damaged = self._importer.damaged - self._damaged, self._importer.damaged
            self._watching.trouble("journal_lines_damaged", unix_ms(), lines=lines)

    def _look_at_wal(self) -> None:
        """Whoever reads the ledger for long keeps its log from being given back (reliability LG-06): that is told once."""
        size = ledger.wal_bytes(self.state)
        if size > MOST_WAL_BYTES and not self._is_wal_large:
            self._watching.trouble("ledger_log_grows", unix_ms(), bytes=size, reason="somebody reads it for long")
        self._is_wal_large = size > MOST_WAL_BYTES

    async def _watch(self) -> None:
        while True:
            self._look_at_wal()
            try:
                self._state = await self.order("state", {})
            except (link.LinkLost, BadInput):
                self._state = {}
            await asyncio.sleep(STATE_S)

    async def _tidy(self) -> None:
        """Requests and answers are kept for so long, also where none comes after them."""
        while True:
            try:
                await asyncio.to_thread(Shelf(self.state).prune, unix_ms())
                await self._writes.forget(self._state.get("run", ""))
            except (OSError, BadInput) as error:
                self._watching.trouble("not_forgotten", unix_ms(), reason=str(error))
            await asyncio.sleep(FORGETS_EVERY_S)

    async def _look(self) -> None:
        while True:
            with suppress(link.LinkLost, BadInput):
                standing = await self.order("standing", {})
                standing["turned_away"]["token"] = self._guessed
                standing["store"] = "; ".join(f"{part}: {why}" for part, why in self._records().items())
                try:
                    await asyncio.to_thread(self._watching.look, standing)  # it waits for a batch; keyed writes do not
                except Exception as error:  # noqa: BLE001  figures must not end what keeps writes and keys; it is told
                    asyncio.get_running_loop().call_exception_handler({"message": "not looked at", "exception": error})
            await asyncio.sleep(LOOK_S)


class _Server(uvicorn.Server):
    """Signals are the control process's business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing is captured."""
        yield


def main(options: Options) -> int:
    """Run it; the exit code. What is wrong is said in one line."""
    try:
        secret = token(options.state)
        files = Files.opened(options.state)
    except (BadInput, OSError) as error:
        why = error if isinstance(error, BadInput) else f"{options.state}: {error.strerror}"
        print(f"control: {why}", file=sys.stderr)  # noqa: T201  a process without a terminal of its own
        return REFUSED
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        door = socket.create_server((options.host, options.port), family=family, backlog=128)
    except OSError as error:
        why = f"{options.host}:{options.port} cannot be listened on: {error.strerror}; --operator-port names another"
        print(f"control: {why}", file=sys.stderr)  # noqa: T201  see above
        return UNREACHABLE
    return asyncio.run(_run(options, files, door, secret))


async def _run(options: Options, files: Files, door: socket.socket, secret: str) -> int:
    try:
        return await Control(options, files).run(door, secret)
    finally:
        await asyncio.get_running_loop().shutdown_default_executor()  # a thread may still be inside what is closed next
        files.close()


def _own_names(host: str, port: int) -> frozenset[str]:
    shown = f"[{host}]" if ":" in host else host
    return frozenset({f"{shown}:{port}", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"})
