"""Which faults struck calls in which states, counted over every world of a test run, on however many processes."""

from collections import Counter

from swarmgate.core.record import State

PAIRS = Counter()


def count(pairs):
    PAIRS.update(pairs)


def as_json():
    return [[kind, state.value, times] for (kind, state), times in PAIRS.items()]


def add(told):
    count({(kind, State(state)): times for kind, state, times in told})
