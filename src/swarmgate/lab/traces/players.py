"""
Agents that play a trace: the same face as `lab.workload.Agent`, the numbers of somebody's real traffic.

An open player has arrivals at fixed instants, whatever becomes of them (no coordinated omission). A closed one plays
sessions step by step in the rhythm in which they were recorded, but never before its last answer, and fetches the hosts
that an answer led to. Time is scaled; calls and what stands in them never are.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice, pairwise
from typing import NamedTuple

from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.reading import Trace
from swarmgate.lab.traces.rows import TraceCall
from swarmgate.lab.workload import KINDS, LoadKind, Player, Priority, Wanted

SMALLEST_CAP_TOKENS = 256
LONGEST_GAP_MS = 600_000  # a longer pause is a night, not a thought
FETCH: LoadKind = "fetch"


class Character(NamedTuple):
    """What all calls of a part have in common; prompts beyond `most_prompt_tokens` arrive compressed to it (essay A)."""

    load: str
    kind: LoadKind
    priority: Priority
    target: str
    most_prompt_tokens: int


class OpenPlayer:
    """Arrivals at fixed instants, each `(t_ms, call)`."""

    closed = False

    def __init__(self, name: str, character: Character, arrivals: Sequence[tuple[int, TraceCall]]) -> None:
        self.name = name
        self._character = character
        self._arrivals = arrivals
        self._op = 0

    def next(self, _free_ms: int = 0) -> Wanted | None:
        """The next arrival; None after the last."""
        if self._op == len(self._arrivals):
            return None
        t_ms, call = self._arrivals[self._op]
        self._op += 1
        return wanted_of(self.name, self._op, t_ms, call, self._character)


class ClosedPlayer:
    """Steps of sessions, each `(ms after the answer before it, call)`, until `until_ms`; fetches follow their call."""

    closed = True

    def __init__(
        self, name: str, character: Character, steps: Iterator[tuple[int, TraceCall]], begin_ms: int, until_ms: int
    ) -> None:
        self.name = name
        self._character = character
        self._steps = steps
        self._begin_ms = begin_ms
        self._until_ms = until_ms
        self._hosts: list[str] = []
        self._op = 0

    def next(self, free_ms: int = 0) -> Wanted | None:
        """The next step, not before `free_ms`; None when the time is over."""
        if self._hosts:
            pause_ms, call, fetch = 0, TraceCall(0, 0, 0), self._hosts.pop(0)
        else:
            pause_ms, call = next(self._steps)
            self._hosts, fetch = list(call.hosts), ""
        t_ms = max(self._begin_ms, free_ms) if self._op == 0 else free_ms + pause_ms
        if t_ms >= self._until_ms:
            return None
        self._op += 1
        if fetch:
            return wanted_of(self.name, self._op, t_ms, call, self._character._replace(kind=FETCH, target=fetch))
        return wanted_of(self.name, self._op, t_ms, call, self._character)


class Phases:
    """One agent through several loads, each `(begin_ms, player)`: time and the count of its calls go on."""

    def __init__(self, phases: Sequence[tuple[int, Player]]) -> None:
        self._phases = list(phases)
        self.name = phases[0][1].name
        self._op = 0

    @property
    def closed(self) -> bool:
        """As its present player is."""
        return self._phases[0][1].closed

    def next(self, free_ms: int = 0) -> Wanted | None:
        """The next call of the first phase that has one."""
        while True:
            begin_ms, player = self._phases[0]
            wanted = player.next(max(0, free_ms - begin_ms))
            if wanted is not None:
                self._op += 1
                t_ms, deadline_ms = wanted.t_ms + begin_ms, wanted.deadline_ms + begin_ms
                return wanted._replace(op=self._op, t_ms=t_ms, deadline_ms=deadline_ms)
            if len(self._phases) == 1:
                return None
            del self._phases[0]


def wanted_of(agent: str, op: int, t_ms: int, call: TraceCall, character: Character) -> Wanted:
    """One call of a trace as an agent wants it; a model always answers something, and may answer twice as much."""
    is_fetch = character.kind == FETCH
    output = 0 if is_fetch else max(1, call.output_tokens)
    return Wanted(
        t_ms=t_ms,
        agent=agent,
        op=op,
        task_type=character.kind,
        priority=character.priority,
        effect=KINDS[character.kind].effect,
        target=character.target,
        prompt_tokens=0 if is_fetch else min(max(1, call.prompt_tokens), character.most_prompt_tokens),
        output_tokens=output,
        output_cap_tokens=0 if is_fetch else max(SMALLEST_CAP_TOKENS, 1 << (output - 1).bit_length()),
        deadline_ms=t_ms + KINDS[character.kind].deadline_ms,
    )


def open_players(
    trace: Trace, character: Character, agents: int, calls_per_s: float, seconds: float, skip: int = 0
) -> list[OpenPlayer]:
    """
    `agents` that share the next `calls_per_s * seconds` arrivals of a trace in turn, their time scaled to `seconds`.

    The piece begins after `skip` calls; a trace that is too short is played again from its beginning.
    """
    wanted = max(1, round(calls_per_s * seconds))
    calls = trace.calls
    first = skip % len(calls)
    piece = list(islice(cycle(calls[first:] + calls[:first]), wanted))
    times = _running_times([call.t_ms for call in piece], trace.span_ms)
    span = max(1, times[-1] + times[-1] // wanted)  # the last call is followed by a usual gap
    arrivals: list[list[tuple[int, TraceCall]]] = [[] for _ in range(agents)]
    for number, (time, call) in enumerate(zip(times, piece, strict=True)):
        arrivals[number % agents].append((int(time * seconds * 1_000 / span), call))
    return [OpenPlayer(f"{character.load}-{n}", character, own) for n, own in enumerate(arrivals, 1)]


def closed_players(
    trace: Trace, character: Character, agents: int, calls_per_s: float, seconds: float, answer_ms: int = 2_000
) -> list[ClosedPlayer]:
    """
    `agents` that play the sessions of a trace, in turn and over again, until `seconds` are over.

    The gaps between the starts of a session's calls are scaled so that they make `calls_per_s`; a gap less `answer_ms` is
    what an agent does between an answer and its next call.
    """
    sessions: dict[str, list[TraceCall]] = {}
    for call in trace.calls:
        sessions.setdefault(call.session, []).append(call)
    names = list(sessions)
    gap_ms = agents * 1_000 / calls_per_s
    if gap_ms <= answer_ms:
        reason = f"{agents} agents that wait for answers of {answer_ms} ms cannot make {calls_per_s:g} calls per second"
        raise LabError("rate", f"{reason}; use more agents")
    gaps = {name: _gaps(session) for name, session in sessions.items()}
    natural_ms = sum(map(sum, gaps.values())) / len(trace.calls)
    players = []
    for number in range(agents):
        name = names[number % len(names)]
        steps = list(zip(gaps[name], sessions[name], strict=True))
        # Later rounds begin elsewhere in the session, so that no two agents march in step.
        first = number // len(names) * 7 % len(steps)
        paced = (
            (max(0, round(gap * gap_ms / natural_ms) - answer_ms), call)
            for gap, call in cycle(steps[first:] + steps[:first])
        )
        own = f"{character.load}-{number + 1}"
        players.append(ClosedPlayer(own, character, paced, round(gap_ms * number / agents), round(seconds * 1_000)))
    return players


def _gaps(session: list[TraceCall]) -> list[int]:
    """Before each call the time since the start of the one before it; before the first their mean."""
    gaps = [min(after.t_ms - before.t_ms, LONGEST_GAP_MS) for before, after in pairwise(session)]
    mean = sum(gaps) // len(gaps) if gaps else 0
    return [max(1, gap) for gap in (mean, *gaps)]


def _running_times(times: list[int], span_ms: int) -> list[int]:
    """Times that never fall, from 0: what follows the end of a trace comes a usual gap after it."""
    out, offset, last = [], -times[0], times[0]
    for time in times:
        if time < last:
            offset += span_ms + max(1, span_ms // len(times))
        out.append(time + offset)
        last = time
    return out
