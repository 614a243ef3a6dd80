"""The prices of a state folder: those of the gate's last reading of its file, without a new start of whoever prices."""

import os

from swarmgate.control.pricing import FILE, free_of_cache, keep, pricer
from swarmgate.core.price import Price

DEAR, CHEAP = Price(((0, 2_000_000),), ((0, 4_000_000),)), Price(((0, 1_000_000),), ((0, 2_000_000),))
USED = ("up", "m", 100, 10, 0, 0)
LATER = (*USED[:-1], 1_000)


def test_prices_that_change_hold_for_what_is_priced_from_then_on(tmp_path):
    keep(tmp_path, {"m": DEAR}, {})
    price = pricer(tmp_path)
    before = price(*USED)
    keep(tmp_path, {"m": CHEAP}, {})
    os.utime(tmp_path / FILE, ns=(1, 1))  # another instant, however coarse the folder's clock is
    assert before == price(*USED) == 2 * price(*LATER) > 0


def test_before_a_first_start_nothing_is_known(tmp_path):
    price = pricer(tmp_path)
    assert price(*USED) is None
    keep(tmp_path, {"m": CHEAP}, {})
    assert price(*LATER) == 120


def test_targets_that_count_no_cached_prompts(tmp_path):
    assert free_of_cache(tmp_path) == set()
    keep(tmp_path, {}, {"claude": "anthropic", "fast": "groq", "usual": "openai", "own": "generic"})
    assert free_of_cache(tmp_path) == {"claude", "fast"}
