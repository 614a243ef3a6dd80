"""
The data process whole: budgets, journal and gate, the control process beside them, and the order in which they end.

What is started first ends last. SIGTERM drains: no new calls, open ones end, the journal is closed, the control process
imports what is left of it and goes, budgets are saved (design 3: Two processes).
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarmgate.config import Config, Listen
from swarmgate.control import heap, link
from swarmgate.control.child import Child
from swarmgate.control.orders import DataOrders, limits_of
from swarmgate.control.pricing import keep
from swarmgate.control.reload import Reload
from swarmgate.core.book import Book
from swarmgate.core.errors import BadInput
from swarmgate.core.learning import Revision as LearnedRevision
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call
from swarmgate.engine.clock import LoopClock, unix_ms
from swarmgate.gate.once import Ask
from swarmgate.gate.service import Gate, Plan
from swarmgate.ports import NearStore
from swarmgate.providers.tables import dialect_named, dialect_of
from swarmgate.stores.journal import counters, learned
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.journal.in_force import AT_START, InForce, Limit, Why, row_of
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.reader import newest_policy
from swarmgate.stores.journal.segments import FOLDER, newest
from swarmgate.stores.journal.syncing import Syncing
from swarmgate.stores.journal.writer import Writer
from swarmgate.stores.letters.shelf import Shelf
from swarmgate.stores.memory import snapshot
from swarmgate.wiring import gate, plan

STARTS_WITHIN_S: Final = 60.0
MOST_TOLD: Final = 50_000
LEFT_BY_A_GATE: Final = ("limits.json", "ledger.sqlite3", "writes.sqlite3")  # beside its journal
EARLIEST_MS: Final = 1_767_225_600_000  # 2026-01-01: there was no gate before
REFUSED: Final = 2  # cli/exits.py: USAGE
UNREACHABLE: Final = 3


class Stop(Exception):
    """It cannot start; `code` of cli/exits.py, and a sentence for who started it (empty: it was said already)."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class Setting(NamedTuple):
    """
    Where it listens and what it says.

    `operator` None = without a control process. `say` is for people; `begun` hears the data and the operator port once it
    serves; `failed` is told of a bug in one call. `again` reads the configuration anew at SIGHUP; it raises what is wrong.
    `secrets` are the keys that the control process is not to inherit.
    """

    listen: Listen
    state: Path
    operator: Listen | None
    say: Callable[[str], None]
    begun: Callable[[int, str], None]
    failed: Callable[[Call, Exception], None]
    again: Callable[[], Config] | None = None
    secrets: frozenset[str] = frozenset()


async def serve(config: Config, setting: Setting) -> int:
    """Serve until SIGTERM or SIGINT; the number of calls that had to be given up. Errors: `Stop`."""
    is_open = config.access.agent_keys != "required"
    if setting.operator is None and not is_open:
        raise Stop(
            REFUSED, 'access.agent_keys is "required": the control process has the keys, so none goes without it'
        )
    if unix_ms() < EARLIEST_MS:
        raise Stop(
            REFUSED,
            f"the clock says {unix_ms() // 1_000} s since 1970, so it was never set; set it, then start the gate",
        )
    loop = asyncio.get_running_loop()
    with _limits_in_force(plan(config), setting, LoopClock(loop).now_ms()) as (served, in_force, kept):
        setting.say(kept.sentence)
        journal = _journal(loop, config, setting)
        journal.policy, journal.book = in_force.policy, kept.book
        limits = limits_of(served)
        for row in in_force.rows(limits, *journal.next()):
            journal.add(row)
        running = gate(loop, config, setting.failed, kept.book, journal=journal, served=served)
        running.teacher.heard = partial(_note_learned, journal, in_force)
        journal.clock = running.clock
        journal.sync = journal.soon = Syncing(loop, journal.writer)
        running.exchanges.till.is_on_record = lambda: journal.writer.is_sound
        journal.on_budget = Beginnings(running, journal, in_force, limits)
        orders = DataOrders(running, journal, in_force, limits, Audit(setting.state))
        orders.ceilings(served.ceilings, AT_START)
        _tell_what_changed(in_force, orders, setting)
        data = _Data(
            running, orders, setting, Reload(config, running, orders, setting.say, partial(_keep_prices, setting.state))
        )
        return await _run(data, running, orders, journal, config)


def _tell_what_changed(in_force: InForce, orders: DataOrders, setting: Setting) -> None:
    """The file was changed while nobody ran, or an operator's limit ends with the run: that is a change like any other."""
    if in_force.replaced:
        try:
            orders.audit_limits("configuration at start", "", AT_START)
        except BadInput as bad:
            setting.say(str(bad))


def _journal(loop: asyncio.AbstractEventLoop, config: Config, setting: Setting) -> FileJournal:
    """The journal of this run, behind that of the last one."""
    clock, folder = LoopClock(loop), setting.state / FOLDER
    try:
        _keep_prices(setting.state, config)
        return FileJournal(loop, clock, unix_ms, Writer(folder, clock.now_ms(), setting.say))
    except OSError as error:
        raise Stop(REFUSED, f"{setting.state} cannot keep a journal: {error.strerror}") from None


