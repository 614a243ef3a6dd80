"""
What the control process tells about traffic: metrics for scrapes, alerts, log lines, spans.

It hears each batch of rows once it is in the ledger, in the importer's thread, and looks at the running gate's state every few
seconds on the loop; a lock keeps the two apart.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from traceback import format_exception
from typing import Any, Final, TextIO

from swarmgate.stores.journal import rows
from swarmgate.telemetry.alerts import Alerts, Notice, Now
from swarmgate.telemetry.log_lines import Log
from swarmgate.telemetry.metrics import CLASSES, Metrics, Pricer
from swarmgate.telemetry.spans import Spans
from swarmgate.telemetry.window import Window

REMEMBERED: Final = 500  # notices that can be asked for


class Watching:
    """`hear` rows, `look` at a snapshot; `scrape` and `alerts` answer operators."""

    def __init__(self, price: Pricer, stream: TextIO) -> None:
        self._lock = Lock()
        self._metrics = Metrics(price)
        self._window = Window()
        self._alerts = Alerts()
        self._log = Log(stream)
        self._spans = Spans()
        self._notices: list[Notice] = []
        self._hear: tuple[Callable[[Sequence[rows.Row]], None], ...] = (
            self._metrics.hear,
            self._window.hear,
            self._log.hear,
            self._spans.hear,
        )

    def hear(self, batch: Sequence[rows.Row]) -> None:
        """Rows that are in the ledger now."""
        with self._lock:
            for one in self._hear:
                try:
                    one(batch)
                except Exception as error:  # noqa: BLE001  a row that nobody understands must not stop the ledger; told below
                    self._tell(f"{len(batch)} rows are not in every figure and line", error)

    def look(self, standing: Mapping[str, Any]) -> None:
        """The gate as it stands (control/orders.py: standing)."""
        now_ms = standing["now_ms"]
        budgets = [_budget(row) for row in standing["budgets"]]
        dead = [f"{target}/{key}" for target, key, left_ms in standing["keys_out"] if left_ms < 0]
        states = standing.get("store", ""), dead, standing.get("configuration", "")
        now = Now(self._window, budgets, standing["agents"], *states)
        with self._lock:
            self._metrics.state(budgets, standing["open"], standing["oldest_ms"])
            self._metrics.pools(standing["pools"])
            self._metrics.retries(standing["retries_left"])
            self._metrics.keys_out(standing["keys_out"])
            self._metrics.watched(standing["watched"])
            self._metrics.turned_away(standing["turned_away"])
            self._metrics.debt(standing["debt_units"])
            notices = self._alerts.judge(now, now_ms)
            self._metrics.alerts((str(one["alert"]), str(one["subject"])) for one in self._alerts.firing())
            for notice in notices:
                self._log.notice(notice)
            self._notices = [*self._notices, *notices][-REMEMBERED:]

    def _tell(self, what: str, error: Exception) -> None:
        trace = "".join(format_exception(error))
        self._log.tell("bug", 0, what=what, error=type(error).__name__, trace=trace)

    def trouble(self, event: str, at_ms: int, **fields: object) -> None:
        """A line about the ledger, the journal or the operator port themselves."""
        with self._lock:
            self._log.tell(event, at_ms, **fields)

    def scrape(self) -> bytes:
        """Everything that Prometheus reads."""
        with self._lock:
            return self._metrics.render()

    def alerts(self) -> dict[str, object]:
        """What holds now, and what began or ended lately, newest last."""
        with self._lock:
            return {"firing": self._alerts.firing(), "notices": [notice._asdict() for notice in self._notices]}


def _budget(row: Mapping[str, Any]) -> dict[str, Any]:
    """A budget of the snapshot, its amounts by the names of the classes."""
    per_class = {name: dict(zip(CLASSES, row[name], strict=True)) for name in ("remaining", "backlog")}
    return {name: row[name] for name in ("budget", "target", "unit", "state", "burst")} | per_class
