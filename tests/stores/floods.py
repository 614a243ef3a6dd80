"""Callers that never have enough of one bucket, and whether it kept its bound."""

from gates import BUCKET, ask, asked

from eventually import eventually
from swarmgate.core.answers import Granted
from swarmgate.core.events import StoreLost
from swarmgate.testing.kit import most_in_any_window


async def flood(store, until_told, heard):
    """Take one unit again and again; every event is heard."""
    number = 0
    while not until_told.is_set():
        number += 1
        event = await asked(store, ask(f"{id(heard)}.{number}", ("a", 1, 0)))
        heard.append(event)
        if isinstance(event, StoreLost):
            await eventually(lambda: store.trouble is None or until_told.is_set(), 30)


async def more(heard, events):
    """Wait until so many more were heard."""
    until = len(heard) + events
    await eventually(lambda: len(heard) >= until, 30)


def grants(heard):
    return [event for event in heard if isinstance(event, Granted)]


def kept_its_bound(heard, times=1):
    """Whether no window of what was granted held more than so many times the bucket's burst and rate."""
    used = sorted((event.now_ms, 1) for event in grants(heard))
    return most_in_any_window(used, BUCKET.burst * times, BUCKET.quota * times, BUCKET.window_ms)
