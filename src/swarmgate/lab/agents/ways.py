"""
The ways in which agents reach their targets: through the gate, directly, or behind one budget for everything.

A way turns a wanted call into bytes for somebody, and an answer into what follows. The direct agents do what the official
SDKs do (lab/baselines.py); those of the gate come back when the gate says so, with the ticket that it gave them.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import msgspec

from swarmgate.engine.clock import unix_s
from swarmgate.http1.head import Header
from swarmgate.http1.upstreams import Origin
from swarmgate.lab.agents.body import CHAT, chat_body, get, post
from swarmgate.lab.agents.wire import Answer
from swarmgate.lab.baselines import Baseline, OneBudget
from swarmgate.lab.baselines import Direct as LocalBackoff
from swarmgate.lab.workload import Wanted

NO = frozenset({403, 429, 503})
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
STREAMED = frozenset({"hypotheses", "literature"})
# Whoever cleans up has other work: it hardly stands in line, and comes back when it is told to.
PATIENCE = {"P0": b"20s", "P1": b"20s", "P2": b"1s"}


class Outgoing(NamedTuple):
    """Where one send goes, and its bytes."""

    origin: Origin
    method: bytes
    data: bytes


class Next(NamedTuple):
    """What follows an answer: over, or another send at `at_ms`, as a deferral or as a repeat."""

    at_ms: int | None
    is_deferral: bool = False
    ticket: bytes = b""


OVER = Next(None)


class Way(Protocol):
    """How agents call."""

    idle_ms: int
    chained: bool  # streams are chains, and looked at

    def takes(self, wanted: Wanted) -> bool:
        """Whether such a call can be made this way; else it is left out."""

    def first(self, wanted: Wanted, now_ms: int) -> int:
        """The instant of a call's first send."""

    def outgoing(self, wanted: Wanted, ticket: bytes) -> Outgoing:
        """The bytes of a send."""

    def after(self, wanted: Wanted, answer: Answer, sends: int, now_ms: int) -> Next:
        """What follows an answer that is no success."""

    def heartbeat(self, agent: str) -> Outgoing | None:
        """How an agent says that it lives; None where nobody listens."""


class ThroughGate:
    """Everything goes to one address; the gate knows keys and limits."""

    idle_ms = 75_000

    def __init__(self, gate: Origin, model: str, *, egress: bool, chained: bool = False) -> None:
        self.chained = chained
        self._gate = gate
        self._host = f"{gate.host}:{gate.port}".encode()
        self._model = model
        self._egress = egress

    def first(self, _wanted: Wanted, now_ms: int) -> int:
        """At once: the gate knows when."""
        return now_ms

    def outgoing(self, wanted: Wanted, ticket: bytes) -> Outgoing:
        """A call with all that the gate may know of its caller."""
        headers: list[Header] = [
            (b"x-swarmgate-agent", wanted.agent.encode()),
            (b"x-swarmgate-goal", wanted.agent.partition("-")[0].encode()),
            (b"x-swarmgate-step", b"%d" % wanted.op),
            (b"x-swarmgate-op", b"%d" % wanted.op),
            (b"x-swarmgate-priority", wanted.priority.encode()),
            (b"x-swarmgate-wait", PATIENCE[wanted.priority]),
        ]
        if ticket:
            headers.append((b"x-swarmgate-ticket", ticket))
        if wanted.task_type == "fetch":
            headers.append((b"x-lab-call", wanted.call_id.encode()))
            path = f"/to/http/{wanted.target}/page/{wanted.op}".encode()
            return Outgoing(self._gate, b"GET", get(path, self._host, headers))
        headers.append((b"x-swarmgate-task-type", wanted.task_type.encode()))
        body = chat_body(wanted, self._model, is_stream=wanted.task_type in STREAMED, chained=self.chained)
        return Outgoing(self._gate, b"POST", post(CHAT, self._host, headers, body))

    def after(self, wanted: Wanted, answer: Answer, _sends: int, now_ms: int) -> Next:
        """Come back when the gate says so; it has repeated what may be repeated."""
        deferral = deferral_of(answer)
        if deferral is None:
            return OVER
        at_ms = now_ms + max(1, int(deferral.get("retry_after_ms", 1_000)))
        if at_ms >= wanted.deadline_ms:
            return OVER
        return Next(at_ms, is_deferral=True, ticket=str(deferral.get("ticket", "")).encode())

    def heartbeat(self, agent: str) -> Outgoing | None:
        """It keeps the connection and tells the gate who is there (design 5: /alive)."""
        path = f"/swarmgate/v1/alive?agent={agent}".encode()
        return Outgoing(self._gate, b"GET", get(path, self._host, []))

    def takes(self, wanted: Wanted) -> bool:
        """Whether this gate has a door for it."""
        return self._egress or wanted.task_type != "fetch"


