"""
What a swarm does by default: three loads that share one chain of model calls, and fetches beside them (design 1, essay A).

Reading literature is few and long, hypotheses are dense and short, protocols are rare writes of closed loops; cleaning is
what may wait. Sizing by one kind alone misleads, so a single trace must be asked for and says what it is not fit for.
"""

from typing import NamedTuple

from swarmgate.lab.errors import LabError, at_least
from swarmgate.lab.traces.players import Character, closed_players, open_players
from swarmgate.lab.traces.shipped import origins, trace_of
from swarmgate.lab.workload import LoadKind, Player, Priority

MIX = "mix"
CALLS_PER_MINUTE = 3.0  # per agent (essay A; ChatDev's median is 2.3, deer-flow's 2.9)
CONTEXT_TOKENS = 15_200  # the users' context budget of 16K, less 1K for the answer and a little for the wrapping
MOST_CALLS_PER_S = 100_000
UNFIT = "one kind of load; unfit for sizing: use the mix"


class Part(NamedTuple):
    """One load of a mix: its shares of agents and of calls in percent; `skip` begins further on in the trace."""

    load: str
    kind: LoadKind
    priority: Priority
    trace: str
    agents_percent: int
    calls_percent: int
    skip: int = 0


PARTS = (
    Part("hypotheses", "hypotheses", "P0", "azure-conversation", 26, 26),
    Part("literature", "literature", "P1", "mooncake-conversation", 26, 30),
    Part("protocol", "protocol", "P1", "chatdev", 6, 3),
    Part("research", "literature", "P1", "deep-research", 6, 3),
    Part("cleaning", "cleaning", "P2", "mooncake-conversation", 30, 32, skip=3_000),
    Part("annotation", "cleaning", "P2", "burstgpt-hours", 6, 6),
)


class Workload(NamedTuple):
    """Agents and what is to be said of them; `warning` is empty for the mix."""

    name: str
    players: list[Player]
    warning: str
    sources: tuple[str, ...]


def workload(
    profile: str = MIX,
    *,
    agents: int = 2_000,
    calls_per_s: float | None = None,
    seconds: float = 60.0,
    target: str = "model",
) -> Workload:
    """
    The agents of a profile: `mix`, a shipped trace's name, or a file.

    `calls_per_s` counts model calls of all agents together, by default three a minute each. Errors: `TraceError` about a
    file, `LabError` about an argument, OSError.
    """
    at_least("agents", agents, 1)
    if profile == MIX and agents < len(PARTS):
        raise LabError("agents", f"the mix has {len(PARTS)} kinds of them; {agents} are too few")
    rate = agents * CALLS_PER_MINUTE / 60 if calls_per_s is None else calls_per_s
    if not 0 < rate <= MOST_CALLS_PER_S or seconds <= 0:
        raise LabError(
            "seconds" if seconds <= 0 else "rate", f"must be above 0, and a rate at most {MOST_CALLS_PER_S:,} a second"
        )
    if profile == MIX:
        parts: tuple[Part, ...] = PARTS
    else:
        parts = (Part("trace", "literature", "P1", profile, 100, 100),)
    counts = [max(1, agents * part.agents_percent // 100) for part in parts]
    counts[0] += agents - sum(counts)
    players: list[Player] = []
    for part, count in zip(parts, counts, strict=True):
        players += _players(part, count, rate, seconds, target)
    known = origins()
    sources = tuple(dict.fromkeys(known[p.trace].source if p.trace in known else p.trace for p in parts))
    return Workload(profile, players, "" if profile == MIX else UNFIT, sources)


def _players(part: Part, agents: int, rate: float, seconds: float, target: str) -> list[Player]:
    trace = trace_of(part.trace)
    character = Character(part.load, part.kind, part.priority, target, CONTEXT_TOKENS)
    own = rate * part.calls_percent / 100
    if trace.is_closed:
        return list(closed_players(trace, character, agents, own, seconds))
    return list(open_players(trace, character, agents, own, seconds, part.skip))
