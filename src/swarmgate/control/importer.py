"""
The journal's reader in the control process: batch after batch into the ledger, then to whoever else listens.

A batch and its position are one transaction. Listeners (metrics, alerts, log lines) hear of rows once they are in the ledger,
in order, at least those of this process's life; one that fails is told of, and stops nobody else.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import select

from swarmgate.control.gathering import OPEN, Gathering, Open
from swarmgate.control.pricing import Pricer, pricer
from swarmgate.stores.journal import reader, rows
from swarmgate.stores.journal.reader import Position
from swarmgate.stores.journal.segments import FOLDER
from swarmgate.stores.sql.changes import write
from swarmgate.stores.sql.damage import FILE_ERRORS, said
from swarmgate.stores.sql.forgetting import forget
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.tables import attempts, calls, imported

NICENESS: Final = 5
Listener = Callable[[Sequence[rows.Row]], None]
MANY_ROWS: Final = 1_000  # at once: the journal may hold more
USUAL_PRICE: Final[Pricer] = lambda *_: None  # noqa: E731  no price is known

_OPEN_COLUMNS: Final = (  # in the order of rows.Intent, without charges
    attempts.c.seq,
    attempts.c.sent_ms,
    attempts.c.call,
    attempts.c.attempt,
    calls.c.agent,
    calls.c.task,
    calls.c.goal,
    calls.c.step,
    calls.c.operation,
    calls.c.task_type,
    calls.c.team,
    calls.c.priority,
    attempts.c.target,
    attempts.c.model,
    attempts.c.key,
    attempts.c.rung,
    attempts.c.policy,
    calls.c.arrived_ms,
    attempts.c.prompt,
    attempts.c.reserve,
    calls.c.effect,
    calls.c.trace,
    calls.c.client_request_id,
)


def give_way() -> None:
    """
    Let calls go first where they share a processor with bookkeeping: a smaller part of it, and no waking up into their turn.

    Not an idle task: alerts and the operator port live beside the import, also where both processors are busy.
    """
    os.nice(NICENESS)
    if hasattr(os, "sched_setscheduler"):  # Linux: sched(7), SCHED_BATCH
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class Importer:
    """
    `step` by step; `listeners` may be added to. `rows` were imported by this process, `damaged` lines were none.

    `has_more`: the last step left more to be read; otherwise the next one may wait until a transaction is worth it.
    """

    def __init__(self, folder: Path, ledger: Ledger, price: Pricer = USUAL_PRICE) -> None:
        self._journal = folder / FOLDER
        self.price = price
        self.ledger = ledger
        self.listeners: list[Listener] = []
        self.rows = self.damaged = 0
        self.has_more = False
        self._load()

    @classmethod
    def opened(cls, folder: Path) -> Self:
        """The importer of a state folder. Errors: `BadInput` for a ledger that cannot be used; OSError."""
        return cls(folder, Ledger.opened(folder), pricer(folder))

    def step(self) -> bool:
        """
        Import the next batch; True if there was none.

        Errors: OSError if the journal cannot be read, or the ledger not be written: nothing is lost, ask again later.
        """
        batch = reader.read(self._journal, self._position)
        self.has_more = len(batch.rows) >= MANY_ROWS or batch.position.segment != self._position.segment
        if batch.position == self._position:
            return batch.is_end
        gathering = Gathering(self._open, self.price)
        for row in batch.rows:
            gathering.add(row)
        last = batch.rows[-1] if batch.rows else None
        for kind, lines in (
            ("damaged", batch.damaged),
            ("torn", batch.torn),
            ("unknown", batch.unknown),
            ("gone", batch.gone),
        ):
            if lines:
                gathering.trouble(kind, lines, last.seq if last else batch.position.segment, last.at_ms if last else 0)
        self._write(gathering, batch.position, len(batch.rows))
        self.rows += len(batch.rows)
        self.damaged += batch.damaged + batch.torn
        for listener in self.listeners:
            listener(gathering.told)
        return False

    def forget(self, now_ms: int) -> bool:
        """Let some of what is too old go; True once there is nothing left to do. Errors: OSError."""
        try:
            with self.ledger.connection() as link:
                return not forget(link, now_ms)
        except FILE_ERRORS as error:
            raise OSError(said(error)) from error

    def gate_died(self, at_ms: int) -> None:
        """The gate is gone; if it did not say so, what was open with it is marked. Errors: OSError."""
        if self._open.run and self._open.intents:
            gathering = Gathering(self._open, self.price)
            gathering.gate_died(at_ms)
            self._write(gathering, self._position, 0)

    def close(self) -> None:
        """Let the ledger go."""
        self.ledger.close()

    def _load(self) -> None:
        """Where the ledger stands; also after a batch that could not be written."""
        with self.ledger.connection() as link:
            found = link.execute(select(imported)).mappings().first()
            waiting = select(*_OPEN_COLUMNS).join(calls, calls.c.id == attempts.c.call).where(attempts.c.fate == OPEN)
            found_open = [tuple[Any, ...](one) for one in link.execute(waiting)]
        intents = [rows.Intent(*[*told, (), own]) for *told, own in found_open]
        self._position = Position(found["segment"], found["offset"]) if found else Position()
        self._total = found["rows"] if found else 0
        self._open = Open(intents, found["run"] if found else "", found["gap_seq"] if found else 0)

    def _write(self, gathering: Gathering, position: Position, rows_read: int) -> None:
        told = {
            "segment": position.segment,
            "offset": position.offset,
            "rows": self._total + rows_read,
            "run": self._open.run,
            "gap_seq": self._open.gap_seq,
        }
        try:
            with self.ledger.connection() as link:
                write(link, gathering.changes, told)
        except FILE_ERRORS as error:
            self._load()
            raise OSError(said(error)) from error
        self._position, self._total = position, told["rows"]
