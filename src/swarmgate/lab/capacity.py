"""
How much a swarm needs: calls and tokens a minute, keys, connections, money; and what tiers save against sizing by peak.

The users' own arithmetic (essay A): 2,000 agents x 3 calls a minute are 100 a second; at 8K of context 48 M tokens a minute,
at 32K 190 M; 100/s x 2 s x 1.3 are 260 connections. Sizing for the peak of everything pays for capacity that idles, sizing
for the mean fails at the peak: carried in tiers, only P0 and P1 need room at their peak, and P2 takes what they leave.
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import NamedTuple

from swarmgate.core.pool_size import pool_size
from swarmgate.core.price import Price, Used, cost_micro
from swarmgate.lab.errors import LabError, at_least
from swarmgate.lab.traces.mix import MIX, PARTS, Part, workload
from swarmgate.lab.traces.reading import Trace
from swarmgate.lab.traces.shipped import trace_of
from swarmgate.lab.workload import Player, Priority

MINUTE_MS = 60_000
MINUTES = 60  # in which a trace is played, whatever it took
FEWEST_AGENTS = 200  # of that play; its counts are scaled afterwards
MOST_CALLS_PER_MINUTE = 60_000
CLASSES: tuple[Priority, ...] = ("P0", "P1", "P2")


class Minute(NamedTuple):
    """What one class wanted in one minute."""

    calls: int
    prompt_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """What counts against a limit on tokens."""
        return self.prompt_tokens + self.output_tokens


NOTHING = Minute(0, 0, 0)
Load = dict[Priority, list[Minute]]  # minute by minute, all classes of the same length


class Key(NamedTuple):
    """What one key allows per minute, and the percentage of it that is used; 0 = no such limit."""

    calls: int
    tokens: int
    headroom_percent: int = 80


class Capacity(NamedTuple):
    """What to have: per minute unless a name says otherwise; `cost_micro_per_hour` None = no price is known."""

    calls_per_s: float
    mean_calls_per_s: float
    peak_calls: int
    peak_tokens: int
    mean_tokens: int
    tiered_tokens: int
    keys_by_peak: int
    keys_by_mean: int
    keys: int
    pool: int
    cost_micro_per_hour: int | None

    @property
    def saved_percent(self) -> int:
        """What tiers save of the keys that sizing by peak asks for."""
        return 100 - 100 * self.keys // self.keys_by_peak if self.keys_by_peak else 0


def steady(agents: int, calls_per_minute: float, prompt_tokens: int, output_tokens: int) -> Load:
    """The same every minute, all of one class: the users' arithmetic. Errors: `LabError`."""
    for field, amount in (("agents", agents), ("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens)):
        at_least(field, amount, 1 if field == "agents" else 0)
    calls = round(agents * _rate(calls_per_minute))
    return {"P0": [NOTHING], "P1": [Minute(calls, calls * prompt_tokens, calls * output_tokens)], "P2": [NOTHING]}


def recorded(players: Iterable[Player], minutes: int, response_ms: int) -> Load:
    """
    What agents of a trace want in so many minutes; those that wait for answers get them after `response_ms`.

    Fetches are no model calls and are left out.
    """
    counts: dict[Priority, list[list[int]]] = {rank: [[0, 0, 0] for _ in range(minutes)] for rank in CLASSES}
    for player in players:
        free_ms = 0
        while (wanted := player.next(free_ms)) is not None and wanted.t_ms < minutes * MINUTE_MS:
            free_ms = wanted.t_ms + response_ms
            if wanted.task_type == "fetch":
                continue
            minute = counts[wanted.priority][wanted.t_ms // MINUTE_MS]
            minute[0] += 1
            minute[1] += wanted.prompt_tokens
            minute[2] += wanted.output_tokens
    return {rank: [Minute(*minute) for minute in found] for rank, found in counts.items()}


def scaled(profile: str, agents: int, calls_per_minute: float, response_ms: int) -> tuple[Load, str]:
    """
    The shape of a trace, or of the mix, at the size of a swarm; and a warning, empty for the mix.

    The whole trace is played once in an hour, so that its peaks stay where they are, and then counted larger: played at
    the size of a large swarm it would be over in a minute and begin again, which has no peaks. Errors as `workload`.
    """
    at_least("agents", agents, 1)
    wanted = agents * _rate(calls_per_minute) * MINUTES
    pace = calls_of(profile) / (MINUTES * 60)
    players = max(FEWEST_AGENTS, round(pace * response_ms / 250))
    found = workload(profile, agents=players, calls_per_s=pace, seconds=MINUTES * 60.0)
    load = recorded(found.players, MINUTES, response_ms)
    counted = sum(minute.calls for minutes in load.values() for minute in minutes)
    factor = wanted / max(1, counted)
    larger = {
        rank: [Minute(*(round(amount * factor) for amount in minute)) for minute in minutes]
        for rank, minutes in load.items()
    }
    return larger, found.warning


def calls_of(profile: str) -> int:
    """How many calls a profile has before one of its traces begins again."""
    if profile != MIX:
        return len(trace_of(profile).calls)
    return min(len(trace.calls) * 100 // part.calls_percent for part, trace in _open_parts())


def _open_parts() -> Iterable[tuple[Part, Trace]]:
    every = ((part, trace_of(part.trace)) for part in PARTS)
    return [(part, trace) for part, trace in every if not trace.is_closed]


def _rate(calls_per_minute: float) -> float:
    if not isfinite(calls_per_minute) or not 0 < calls_per_minute <= MOST_CALLS_PER_MINUTE:
        raise LabError("rate", f"{calls_per_minute:g} calls a minute of each agent; it must be above 0 and finite")
    return calls_per_minute


def capacity(load: Load, key: Key, response_ms: int, price: Price | None = None) -> Capacity:
    """
    What this load needs with keys like that.

    By peak: every class at its peak. By mean: the mean of all. In tiers: P0 and P1 at their common peak, P2 in what is
    left, so never less than the mean of all. Errors: `LabError`.
    """
    if not 1 <= key.headroom_percent <= 100:
        raise LabError("headroom_percent", "must be from 1 to 100")
    everything = _sums(load, CLASSES)
    urgent = _sums(load, CLASSES[:2])
    peak, mean = _most(everything), _mean(everything)
    tiered = _either(_most(urgent), mean)
    calls, prompt, output = _total(everything)
    each = Used(prompt // max(1, calls), output // max(1, calls))  # prices may rise with the size of a prompt
    cost = cost_micro(price, each)
    return Capacity(
        calls_per_s=peak.calls / 60,
        mean_calls_per_s=mean.calls / 60,
        peak_calls=peak.calls,
        peak_tokens=peak.tokens,
        mean_tokens=mean.tokens,
        tiered_tokens=tiered.tokens,
        keys_by_peak=keys_for(peak, key),
        keys_by_mean=keys_for(mean, key),
        keys=keys_for(tiered, key),
        pool=pool_size(peak.calls, response_ms),
        cost_micro_per_hour=None if cost is None else cost * calls * 60 // len(everything),
    )


def keys_for(need: Minute, key: Key) -> int:
    """How many such keys carry a minute; the scarcer limit decides."""
    counts = [1]
    for amount, allowed in ((need.calls, key.calls), (need.tokens, key.tokens)):
        if allowed:
            counts.append(-(-amount * 100 // (allowed * key.headroom_percent)))
    return max(counts)


def _sums(load: Load, ranks: Sequence[Priority]) -> list[Minute]:
    return [
        Minute(*(sum(column) for column in zip(*minutes, strict=True)))
        for minutes in zip(*(load[rank] for rank in ranks), strict=True)
    ]


def _most(minutes: list[Minute]) -> Minute:
    """The peak of calls and the peak of tokens, which need not be the same minute."""
    by_tokens = max(minutes, key=lambda minute: minute.tokens)
    return by_tokens._replace(calls=max(minute.calls for minute in minutes))


def _mean(minutes: list[Minute]) -> Minute:
    return Minute(*(-(-amount // len(minutes)) for amount in _total(minutes)))


def _either(one: Minute, other: Minute) -> Minute:
    larger = one if one.tokens >= other.tokens else other
    return larger._replace(calls=max(one.calls, other.calls))


def _total(minutes: list[Minute]) -> tuple[int, int, int]:
    calls, prompt, output = (sum(column) for column in zip(*minutes, strict=True))
    return calls, prompt, output
