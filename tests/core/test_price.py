"""What a call costs: integers, rounded up once, and never 0 because a price is not known."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.price import MILLION, Price, Used, at, cost_micro

tokens = st.integers(0, 2_000_000)
rates = st.integers(0, 10**9).map(lambda micro: ((0, micro),))
PRICE = Price(((0, 150_000),), ((0, 600_000),), ((0, 75_000),))


def test_examples():
    assert cost_micro(PRICE, Used(1_000_000, 0)) == 150_000
    assert cost_micro(PRICE, Used(1_000, 1_000)) == 750
    assert cost_micro(PRICE, Used(1_000, 0, cached=1_000)) == 75
    assert cost_micro(PRICE, Used(1_000, 0, cache_written=1_000)) == 150
    assert cost_micro(PRICE, Used(1, 0)) == 1  # rounded up
    assert cost_micro(PRICE._replace(request_micro=5), Used(0, 0)) == 5


def test_what_is_not_known_is_none():
    assert cost_micro(None, Used(0, 0)) is None
    assert cost_micro(Price(((0, 1),), ()), Used(1, 1)) is None
    assert cost_micro(Price(((0, 1),), ()), Used(1, 0)) == 1  # embeddings have no price of output, and need none


def test_a_step_prices_all_tokens_anew():
    steps = ((0, 100), (200_000, 200))
    assert [at(steps, prompt) for prompt in (0, 200_000, 200_001)] == [100, 100, 200]


@given(rates, rates, tokens, tokens, tokens)
def test_more_tokens_never_cost_less_and_a_cost_is_exact(prompt_rate, output_rate, prompt, output, more):
    price = Price(prompt_rate, output_rate)
    cost = cost_micro(price, Used(prompt, output))
    exact = prompt * prompt_rate[0][1] + output * output_rate[0][1]
    assert (cost - 1) * MILLION < exact <= cost * MILLION
    assert cost_micro(price, Used(prompt + more, output)) >= cost
