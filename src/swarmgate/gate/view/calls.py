"""
`/calls` by state, `/calls/ID` with what a call came to, `/alive` for heartbeats.

Open calls are the pump's own; of the ended ones the newest are remembered, with the usage that their target told, or
the estimate where it did not.
Nothing is counted for these views while calls run.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from itertools import takewhile

from swarmgate.core.commands import End
from swarmgate.core.errors import BadInput
from swarmgate.core.price import Used, cost_micro, flat_cost
from swarmgate.core.record import Call, State
from swarmgate.core.scope import Scope
from swarmgate.facts.prices import PriceBook, is_read, listed
from swarmgate.gate.exchange import Ended, seen_of
from swarmgate.gate.view.surface import Query, number, words
from swarmgate.gate.view.viewer import is_own

STATES = ("queued", "running", "backoff", "ended")
USUAL_ROWS = 200
MOST_ROWS = 1_000
MOST_AGENTS = 20_000
INDEX_MS = 250
LONGEST_AGENT = 128


class Calls:
    """Open calls and those that ended lately."""

    def __init__(
        self, open_calls: Mapping[Call, None], ended: Ended, now_ms: Callable[[], int], costs: "Costs"
    ) -> None:
        self._costs = costs
        self._open = open_calls
        self._ended = ended
        self._now_ms = now_ms

    def read(self, query: Query, viewer: Scope) -> object:
        """The newest calls of the viewer's team, of one state or agent. Errors: `BadInput`."""
        state, agent, limit = words(query, "state", "agent", "limit")
        if state and state not in STATES:
            raise BadInput("state", f"{state[:20]!r} is none; say {', '.join(STATES)}")
        most = number("limit", limit, 1, MOST_ROWS, USUAL_ROWS)
        ended = (call for call, *_ in reversed(self._ended)) if state in {"", "ended"} else ()
        opened = reversed(list(self._open)) if state != "ended" else ()
        now_ms = self._now_ms()
        found = [
            call
            for calls in (opened, ended)
            for call in calls
            if state in {"", call.state.public} and agent in {"", call.step.agent} and is_own(viewer, call)
        ]
        counts = Counter(call.state.public for call in self._open if is_own(viewer, call))
        return {
            "counts": {name: counts.get(name, 0) for name in STATES[:-1]},
            "calls": [call_row(call, now_ms) for call in found[:most]],
            "left_off": max(0, len(found) - most),
        }

    def one(self, identity: str, viewer: Scope) -> object | None:
        """One call with its totals; None if it is not known (any more), or another team's."""
        now_ms = self._now_ms()
        for call in self._open:
            if call.id == identity and is_own(viewer, call):
                return call_row(call, now_ms) | self._totals(call, *seen_of(call, call.wire))
        for call, usage, estimated in reversed(self._ended):
            if call.id == identity and is_own(viewer, call):
                return call_row(call, now_ms) | self._totals(call, usage, estimated)
        return None

    def _totals(self, call: Call, usage: tuple[int, int], estimated: bool) -> dict[str, object]:
        """Tokens and their cost; None = not known, never 0; `estimated` = the target did not tell all of them."""
        prompt, output = usage
        return {
            "estimate": {"prompt_tokens": call.prompt, "output_tokens": call.reserve},
            "usage": {
                "prompt_tokens": None if prompt < 0 else prompt,
                "output_tokens": None if output < 0 else output,
                "estimated": estimated,
            },
            "cost_micro_usd": self._costs.of(call, usage),
            "streamed": call.committed,
        }


class Costs:
    """
    What calls cost by the operator's prices and the public list, as if no cache held any of a prompt.

    The list is read when it is needed first, by `aside`, beside the loop: until then its prices are not known.
    """

    def __init__(
        self, prices: PriceBook, provider_of: Callable[[str], str], aside: Callable[[Callable[[], object]], object]
    ) -> None:
        self._prices = prices
        self._provider_of = provider_of
        self._aside = aside
        self._has_asked = False

    def of(self, call: Call, usage: tuple[int, int]) -> int | None:
        """Micro-dollars; None where nobody knows the price, or the usage."""
        flat_micro = flat_cost(call.flat_micro, is_answered=call.end is End.ANSWERED)
        if flat_micro is not None:
            return flat_micro
        rung = call.rungs[call.rung]
        model, used = rung.model or call.model, Used(*usage)
        if min(usage) < 0 or not model:
            return None
        own = self._prices.own(model, rung.target)
        if own is not None:
            return cost_micro(own, used)
        if is_read():
            return self._prices.cost_micro(model, self._provider_of(rung.target), used, rung.target)
        if not self._has_asked:
            self._has_asked = True
            self._aside(lambda: listed(model))
        return None


