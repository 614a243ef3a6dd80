"""How long whole answers may take: three times the P99 seen for their size, never below 30 s, and never stuck at too little."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.answer_times import (
    FEW,
    LEAST_MS,
    LONGEST_MS,
    MOST_MODELS,
    MS_PER_TOKEN,
    PLACES,
    SHORT_MS,
    SIZES,
    TIMES,
    AnswerTimes,
    size_of,
)
from swarmgate.core.histogram import HALVE_AT, STEPS
from swarmgate.core.prompt_size import PROMPT_BOUNDS, PROMPT_SIZES

HOUR_MS = 3_600_000
tokens = st.integers(0, 1 << 17)
took = st.integers(0, 2 * LONGEST_MS)
prompts = st.integers(0, PROMPT_SIZES - 1)
facts = st.lists(st.tuples(st.booleans(), prompts, tokens, took, st.integers(1, 2 * FEW)), max_size=12)
EVERY_SIZE = [256 << size for size in range(SIZES)]
SHORT, LONG = 0, PROMPT_SIZES - 1


def told(story):
    """What a model is known for: (cut or seen, prompt, tokens, ms, how often)."""
    times = AnswerTimes()
    for is_cut, prompt, size, ms, often in story:
        for _ in range(often):
            if is_cut:
                times.cut("t", "m", prompt, size, ms)
            else:
                times.seen("t", "m", prompt, size, ms)
    return times


def patience(times, prompt=SHORT):
    return [times.patience_ms("t", "m", prompt, size) for size in EVERY_SIZE]


def all_of(times):
    return [ms for prompt in range(PROMPT_SIZES) for ms in patience(times, prompt)]


def test_sizes_are_doublings():
    assert [size_of(size) for size in EVERY_SIZE] == list(range(SIZES))
    assert [size_of(size + 1) for size in EVERY_SIZE] == [*range(1, SIZES), SIZES - 1]
    assert (size_of(-(2**70)), size_of(0), size_of(2**70)) == (0, 0, SIZES - 1)


def test_of_an_unknown_model_each_token_takes_60_ms_and_each_of_a_long_prompt_0_3():
    assert patience(AnswerTimes()) == [max(LEAST_MS, size * TIMES * MS_PER_TOKEN) for size in EVERY_SIZE]
    reading = [patience(AnswerTimes(), prompt)[-1] - patience(AnswerTimes())[-1] for prompt in range(PROMPT_SIZES)]
    whole = [*PROMPT_BOUNDS, 2 * PROMPT_BOUNDS[-1]]
    assert all(0 <= (tokens - whole[0]) * 3 // 10 - ms <= 10 for tokens, ms in zip(whole, reading, strict=True))


@given(facts, tokens, tokens, prompts, prompts)
def test_it_is_never_below_30_s_and_never_less_for_more(story, few, more, short, longer):
    times = told(story)
    less = times.patience_ms("t", "m", min(short, longer), min(few, few + more))
    assert LEAST_MS <= less <= times.patience_ms("t", "m", max(short, longer), few + more)


@given(
    st.lists(st.integers(SHORT_MS, HOUR_MS), min_size=FEW, max_size=HALVE_AT - 1), st.sampled_from(EVERY_SIZE), prompts
)
def test_it_is_three_times_the_p99_once_enough_is_seen(them, size, prompt):
    times = told([(False, prompt, size, ms, 1) for ms in them])
    times._models["t", "m"].of(prompt * SIZES + size_of(size)).look()
    times._models["t", "m"].learn()
    exact = TIMES * sorted(them)[-(-len(them) * 99 // 100) - 1]
    given_ms = times.patience_ms("t", "m", prompt, size)
    assert max(LEAST_MS, exact) <= given_ms <= max(LEAST_MS, exact + exact // STEPS + TIMES)


@given(tokens, prompts, st.integers(1, FEW - 1), took)
def test_few_answers_of_a_size_say_nothing(size, prompt, few, ms):
    assert all_of(told([(False, prompt, size, ms, few)])) == all_of(AnswerTimes())


@given(
    st.sampled_from(EVERY_SIZE[3:]),
    st.lists(st.integers(100, 9_000), min_size=1, max_size=30),
    st.integers(5, 60),
    st.integers(20, 200),
)
def test_a_few_long_answers_among_many_short_ones_are_not_cut(long, short, ms_per_token, often):
    """However rare: they are a size of their own."""
    times = AnswerTimes()
    for round_ in range(3 * FEW):
        for ms in short * (1 + often // len(short)):
            times.seen("t", "m", SHORT, 90, ms)
        assert long * ms_per_token <= times.patience_ms("t", "m", SHORT, long), round_
        times.seen("t", "m", SHORT, long, long * ms_per_token)


@given(st.integers(SHORT_MS, HOUR_MS), st.integers(1, 10_000), tokens, st.integers(FEW, 200), st.integers(0, 600))
def test_what_long_prompts_take_says_nothing_of_short_ones_that_are_known(slow_ms, ms, size, short, long):
    """Nor does it matter how many there are of either, nor which came last."""
    known = told([(False, SHORT, size, ms, short)])
    mixed = told(
        [(False, LONG, size, slow_ms, long), (False, SHORT, size, ms, short), (False, LONG, size, slow_ms, long)]
    )
    assert mixed.patience_ms("t", "m", SHORT, size) == known.patience_ms("t", "m", SHORT, size)
    if long >= FEW:
        assert mixed.patience_ms("t", "m", LONG, size) >= TIMES * slow_ms
    assert all(new <= old for old, new in zip(patience(known), patience(mixed), strict=True))


@given(st.integers(0, HOUR_MS), st.integers(FEW, 200), tokens)
def test_a_longer_prompt_has_what_shorter_ones_took_and_the_time_to_be_read(ms, often, size):
    times = told([(False, SHORT, size, ms, often)])
    usual = times._models["t", "m"].usual_ms[size_of(size) :: SIZES]
    assert usual[0] >= min(ms, LONGEST_MS)
    assert 0 <= (2 * PROMPT_BOUNDS[-1] - PROMPT_BOUNDS[0]) // 10 - (usual[-1] - usual[0]) <= PROMPT_SIZES


@given(prompts, tokens, st.integers(SHORT_MS, 40_000), st.integers(SHORT_MS, 40_000))
def test_a_long_prompt_with_a_long_answer_is_given_what_both_take_alone(prompt, size, reads_ms, makes_ms):
    times = told([(False, prompt, 9, reads_ms, FEW), (False, SHORT, size, makes_ms, FEW)])
    assert times.patience_ms("t", "m", prompt, size) >= reads_ms + makes_ms


@given(facts, tokens, prompts, st.integers(1, 3))
def test_what_was_cut_only_raises_it(story, size, prompt, often):
    times = told(story)
    before = all_of(times)
    for _ in range(often):
        times.cut("t", "m", prompt, size, times.patience_ms("t", "m", prompt, size))
    assert all(old <= new for old, new in zip(before, all_of(times), strict=True))


@given(prompts, st.sampled_from(EVERY_SIZE), st.integers(1, HOUR_MS), st.integers(0, 600))
def test_a_model_that_became_slow_is_soon_given_what_it_takes(prompt, size, takes_ms, answers_before):
    """Each attempt is cut until what is given suffices; that is so in the end, whatever was known."""
    times = told([(False, prompt, size, 1_000, answers_before)])
    for _ in range(400):
        given_ms = times.patience_ms("t", "m", prompt, size)
        if given_ms >= takes_ms:
            return
        times.cut("t", "m", prompt, size, given_ms)
    raise AssertionError(given_ms)


@given(prompts, st.sampled_from(EVERY_SIZE), st.integers(FEW, 600), st.integers(1, 20_000))
def test_while_a_target_hangs_what_is_given_grows_once_and_then_ever_more_seldom(prompt, size, answers_before, ms):
    times = told([(False, prompt, size, ms, answers_before)])
    first = given_ms = times.patience_ms("t", "m", prompt, size)
    raised = []
    for number in range(1, 8 * FEW):
        times.cut("t", "m", prompt, size, given_ms)
        if times.patience_ms("t", "m", prompt, size) > given_ms:
            raised.append(number)
        given_ms = times.patience_ms("t", "m", prompt, size)
    assert len([number for number in raised if number < FEW]) <= 1
    assert len(raised) <= 4
    assert given_ms <= first * 4**4


def test_an_answer_ends_the_row():
    """A model that answers now and then is slow: whatever is cut between counts."""
    times = told([(False, SHORT, 256, 9_000, FEW)])
    for _ in range(4):
        times.cut("t", "m", SHORT, 256, times.patience_ms("t", "m", SHORT, 256))
        times.seen("t", "m", SHORT, 256, 9_000)
    assert times.patience_ms("t", "m", SHORT, 256) > 27 * LEAST_MS


def test_what_a_broken_target_raised_comes_down_by_good_answers():
    times = told([(False, SHORT, 256, 9_000, 600)])
    for _ in range(50):
        times.cut("t", "m", SHORT, 256, times.patience_ms("t", "m", SHORT, 256))
    assert times.patience_ms("t", "m", SHORT, 256) > 10 * LEAST_MS
    for _ in range(12 * HALVE_AT):
        times.seen("t", "m", SHORT, 256, 9_000)
    assert times.patience_ms("t", "m", SHORT, 256) == LEAST_MS


def test_a_size_of_which_few_were_seen_stands_between_its_neighbours():
    slow = told([(False, SHORT, 1_024, 100_000, FEW)])
    more = slow.patience_ms("t", "m", SHORT, 2_048) - slow.patience_ms("t", "m", SHORT, 1_024)
    assert more == TIMES * MS_PER_TOKEN * 1_024
    for prompt in range(PROMPT_SIZES):
        fast = told([(False, prompt, 8_192, 20_000, FEW)])
        assert fast.patience_ms("t", "m", SHORT, 4_096) == fast.patience_ms("t", "m", prompt, 8_192) < 70_000


def test_models_at_their_targets_do_not_know_of_one_another():
    times = told([(False, SHORT, 256, 100_000, FEW)])
    assert times.patience_ms("t", "m", SHORT, 256) > 300_000
    assert times.patience_ms("t", "n", SHORT, 256) == times.patience_ms("u", "m", SHORT, 256) == LEAST_MS


def test_names_that_callers_make_up_take_no_more_memory():
    times = AnswerTimes()
    for number in range(MOST_MODELS + 50):
        times.seen("t", str(number), SHORT, 9, 100)
    assert len(times._models) == MOST_MODELS
    for _ in range(FEW):
        times.seen("t", "one more", SHORT, 9, 100_000)
    assert times.patience_ms("t", "and another", SHORT, 9) > 300_000
    assert times.patience_ms("t", "0", SHORT, 9) == LEAST_MS


@given(facts)
def test_a_model_has_only_so_many_places_and_none_that_was_not_met(story):
    times = told(story)
    for model in times._models.values():
        assert model.took.keys() <= set(range(PLACES))
        assert len(model.took) <= len(story)
