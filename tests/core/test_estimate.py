"""What a call will probably need: the P90 seen, within what it allows, in bounded memory, following changes."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.estimate import (
    FIRST_TOKENS,
    MOST_KINDS,
    TOKENS_A_WEIGHT,
    Charge,
    OutputEstimate,
    Outputs,
    charged,
)
from swarmgate.core.histogram import HALVE_AT, LOOK_EVERY, STEPS

outputs = st.integers(0, 200_000)


def seen(tokens):
    estimate = OutputEstimate()
    for one in tokens:
        estimate.seen(one)
    return estimate


@given(st.lists(outputs, min_size=1, max_size=HALVE_AT - 1))
def test_it_is_the_90th_percentile_rounded_up_by_at_most_an_eighth(tokens):
    looked_at = sorted(tokens[: len(tokens) // LOOK_EVERY * LOOK_EVERY or len(tokens)])
    exact = max(1, looked_at[-(-len(looked_at) * 9 // 10) - 1])
    assert exact <= seen(tokens).reserve(0) <= exact + exact // STEPS + 1


@given(st.lists(outputs, max_size=600), st.integers(1, 300_000))
def test_nothing_is_reserved_beyond_what_the_caller_allows(tokens, allowed):
    estimate = seen(tokens)
    assert 1 <= estimate.reserve(allowed) <= allowed
    assert estimate.reserve(allowed) == min(allowed, estimate.reserve(0))


@given(st.integers(0, 300_000))
def test_the_first_call_reserves_a_usual_answer(allowed):
    assert OutputEstimate().reserve(allowed) == (min(allowed, FIRST_TOKENS) or FIRST_TOKENS)


@given(st.lists(outputs, max_size=600), outputs)
def test_it_follows_a_change_within_a_few_hundred_answers(before, after):
    estimate = seen(before)
    for _ in range(5 * HALVE_AT):
        estimate.seen(after)
    exact = max(1, after)
    assert exact <= estimate.reserve(0) <= exact + exact // STEPS + 1


@given(st.lists(st.integers(-(2**70), 2**70), max_size=700))
def test_it_stays_small_whatever_it_is_told(tokens):
    estimate = seen(tokens)
    assert sum(estimate._counts.values()) == estimate._total < HALVE_AT
    assert all(count > 0 for count in estimate._counts.values())
    assert estimate.reserve(0) >= 1


@given(st.lists(st.tuples(st.integers(0, 4_000), st.integers(1, 4_000)), min_size=LOOK_EVERY, max_size=60))
def test_the_share_of_prompts_that_counts_is_the_90th_percentile_of_their_tokens(prompts):
    estimate, shares = OutputEstimate(), []
    for counted, prompt in prompts:
        estimate.read(min(counted, prompt), prompt)
        shares += [-(-min(counted, prompt) * 1_000 // prompt)] * (1 + prompt // TOKENS_A_WEIGHT)
    exact = max(1, sorted(shares)[-(-len(shares) * 9 // 10) - 1])
    assert exact <= estimate.fresh_permille <= min(1_000, exact + exact // STEPS + 1)


def test_many_small_prompts_that_a_cache_held_say_nothing_of_a_large_one():
    estimate = OutputEstimate()
    for _ in range(200):
        estimate.read(0, 100)
    assert estimate.fresh_permille <= 10
    estimate.read(90_000, 100_000)
    assert estimate.fresh_permille >= 900


def test_kinds_learn_apart_and_their_number_is_bounded():
    kinds = Outputs()
    kinds.of("m", "literature").seen(9_000)
    assert kinds.of("m", "protocol").likely == FIRST_TOKENS
    assert kinds.of("m", "literature").likely >= 9_000
    for number in range(2 * MOST_KINDS):
        kinds.of("m", str(number))
    assert kinds.of("m", "new") is kinds.of("other", "newer")
    assert len(kinds._kinds) == MOST_KINDS


@given(st.sampled_from(Charge), st.integers(0, 1 << 20), st.integers(0, 1 << 20), st.lists(outputs, max_size=20))
def test_llm_gateways_28_what_is_charged_is_what_the_provider_counts(charge, prompt, allowed, tokens):
    at_once, reserved = charged(charge, prompt, allowed, seen(tokens))
    if charge is Charge.PROMPT:
        assert (at_once, reserved) == (prompt, 0)
    elif charge is Charge.PROMPT_AND_LARGEST_OUTPUT:
        assert reserved == 0
        assert at_once == prompt + (allowed or seen(tokens).reserve(0))
    else:
        assert (at_once, reserved) == (prompt, seen(tokens).reserve(allowed))