async def _run(data: "_Data", running: Gate, orders: DataOrders, journal: FileJournal, config: Config) -> int:
    """From the first call to the last row; the number of calls that had to be given up."""
    setting, left = data.setting, 0
    running.keep_letters(Shelf(setting.state), bodies=config.records.dead_letters)
    if setting.operator is not None:
        running.keep_writes(
            journal.run, partial(ask_durably, journal, data.ask_control), answers=config.records.answers
        )
        orders.admit_keys(running.ask_for_keys(required=config.access.agent_keys == "required"))
    keeping = learned.Keeping(asyncio.get_running_loop(), setting.state, partial(_learned_of, running), setting.say)
    try:
        left = await data.run()
    finally:
        keeping.end()
        journal.close(left)
        await data.end()
    return left


async def ask_durably(journal: FileJournal, ask: Ask, order: str, **said: Any) -> Any:
    """As `ask`; but a disk that lost what was synced is trusted with no more writes that may happen once only (LG-02)."""
    if order == "write_begin" and not journal.writer.durable:
        raise link.LinkLost("a sync of the journal failed")
    return await ask(order, **said)


class Beginnings:
    """Limits that no configuration names, those of hosts met on the way: what each begins with is a revision, too."""

    def __init__(self, running: Gate, journal: FileJournal, in_force: InForce, known: Mapping[str, Limit]) -> None:
        self._gate = running
        self._journal = journal
        self._in_force = in_force
        self._told = set(known)

    def __call__(self, budget: str, target: str, at_ms: int) -> None:
        """An attempt is about to take from it."""
        published = self._gate.published.get(budget)
        cell = self._gate.store.book.cells.get(budget) if isinstance(self._gate.store, NearStore) else None
        egress = self._gate.egress
        if budget in self._told or published is None or cell is None or (egress and egress.hosts.is_open(budget)):
            return
        if len(self._told) >= MOST_TOLD:
            self._told.clear()
        self._told.add(budget)
        self._journal.policy = self._in_force.next_policy()
        limit = Limit(cell.limits, published, target)
        number = (self._journal.writer.sequence + 1, at_ms)
        self._journal.add(row_of(budget, limit, self._in_force.policy, Why("learning", "where it begins"), number))


def _note_learned(
    journal: FileJournal, in_force: InForce, lesson: Lesson, limits: Limits, revision: LearnedRevision
) -> None:
    """A change that a host taught is a revision like any other."""
    journal.policy = in_force.next_policy()
    journal.add(learned.row(journal.next(), in_force.policy, lesson, limits, revision))


def _learned_of(running: Gate) -> learned.Kept:
    """What is known of hosts, its instants in unix time."""
    if running.egress is None:
        return learned.NOTHING
    hosts, ahead_ms = running.egress.hosts, unix_ms() - running.clock.now_ms()
    return learned.Kept(hosts.learned(), {host: until_ms + ahead_ms for host, until_ms in hosts.pauses().items()})


def _keep_prices(state: Path, config: Config) -> None:
    """What the control process needs to price calls, without the secrets of the configuration."""
    own = {name: table.price for name, table in config.prices.items()}
    dialects = {
        name: dialect_named(target.provider) if target.provider else dialect_of(target.base_url.host)
        for name, target in config.targets.items()
    }
    keep(state, own, {name: dialect.name for name, dialect in dialects.items()})


@contextmanager
def _limits_in_force(served: Plan, setting: Setting, now_ms: int) -> Iterator[tuple[Plan, InForce, snapshot.Start]]:
    """The state folder is ours while this lasts; limits have the revisions that they had there."""
    state = setting.state
    try:
        has_worked = any((state / name).exists() for name in LEFT_BY_A_GATE)
        in_force = InForce(state, now_ms)
        in_force.not_before(newest_policy(state / FOLDER))
        adopted = in_force.adopt(limits_of(served), AT_START, now_ms)
        budgets = {**served.budgets, **adopted}
        others = served.caps.limits_of if served.caps is not None else lambda _budget: None
        kept = snapshot.begin(state, now_ms, budgets, others, journal=newest(state / FOLDER) or int(has_worked))
        if kept.book.birth_ms == kept.book.now_ms:  # before the book may be saved, whatever becomes of this start
            told = _restored(state / FOLDER, kept.book, budgets, others, now_ms)
            kept = kept._replace(sentence=kept.sentence + told)
        in_force.save()
        if served.egress is not None:
            before, ahead_ms = learned.load(state, setting.say), unix_ms() - now_ms
            pauses = {host: until_ms - ahead_ms for host, until_ms in before.pauses.items()}
            served = served._replace(egress=served.egress._replace(kept=before.lessons, pauses=pauses))
    except snapshot.FolderInUse as error:
        raise Stop(UNREACHABLE, str(error)) from None
    except (FileExistsError, NotADirectoryError):
        raise Stop(REFUSED, f"--state {state}: a file stands there or above it; name a folder") from None
    except OSError as error:
        raise Stop(REFUSED, f"{state} cannot keep the budgets: {error.strerror}") from None
    if in_force.sentence:
        setting.say(in_force.sentence)
    try:
        yield served._replace(budgets=budgets), in_force, kept
    finally:
        try:
            in_force.save()  # numbers that learned changes were given are not given again
            snapshot.finish(state, kept, journal=newest(state / FOLDER))
        except OSError as error:
            setting.say(f"{state} cannot keep the budgets ({error.strerror}): the next start is cold")


