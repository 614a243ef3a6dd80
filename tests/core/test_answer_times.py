"""How long whole answers may take: three times the P99 seen for their size, never below 30 s, and never stuck at too little."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.answer_times import (
    FEW,
    LEAST_MS,
    LONGEST_MS,
    MOST_MODELS,
    MS_PER_TOKEN,
    SHORT_MS,
    SIZES,
    TIMES,
    AnswerTimes,
    size_of,
)
from swarmgate.core.histogram import HALVE_AT, STEPS

HOUR_MS = 3_600_000
tokens = st.integers(0, 1 << 17)
took = st.integers(0, 2 * LONGEST_MS)
facts = st.lists(st.tuples(st.booleans(), tokens, took, st.integers(1, 2 * FEW)), max_size=12)
EVERY_SIZE = [256 << size for size in range(SIZES)]


def told(story):
    """What a model is known for: (cut or seen, tokens, ms, how often)."""
    times = AnswerTimes()
    for is_cut, size, ms, often in story:
        for _ in range(often):
            if is_cut:
                times.cut("t", "m", size, ms)
            else:
                times.seen("t", "m", size, ms)
    return times


def patience(times):
    return [times.patience_ms("t", "m", size) for size in EVERY_SIZE]


def test_sizes_are_doublings():
    assert [size_of(size) for size in EVERY_SIZE] == list(range(SIZES))
    assert [size_of(size + 1) for size in EVERY_SIZE] == [*range(1, SIZES), SIZES - 1]
    assert (size_of(-(2**70)), size_of(0), size_of(2**70)) == (0, 0, SIZES - 1)


def test_of_an_unknown_model_each_token_takes_60_ms():
    assert patience(AnswerTimes()) == [max(LEAST_MS, size * TIMES * MS_PER_TOKEN) for size in EVERY_SIZE]


@given(facts, tokens, tokens)
def test_it_is_never_below_30_s_and_never_less_for_more(story, few, more):
    times = told(story)
    less, most = sorted((few, few + more))
    assert LEAST_MS <= times.patience_ms("t", "m", less) <= times.patience_ms("t", "m", most)


@given(st.lists(st.integers(SHORT_MS, HOUR_MS), min_size=FEW, max_size=HALVE_AT - 1), st.sampled_from(EVERY_SIZE))
def test_it_is_three_times_the_p99_once_enough_is_seen(them, size):
    times = told([(False, size, ms, 1) for ms in them])
    times._models["t", "m"].took[size_of(size)].look()
    times._models["t", "m"].learn()
    exact = TIMES * sorted(them)[-(-len(them) * 99 // 100) - 1]
    assert max(LEAST_MS, exact) <= times.patience_ms("t", "m", size) <= max(LEAST_MS, exact + exact // STEPS + TIMES)


@given(tokens, st.integers(1, FEW - 1), took)
def test_few_answers_of_a_size_say_nothing(size, few, ms):
    assert patience(told([(False, size, ms, few)])) == patience(AnswerTimes())


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
            times.seen("t", "m", 90, ms)
        assert long * ms_per_token <= times.patience_ms("t", "m", long), round_
        times.seen("t", "m", long, long * ms_per_token)


@given(facts, tokens, st.integers(1, 3))
def test_what_was_cut_only_raises_it(story, size, often):
    times = told(story)
    before = patience(times)
    for _ in range(often):
        times.cut("t", "m", size, times.patience_ms("t", "m", size))
    assert all(old <= new for old, new in zip(before, patience(times), strict=True))


@given(st.sampled_from(EVERY_SIZE), st.integers(1, HOUR_MS), st.integers(0, 600))
def test_a_model_that_became_slow_is_soon_given_what_it_takes(size, takes_ms, answers_before):
    """Each attempt is cut until what is given suffices; that is so in the end, whatever was known."""
    times = told([(False, size, 1_000, answers_before)])
    for _ in range(400):
        given_ms = times.patience_ms("t", "m", size)
        if given_ms >= takes_ms:
            return
        times.cut("t", "m", size, given_ms)
    raise AssertionError(given_ms)


@given(st.sampled_from(EVERY_SIZE), st.integers(FEW, 600), st.integers(1, 20_000))
def test_while_a_target_hangs_what_is_given_grows_once_and_then_ever_more_seldom(size, answers_before, ms):
    times = told([(False, size, ms, answers_before)])
    first = given_ms = times.patience_ms("t", "m", size)
    raised = []
    for number in range(1, 8 * FEW):
        times.cut("t", "m", size, given_ms)
        if times.patience_ms("t", "m", size) > given_ms:
            raised.append(number)
        given_ms = times.patience_ms("t", "m", size)
    assert len([number for number in raised if number < FEW]) <= 1
    assert len(raised) <= 4
    assert given_ms <= first * 4**4


def test_an_answer_ends_the_row():
    """A model that answers now and then is slow: whatever is cut between counts."""
    times = told([(False, 256, 9_000, FEW)])
    for _ in range(4):
        times.cut("t", "m", 256, times.patience_ms("t", "m", 256))
        times.seen("t", "m", 256, 9_000)
    assert times.patience_ms("t", "m", 256) > 27 * LEAST_MS


def test_what_a_broken_target_raised_comes_down_by_good_answers():
    times = told([(False, 256, 9_000, 600)])
    for _ in range(50):
        times.cut("t", "m", 256, times.patience_ms("t", "m", 256))
    assert times.patience_ms("t", "m", 256) > 10 * LEAST_MS
    for _ in range(12 * HALVE_AT):
        times.seen("t", "m", 256, 9_000)
    assert times.patience_ms("t", "m", 256) == LEAST_MS


def test_a_size_of_which_few_were_seen_stands_between_its_neighbours():
    slow = told([(False, 1_024, 100_000, FEW)])
    more = slow.patience_ms("t", "m", 2_048) - slow.patience_ms("t", "m", 1_024)
    assert more == TIMES * MS_PER_TOKEN * 1_024
    fast = told([(False, 8_192, 20_000, FEW)])
    assert fast.patience_ms("t", "m", 4_096) == fast.patience_ms("t", "m", 8_192) < 70_000


def test_models_at_their_targets_do_not_know_of_one_another():
    times = told([(False, 256, 100_000, FEW)])
    assert times.patience_ms("t", "m", 256) > 300_000
    assert times.patience_ms("t", "n", 256) == times.patience_ms("u", "m", 256) == LEAST_MS


def test_names_that_callers_make_up_take_no_more_memory():
    times = AnswerTimes()
    for number in range(MOST_MODELS + 50):
        times.seen("t", str(number), 9, 100)
    assert len(times._models) == MOST_MODELS
    for _ in range(FEW):
        times.seen("t", "one more", 9, 100_000)
    assert times.patience_ms("t", "and another", 9) > 300_000
    assert times.patience_ms("t", "0", 9) == LEAST_MS
