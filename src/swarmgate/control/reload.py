"""SIGHUP: the configuration is read again; a mistake in it is told and changes nothing (design 3: data process)."""

from collections.abc import Callable, Iterator
from typing import Final

from swarmgate.config import Config
from swarmgate.config.problems import FileError
from swarmgate.control.orders import DataOrders
from swarmgate.core.compiler import WAY
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BadLimit
from swarmgate.gate.reload import kinds, reload
from swarmgate.gate.service import Gate
from swarmgate.http1.tls import renew
from swarmgate.ports import NearStore
from swarmgate.wiring import plan

LIVE: Final = frozenset(
    {"targets", "routes", "agents", "teams", "environments", "task_types", "prices", "egress", "policies"}
)
AT_START: Final = ("groups", "most_targets", "most_per_group")  # of [egress]: which hosts share what budgets


class Reload:
    """What a running gate was configured with, and the way to another configuration; `keep` has it for the control process."""

    def __init__(
        self,
        config: Config,
        gate: Gate,
        orders: DataOrders,
        say: Callable[[str], None],
        keep: Callable[[Config], None] = lambda _: None,
    ) -> None:
        self._config = config
        self._gate = gate
        self._orders = orders
        self._say = say
        self._keep = keep

    def do(self, again: Callable[[], Config]) -> None:
        """Read it and serve it; whatever is wrong leaves the old one in force."""
        store = self._gate.store
        assert isinstance(store, NearStore)
        try:
            fresh = again()
            live = self._config.model_copy(update={name: getattr(fresh, name) for name in LIVE})
            kept = {name: getattr(self._config.egress, name) for name in AT_START}
            live = live.model_copy(update={"egress": live.egress.model_copy(update=kept)})
            served = plan(live, kinds(store.book))
            self._show_certificate()
            done = reload(self._gate, store.book, served, self._renewed(fresh))
        except (FileError, BadInput, BadLimit, OSError) as error:
            why = f"{error.filename} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._say(f"{why}\nthe configuration in force stays as it was")
            self._orders.file_trouble = why
            return
        self._orders.file_trouble = ""
        waits = list(self._waits(fresh))
        self._config = live
        try:
            self._orders.reloaded(done.plan, done.changed)
        except (BadInput, OSError) as error:
            self._say(f"what changed is in force, and cannot be put on file: {error}")
        try:
            self._keep(live)
        except OSError as error:  # the limits hold; only prices of new targets wait for the next start
            self._say(f"what the ledger needs to price calls cannot be written: {error.strerror}")
        also = f"; an operator's limit stands over the file for {', '.join(done.standing)}" if done.standing else ""
        also += f"; a restart is needed for {', '.join(waits)}" if waits else ""
        number = sum(not name.endswith(WAY) for name in done.changed)  # the places on its way are no limit of their own
        self._say(f"the configuration was read again: {number} limit{'' if number == 1 else 's'} changed{also}")

    def _show_certificate(self) -> None:
        """Certificates are renewed where they stand; other files wait for a restart."""
        told, callers = self._config.tls, self._gate.tls.callers
        if callers is not None and told.certificate is not None and told.key is not None:
            renew(callers, told.certificate, told.key)

    def _renewed(self, fresh: Config) -> set[str]:
        """Targets whose keys are others than before, or belong to other accounts."""
        old = {name: (target.keys, target.scopes) for name, target in self._config.targets.items()}
        return {name for name, target in fresh.targets.items() if old.get(name) != (target.keys, target.scopes)}

    def _waits(self, fresh: Config) -> Iterator[str]:
        """What is written otherwise now, and cannot change while the gate runs."""
        old = self._config
        for name in Config.model_fields:
            if name not in LIVE and getattr(fresh, name) != getattr(old, name):
                yield name
        for name in AT_START:
            if getattr(fresh.egress, name) != getattr(old.egress, name):
                yield f"egress.{name}"
