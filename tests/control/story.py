"""Journals that tell small stories, and the ledger that comes of them: shared by the tests of importer and reports."""

from swarmgate.control.importer import USUAL_PRICE, Importer
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.frame import to_line
from swarmgate.stores.journal.segments import FOLDER
from swarmgate.stores.sql.ledger import Ledger

START_MS = 1_790_000_000_000


class Story:
    """Rows in order; `write` puts those that are not on file yet there."""

    def __init__(self, folder, start_ms=START_MS):
        self.folder = folder
        self.ms = start_ms
        self.seq = start_ms * 1_000
        self.rows = []
        self._written = 0
        self.policy = 1
        self.ways = set()  # that were told
        self.budgets = {}  # by target
        (folder / FOLDER).mkdir(exist_ok=True)
        self.segment = folder / FOLDER / f"journal-{self.seq:016d}.log"

    def add(self, kind, /, *fields, **named):
        self.seq += 1
        self.rows.append(kind(self.seq, self.ms, *fields, **named))
        return self.rows[-1]

    def boot(self, run="run1"):
        return self.add(rows.Boot, run, "0.1.0", 7, self.ms)

    def stop(self, run="run1"):
        return self.add(rows.Stop, run, 0)

    def revision(self, budget="up: 4 per 60s", amount=4, revision=1, **named):
        told = {
            "target": "up",
            "unit": "requests",
            "window_ms": 60_000,
            "author": "configuration",
            "reason": "start",
        } | named
        self.policy = told.pop("policy", self.policy)
        self.budgets.setdefault(told["target"], {})[budget] = None
        return self.add(
            rows.Revision,
            self.policy,
            budget,
            revision,
            told["target"],
            told["unit"],
            amount,
            told["window_ms"],
            "level",
            amount,
            amount,
            told["window_ms"],
            told["author"],
            told["reason"],
            self.ms,
            paused=told.get("paused", False),
        )

    def leaves(self, call="c1", attempt=1, **named):
        """An attempt leaves; fields of rows.Intent may be told."""
        told = {
            "agent": "a1",
            "task": "t1",
            "goal": "g1",
            "step": "s1",
            "operation": "",
            "task_type": "hypotheses",
            "team": "blue",
            "priority": 1,
            "target": "up",
            "model": "m",
            "key": "k1",
            "rung": 0,
            "revision": self.policy,
            "arrived_ms": self.ms - 50,
            "prompt": 9,
            "reserve": 20,
            "effect": "read",
        } | named
        way = (told["target"], told["key"])
        if way not in self.ways:
            self.ways.add(way)
            self.add(rows.Way, *way, tuple(self.budgets.get(told["target"], ())))
        return self.add(rows.Intent, call, attempt, **told)

    def ends(self, intent, kind="ok", end="answered", took_ms=400, **named):
        """It ends `took_ms` later."""
        self.ms = max(self.ms, intent.at_ms + took_ms)
        told = {
            "kind": kind,
            "reason": "",
            "status": 200,
            "sent": True,
            "used": 3,
            "prompt_tokens": 9,
            "output_tokens": 3,
            "cached_tokens": -1,
            "content_at_ms": intent.at_ms + took_ms // 2,
            "sent_bytes": 100,
            "got_bytes": 200,
            "out_ms": 0,
            "end": end,
            "end_reason": "",
        } | named
        return self.add(rows.Done, intent.call, intent.attempt, **told)

    def answered(self, call="c1", took_ms=400, note=None, **named):
        return self.ends(self.leaves(call, **named), took_ms=took_ms, **(note or {}))

    def deferred(self, call="d1", budget="up: 4 per 60s", wait_ms=5_000, **named):
        blocked = named.pop("blocked", (rows.Blocked(budget, "time", 1, 4, 60_000, 0),))
        told = {"agent": "a1", "goal": "g1", "step": "s1", "target": "up", "model": "m"} | named
        return self.add(
            rows.End,
            call,
            "deferred",
            "policy_rate",
            0,
            told["agent"],
            "t1",
            told["goal"],
            told["step"],
            "",
            "hypotheses",
            "blue",
            1,
            told["target"],
            told["model"],
            self.ms - 20,
            "",
            self.ms + wait_ms,
            self.ms + wait_ms,
            1,
            1,
            blocked,
        )

    def refused(self, call, reason, **named):
        told = {"agent": "a1", "target": "up", "model": "m"} | named
        who = (told["agent"], "t1", "g1", "s1", "", "hypotheses", "blue", 1, told["target"], told["model"])
        return self.add(rows.End, call, "refused", reason, 0, *who, self.ms - 1)

    def write(self):
        with self.segment.open("ab") as file:
            for row in self.rows[self._written :]:
                file.write(to_line(row))
        self._written = len(self.rows)
        return self

    def next_segment(self):
        self.seq += 1_000_000
        self.segment = self.segment.with_name(f"journal-{self.seq:016d}.log")


def import_all(folder, price=USUAL_PRICE):
    """The importer of a folder, at the end of its journal."""
    importer = Importer(folder, Ledger.opened(folder), price)
    while not importer.step():
        pass
    return importer


def table(importer, one):
    """The rows of a table, as dictionaries in order of their key."""
    with importer.ledger.connection() as link:
        return [dict(row) for row in link.execute(one.select().order_by(*one.primary_key)).mappings()]
