"""A disk that can be full or broken, and calls to note: shared by the tests of the journal."""

import os

from life import rung
from swarmgate.core.commands import Answer, End, Intent, Note
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.record import Call, Step
from swarmgate.core.waiting import Room
from swarmgate.engine.disk import DISK
from swarmgate.ports import AttemptFacts
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.reader import Position, read
from swarmgate.stores.journal.segments import Retention
from swarmgate.stores.journal.writer import Writer

OK = classify(Signal(status=200))
START_MS = 1_600_000_000_000  # files are younger: only what a test makes old is old


class Disk:
    """Stands before what gives room and what syncs; `error` and `sync_error` are what they fail with."""

    def __init__(self, monkeypatch):
        self.error = None
        self.sync_error = None
        self.asked = 0
        self._room, self._sync = os.posix_fallocate, os.fsync
        monkeypatch.setattr(os, "posix_fallocate", self.room)
        monkeypatch.setattr(os, "fsync", self.sync)

    def room(self, fd, offset, length):
        self.asked += 1
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self._room(fd, offset, length)

    def sync(self, fd):
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        self._sync(fd)


class Turns:
    """An event loop and its clock: `second` lets a second pass."""

    def __init__(self):
        self.ms = START_MS
        self.wall_step_ms = 0
        self.later = []

    def now_ms(self):
        return self.ms

    @property
    def read_ms(self):
        return self.ms

    def wall_ms(self):
        return self.ms + self.wall_step_ms

    def call_later(self, _s, act):
        self.later = [act]
        return self

    def cancel(self):
        self.later = []

    def second(self):
        self.ms += 1_000
        for act in self.later:
            act()


class Wire:
    """What an attempt saw."""

    def __init__(self, **facts):
        self._facts = AttemptFacts(**facts)

    def facts(self):
        return self._facts


class Desk:
    """A journal in a folder, and what it said."""

    def __init__(self, folder, keep=Retention(), start_ms=START_MS, disk=DISK):  # noqa: B008  frozen
        self.folder = folder
        self.loop = Turns()
        self.loop.ms = start_ms
        self.said = []
        self.journal = FileJournal(
            self.loop, self.loop, self.loop.wall_ms, Writer(folder, start_ms, self.said.append, keep, disk)
        )
        self.room = Room()
        self.rungs = (rung(),)

    def call(self, name, rungs=None, **given):
        call = Call(name, rungs or self.rungs, self.room, rank=1, arrived_ms=self.loop.ms)
        call.step = Step("a17", "t1", "g1", "s1", "", "hypotheses")
        call.wire = Wire()
        for field, value in given.items():
            setattr(call, field, value)
        return call

    def leaves(self, call):
        """An attempt of the call leaves."""
        call.attempt += 1
        call.route = next(iter(call.rungs[call.rung].routes.values()))
        call.sent_ms = self.loop.ms
        self.journal.intent(call, Intent(call.attempt))

    def answered(self, call):
        """It is answered, and the call with it."""
        call.end = End.ANSWERED
        self.journal.note(call, Note(call.attempt, None, 3, OK))
        self.journal.end(call, Answer(End.ANSWERED, None))


def everything(folder):
    """All rows of a folder, and how many lines were no rows."""
    rows, at, bad = [], Position(), 0
    while True:
        batch = read(folder, at)
        rows += batch.rows
        bad += batch.damaged + batch.torn
        if batch.is_end:
            return rows, bad
        at = batch.position
