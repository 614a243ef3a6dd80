"""
What agents want, from seeds: four kinds of model calls that share one chain, and fetches from other people's hosts.

Lengths come from production traces: reading literature is few and long (Mooncake), hypotheses and cleaning are dense and
short (Azure), protocols are rare writes with lengths of software teams (ChatDev). Each agent has its own generator, so
adding or removing one changes no other. A closed agent wants its next call a gap after it wanted the last one, but not
before that one has ended; an open agent does not wait. Gaps have the shape of ChatDev's, scaled to the load's rate.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from heapq import heapify, heapreplace
from random import Random
from typing import Literal, NamedTuple, Protocol

from swarmgate.lab.errors import at_least
from swarmgate.lab.quantiles import Quantiles, table

LoadKind = Literal["hypotheses", "literature", "protocol", "cleaning", "fetch"]
Priority = Literal["P0", "P1", "P2"]
Effect = Literal["read", "write"]

SMALLEST_OUTPUT_CAP_TOKENS = 1024


class Kind(NamedTuple):
    """What calls of a kind have in common; `lengths` names a row of the table `lengths`, none for fetches."""

    priority: Priority
    effect: Effect
    lengths: str | None
    deadline_ms: int


KINDS: dict[LoadKind, Kind] = {
    "hypotheses": Kind("P0", "read", "dense", 60_000),
    "literature": Kind("P1", "read", "long", 300_000),
    "protocol": Kind("P1", "write", "team", 120_000),
    "cleaning": Kind("P2", "read", "dense", 300_000),
    "fetch": Kind("P1", "read", None, 60_000),
}


class Wanted(NamedTuple):
    """
    One call that an agent wants at `t_ms`, to be over by the absolute `deadline_ms`.

    `op` counts the agent's calls. `output_tokens` is what the model will answer, which only the target may know;
    `output_cap_tokens` is what the caller asks for at most.
    """

    t_ms: int
    agent: str
    op: int
    task_type: LoadKind
    priority: Priority
    effect: Effect
    target: str
    prompt_tokens: int
    output_tokens: int
    output_cap_tokens: int
    deadline_ms: int

    @property
    def call_id(self) -> str:
        """Unique in a run."""
        return f"{self.agent}/{self.op}"

    @property
    def idempotency_key(self) -> str | None:
        """Of a write: agent, task and operation sequence number (essay A); a read needs none."""
        return f"{self.agent}:{self.task_type}:{self.op}" if self.effect == "write" else None


class Demand(NamedTuple):
    """One load with every default filled in; lengths of 0 tokens for what has none."""

    load: str
    kind: LoadKind
    agents: int
    target: str
    gap_ms: int
    closed: bool
    priority: Priority
    prompt: Quantiles
    prompt_percent: int
    output: Quantiles
    deadline_ms: int
    from_ms: int = 0
    until_ms: int | None = None


@cache
def lengths(kind: LoadKind) -> tuple[Quantiles, Quantiles]:
    """Tokens of prompt and of output of that kind."""
    name = KINDS[kind].lengths
    if name is None:
        return Quantiles((0, 0)), Quantiles((0, 0))
    row = table("lengths")[name]
    return Quantiles(row["prompt_tokens"]), Quantiles(row["output_tokens"])


@cache
def _gap_permille() -> Quantiles:
    return Quantiles(table("lengths")["team"]["gap_permille_of_mean"])


class Player(Protocol):
    """Whoever wants calls one after another: agents of a seed here, of a trace in lab/traces/players.py."""

    @property
    def name(self) -> str:
        """The agent's name, unique in its run."""

    @property
    def closed(self) -> bool:
        """Whether the world must wait for the end of a call before it asks for the next."""

    def next(self, free_ms: int = 0) -> Wanted | None:
        """The next call, not before `free_ms`, when the last one ended; None when it wants no more."""


class Agent:
    """One agent of a load: draws its calls one after another, each from its own generator."""

    __slots__ = ("_demand", "_op", "_rng", "_t_ms", "name")

    def __init__(self, demand: Demand, number: int, rng: Random) -> None:
        self.name = f"{demand.load}-{number}"
        self._demand = demand
        self._rng = rng
        self._op = 0
        self._t_ms = demand.from_ms + (rng.getrandbits(32) * at_least("gap_ms", demand.gap_ms, 1) >> 32)

    @property
    def closed(self) -> bool:
        """Whether the world must wait for the end of a call before it asks for the next."""
        return self._demand.closed

    def next(self, free_ms: int = 0) -> Wanted | None:
        """The next call, not before `free_ms`, when the last one ended (open agents: 0); None when the load is over."""
        demand, rng = self._demand, self._rng
        t_ms = max(self._t_ms, free_ms)
        if demand.until_ms is not None and t_ms >= demand.until_ms:
            return None
        self._op += 1
        self._t_ms = t_ms + _gap_permille().sample(rng) * demand.gap_ms // 1000
        output_tokens = demand.output.sample(rng)
        kind = KINDS[demand.kind]
        return Wanted(
            t_ms=t_ms,
            agent=self.name,
            op=self._op,
            task_type=demand.kind,
            priority=demand.priority,
            effect=kind.effect,
            target=demand.target,
            prompt_tokens=demand.prompt.sample(rng) * demand.prompt_percent // 100,
            output_tokens=output_tokens,
            output_cap_tokens=max(SMALLEST_OUTPUT_CAP_TOKENS, 1 << (output_tokens - 1).bit_length())
            if output_tokens
            else 0,
            deadline_ms=t_ms + demand.deadline_ms,
        )


def agents(demand: Demand, rng: Random) -> list[Agent]:
    """The agents of a load, `load-1` first; the same generator state gives the same agents."""
    return [Agent(demand, number, Random(rng.getrandbits(64))) for number in range(1, demand.agents + 1)]


def stream(swarm: Iterable[Player], answer_ms: int = 0) -> Iterator[Wanted]:
    """All calls of a swarm in order of time, as if each ended after `answer_ms`; endless unless every load ends."""
    heap = [(first, number, agent) for number, agent in enumerate(swarm) if (first := agent.next())]
    heapify(heap)
    while heap:
        wanted, number, agent = heap[0]
        yield wanted
        following = agent.next(wanted.t_ms + answer_ms if agent.closed else 0)
        if following is None:
            heap[0] = heap[-1]
            heap.pop()
            heapify(heap)
        else:
            heapreplace(heap, (following, number, agent))
