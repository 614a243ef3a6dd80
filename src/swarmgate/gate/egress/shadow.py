"""
Policies that only watch: what they would have deferred, by the kernel's own rules on a book of their own.

A call that would have been sent away takes nothing, as it would not have; it is counted, and goes on. Answers are not
watched: what is in flight at once and how long answers are is as if each call ended at once.
"""

from collections import Counter
from collections.abc import Callable

from swarmgate.core import kernel
from swarmgate.core.answers import Denied
from swarmgate.core.book import Book, Take
from swarmgate.core.record import Call
from swarmgate.core.routing import route
from swarmgate.core.target_policy import Judged, Policy

LEASE_MS = 1


class Shadow:
    """What shadow policies saw: `passed` and `deferred` calls by the policy's name, `blocked` ones by budget."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._book = Book(-(2**51))  # it remembers that nothing was used before
        self._book.now_ms = now_ms()
        self.passed: Counter[str] = Counter()
        self.deferred: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()

    def watch(self, judged: Judged, call: Call, now_ms: int) -> None:
        """Judge a call by those of its policies that only watch."""
        for policy in (judged.policy, judged.domain):
            if policy.shadow:
                self._judge(policy, judged.path_class if policy is judged.policy else "", call, now_ms)

    def _judge(self, policy: Policy, path_class: str, call: Call, now_ms: int) -> None:
        budgets = policy.budgets.get(path_class, ())
        for budget in budgets:
            for name, limits in budget.limits():
                kernel.define(self._book, name, limits)
        made = route("", budgets)
        take = Take(call.id, call.id, call.rank, call.score, (made.demands(call.prompt, 0),), LEASE_MS, waits=False)
        found = kernel.take(self._book, take, now_ms)
        if isinstance(found, Denied):
            self.deferred[policy.name] += 1
            self.blocked.update(blocker.budget for blocker in found.blockers)
        else:
            self.passed[policy.name] += 1
            held = tuple([(name, 0, 0) for name in made.budgets()])
            kernel.settle(self._book, call.id, held, now_ms, last=True)