def _restored(
    folder: Path, book: Book, budgets: Mapping[str, Limits], others: Callable[[str], Limits | None], now_ms: int
) -> str:
    """Let the counters of a cold book hold what was used of them; what there is to be said of it. Errors: OSError."""
    if not newest(folder):
        used_up = counters.use_up(book, budgets, now_ms)
        why = "no journal tells what was used of them; restore it, or begin in another folder"
        return f"; {used_up} counters start used up: {why}" if used_up else ""
    found = counters.restore(folder, book, lambda name: budgets.get(name) or others(name), now_ms, named=budgets)
    told = f"; {found.counters} counters go on from the most that is known of them" if found.counters else ""
    if found.damaged:
        told += f"; {found.damaged} damaged lines of the journal are taken for as much use as they may have told"
    return told


class _Data:
    """The gate, its link, and the control process."""

    def __init__(self, running: Gate, orders: DataOrders, setting: Setting, reload: Reload) -> None:
        self._gate = running
        self._reload = reload
        self.setting = setting
        self._orders = orders.table
        self._peers: set[link.Peer] = set()
        self._control: link.Peer | None = None  # the one that said hello
        self._door: asyncio.Server | None = None
        self._child: Child | None = None
        self._operator = ""
        self._stopped = asyncio.Event()

    async def run(self) -> int:
        """From listening to the last call; how many were given up. Errors: `Stop`."""
        setting, loop = self.setting, asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._stopped.set)
        if setting.again is not None:
            loop.add_signal_handler(signal.SIGHUP, self._reload.do, setting.again)
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup: it goes on without its terminal
            loop.add_signal_handler(signal.SIGHUP, self._stopped.set)
        self._door = await link.listen(setting.state, self._peer)
        if setting.operator is not None:
            await self._start_control(setting.operator)
        if self._stopped.is_set():
            return 0
        try:
            port = await self._gate.start(*setting.listen)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else error.strerror  # the loop's words repeat the address
            told = f"{shown(setting.listen)} cannot be listened on: {why}; --port names another"
            raise Stop(UNREACHABLE, told) from None
        setting.begun(port, self._operator)
        heap.settle()
        await self._stopped.wait()
        setting.say("stopping: no new calls; open ones may end")
        return await self._gate.stop()

    async def end(self) -> None:
        """Nothing more will be noted: the control process imports the rest and goes."""
        if self._door is not None:
            self._door.close()
        for peer in list(self._peers):
            peer.close()
        if self._child is not None and await self._child.finish() is None:
            self.setting.say("the control process did not end in time; the next one imports what is left")
        (self.setting.state / link.SOCKET).unlink(missing_ok=True)

    async def _start_control(self, operator: Listen) -> None:
        """Have it ready before anything is served: what it refuses, an older schema's ledger for one, is refused whole."""
        arguments = ("--state", str(self.setting.state), "--operator", shown(operator))
        self._child = child = Child(
            arguments, frozenset({REFUSED, UNREACHABLE}), self.setting.say, self.setting.secrets
        )
        try:
            await child.start()
        except OSError as error:
            raise Stop(REFUSED, f"the control process cannot be started: {error.strerror}") from None
        loop = asyncio.get_running_loop()
        waits = [loop.create_task(event.wait(), name="start") for event in (child.ready, self._stopped)]
        done, _ = await asyncio.wait(waits, timeout=STARTS_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if not done:
            raise Stop(UNREACHABLE, f"the control process did not begin within {STARTS_WITHIN_S:g} s")
        if child.refused is not None:
            raise Stop(child.refused, "the control process cannot begin, so nothing does; --no-control goes without")

    def _peer(self) -> link.Peer:
        peer = link.Peer({**self._orders, "hello": lambda said: self._hello(peer, said)}, self._gone)
        self._peers.add(peer)
        return peer

    def _gone(self, peer: link.Peer) -> None:
        self._peers.discard(peer)
        if peer is self._control:
            self._control = None

    async def ask_control(self, order: str, **said: Any) -> Any:
        """What the control process answers. Errors: `BadInput`, `LinkLost` (also if there is none now)."""
        if self._control is None:
            raise link.LinkLost("there is no control process")
        return await self._control.ask(order, **said)

    def _hello(self, peer: link.Peer, said: link.Said) -> link.Said:
        """The control process works, and says where its port is."""
        self._control = peer
        if "agent_keys" in said:
            self._orders["agent_keys"](said["agent_keys"])
        self._operator = str(said.get("operator", ""))
        if self._child is not None:
            self._child.arguments[-1] = self._operator  # its successors listen where it did
            self._child.ready.set()
        return {}


def shown(listen: Listen) -> str:
    """An address as URLs write it."""
    return f"[{listen.host}]:{listen.port}" if ":" in listen.host else f"{listen.host}:{listen.port}"