def call_row(call: Call, now_ms: int) -> dict[str, object]:
    """A call as a client reads it: who, where, in which state, why, and until when at least."""
    rung, step = call.rungs[call.rung], call.step
    waits = call.state in {State.WAITING, State.BACKOFF}
    return {
        "id": call.id,
        "client_request_id": call.client_request_id or None,
        "state": call.state.public,
        "end": call.end.value if call.end else None,
        "reason": call.reason.value if call.reason and (waits or call.end) else None,
        "until_ms": _until_ms(call, now_ms),
        **{field: said or None for field, said in step._asdict().items()},
        "priority": f"P{call.rank}",
        "target": rung.target,
        "model": rung.model or call.model or None,
        "key": call.route.key if call.route else None,
        "rung": call.rung,
        "attempts": call.attempt,
        "retries": call.retries,
        "age_ms": now_ms - call.arrived_ms,
        "queue_ms": _queue_ms(call, now_ms),
    }


def _queue_ms(call: Call, now_ms: int) -> int | None:
    """For how long it was in line, without what failed attempts took; None if it ended there."""
    if call.sent_ms:
        return call.queued_ms
    return None if call.end else now_ms - call.arrived_ms


def _until_ms(call: Call, now_ms: int) -> int | None:
    """From now, when a call that waits may go on at the earliest; None where nothing is known."""
    if call.state is State.BACKOFF:
        return max(0, call.alarm_ms - now_ms)
    denied = call.denied
    if denied is None or (call.state is not State.WAITING and not call.end):
        return None
    return max(0, denied.not_before_ms - denied.now_ms - (now_ms - call.asked_ms))


class Heartbeats:
    """Who was heard lately; an agent learns what its calls wait for."""

    def __init__(
        self, open_calls: dict[Call, None], now_ms: Callable[[], int], is_stopping: Callable[[], bool]
    ) -> None:
        self._open = open_calls
        self._now_ms = now_ms
        self._is_stopping = is_stopping
        self._known: set[Call] = set()  # the open calls as they stood a moment ago, and whose they are
        self._of_agent: dict[str, list[Call]] = {}
        self._known_ms = -INDEX_MS
        self.heard: OrderedDict[tuple[str, str], int] = (
            OrderedDict()
        )  # ms of the last word, by team and agent; the oldest go

    def silent(self) -> list[tuple[str, int]]:
        """Agents that have running calls, and for how long those were silent that were ever heard."""
        now_ms = self._now_ms()
        running = {(call.tenant, call.step.agent) for call in self._open if call.state.public == "running"}
        return [(who[1], now_ms - heard_ms) for who, heard_ms in self.heard.items() if who in running]

    def read(self, query: Query, viewer: Scope) -> object:
        """`agent` lives; what it should know. Errors: `BadInput`."""
        (agent,) = words(query, "agent")
        if not 0 < len(agent) <= LONGEST_AGENT or not agent.isprintable():
            raise BadInput("agent", f"must be 1 to {LONGEST_AGENT} printable characters")
        now_ms = self._now_ms()
        who = (viewer.team, agent)
        last_ms = self.heard.pop(who, None)
        self.heard[who] = now_ms
        if len(self.heard) > MOST_AGENTS:
            self.heard.popitem(last=False)
        own = [call for call in self._calls_of(agent, now_ms) if is_own(viewer, call)]
        state, waiting = _of_agent(own)
        return {
            "agent": agent,
            "state": "stopping" if self._is_stopping() else state,
            "reason": waiting.reason.value if waiting and waiting.reason else None,
            "until_ms": _until_ms(waiting, now_ms) if waiting else None,
            "calls": dict(Counter(call.state.public for call in own)),
            "last_heard_ms": None if last_ms is None else now_ms - last_ms,
        }

    def _calls_of(self, agent: str, now_ms: int) -> list[Call]:
        """The open calls of an agent: thousands of heartbeats do not look at thousands of calls each."""
        if not 0 <= now_ms - self._known_ms < INDEX_MS:
            self._known_ms, self._known, self._of_agent = now_ms, set(self._open), {}
            for call in self._open:
                self._of_agent.setdefault(call.step.agent, []).append(call)
        own = [call for call in self._of_agent.get(agent, ()) if call in self._open]
        newer = takewhile(lambda call: call not in self._known, reversed(self._open))
        return own + [call for call in newer if call.step.agent == agent][::-1]


def _of_agent(own: list[Call]) -> tuple[str, Call | None]:
    """Idle, running if anything runs, else what its first call waits for."""
    if any(call.state.public == "running" for call in own):
        return "running", None
    return (own[0].state.public, own[0]) if own else ("idle", None)