class Direct(NamedTuple):
    """What agents without a gate know: where their targets are, and whose key is whose (`key_of` an agent's name)."""

    model: Origin
    web: tuple[Origin, ...]
    key_of: Mapping[str, str]
    name: str


class ByThemselves:
    """Each agent calls targets itself with its key, and repeats as its SDK does; `share` paces all of them together."""

    idle_ms = 5_000  # what httpx keeps an idle connection for
    chained = False

    def __init__(self, known: Direct, seed: int) -> None:
        self._known = known
        self._rng = Random(seed)
        self._baseline: Baseline = LocalBackoff(self._rng)

    def share(self, limit: int, window_ms: int) -> None:
        """From now on everything that leaves shares this one rate."""
        self._baseline = OneBudget(limit, window_ms, self._rng)

    def first(self, _wanted: Wanted, now_ms: int) -> int:
        """When the budget says so; directly: at once."""
        return self._baseline.next_send(now_ms, 0) or now_ms

    def outgoing(self, wanted: Wanted, _ticket: bytes) -> Outgoing:
        """A call with the agent's own key; a fetch goes to the host's port."""
        known = self._known
        if wanted.task_type == "fetch":
            origin = known.web[crc32(wanted.target.encode()) % len(known.web)]
            headers: list[Header] = [(b"x-lab-call", wanted.call_id.encode())]
            return Outgoing(origin, b"GET", get(b"/page/%d" % wanted.op, wanted.target.encode(), headers))
        body = chat_body(wanted, known.name, is_stream=wanted.task_type in STREAMED, chained=self.chained)
        host = f"{known.model.host}:{known.model.port}".encode()
        key: Header = (b"authorization", f"Bearer {known.key_of[wanted.agent]}".encode())
        return Outgoing(known.model, b"POST", post(CHAT, host, [key], body))

    def after(self, _wanted: Wanted, answer: Answer, sends: int, now_ms: int) -> Next:
        """A repeat after the hint or after a delay; whatever an SDK would not repeat is over."""
        if answer.status and answer.status not in RETRIED:
            return OVER
        return Next(self._baseline.next_send(now_ms, sends, _hint_ms(answer)))

    def heartbeat(self, _agent: str) -> Outgoing | None:
        """Nobody asks."""
        return None

    def takes(self, _wanted: Wanted) -> bool:
        """Anything."""
        return True


def deferral_of(answer: Answer) -> dict[str, Any] | None:
    """The gate's deferral inside a 429; None if it is a target's own."""
    if answer.status != 429 or b'"deferral"' not in answer.body:
        return None
    try:
        said = msgspec.json.decode(answer.body, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    found = said.get("deferral") or (said.get("error") or {}).get("deferral")
    return found if isinstance(found, dict) else None


def _hint_ms(answer: Answer) -> int | None:
    """What SDKs read: retry-after-ms, retry-after in seconds or as a date (openai-python 3.57)."""
    exact = answer.fields.get(b"retry-after-ms", b"").decode()
    plain = answer.fields.get(b"retry-after", b"").decode()
    try:
        if exact:
            return int(float(exact))
        if plain.replace(".", "", 1).isdigit():
            return int(float(plain) * 1_000)
        return max(0, int(parsedate_to_datetime(plain).timestamp()) - unix_s()) * 1_000 if plain else None
    except ValueError:
        return None
