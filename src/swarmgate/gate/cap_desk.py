"""Where a new call gets its caller's caps: the rules stand in core/caps.py, the store learns of new budgets here."""

from swarmgate.core.caps import Caps
from swarmgate.core.compiler import Published
from swarmgate.core.record import Call
from swarmgate.core.scope import Scope
from swarmgate.ports import BudgetStore


class CapDesk:
    """The caps of every caller, before one store; `published` grows by what each new budget keeps."""

    __slots__ = ("_caps", "_published", "_store")

    def __init__(self, caps: Caps, store: BudgetStore, published: dict[str, Published]) -> None:
        self._caps = caps
        self._store = store
        self._published = published

    @property
    def in_use(self) -> Caps:
        """The caps in force."""
        return self._caps

    def admit(self, call: Call, scope: Scope) -> None:
        """Let the call take from what its caller may use, and know its team; `scope` is that of its key."""
        step, caps = call.step, self._caps
        member = caps.of(step.agent, step.task_type, scope)
        call.team, call.caps = member.team, member.routes
        if caps.fresh:
            for budget in caps.fresh:
                self._published[budget.name] = budget.published
                for name, limits in budget.limits():
                    self._store.define(name, limits)
            caps.fresh.clear()
