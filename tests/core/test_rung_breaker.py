"""One circuit for each size of prompts: who is late says something of longer prompts only, who fails otherwise of all."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.circuit import FEWEST_RESULTS, FIRST_OPEN_MS, LONGEST_OPEN_MS, PROBE_LOST_MS, Breaker, Circuit
from swarmgate.core.outcome import Ending, Signal, classify
from swarmgate.core.prompt_size import PROMPT_SIZES
from swarmgate.core.rung_breaker import RungBreaker

OK = classify(Signal(200))
RATE = classify(Signal(429))
LATE = classify(Signal(ending=Ending.CONTENT_TIMEOUT))
DOWN = [
    classify(Signal(ending=Ending.CONNECT_FAILED)),
    classify(Signal(ending=Ending.LOST_BEFORE_BYTE)),
    classify(Signal(500)),
    classify(Signal(529)),
]
SHORT, LONGEST = 0, PROMPT_SIZES - 1

sizes = st.integers(SHORT, LONGEST)
outcomes = st.sampled_from([OK, OK, RATE, LATE, LATE, DOWN[0], DOWN[2]])
# (gap before it ends, how long it ran, size, outcome, how many of it)
steps = st.lists(
    st.tuples(st.integers(0, 3_000), st.integers(0, 2_000), sizes, outcomes, st.integers(1, 12)), max_size=40
)


def states(breaker):
    return [rest.state for rest in breaker.by_size]


def fed(breaker, outcome, size, many=FEWEST_RESULTS, now_ms=1_000):
    for _ in range(many):
        breaker.observe(outcome, size, now_ms, now_ms)
    return breaker


def test_late_long_prompts_leave_shorter_ones_alone():
    breaker = fed(RungBreaker(), LATE, 2, 1_000)
    assert states(breaker) == [Circuit.CLOSED, Circuit.CLOSED, Circuit.OPEN, Circuit.OPEN]


def test_late_short_prompts_and_whatever_says_nothing_of_sizes_are_for_all():
    assert states(fed(RungBreaker(), LATE, SHORT)) == [Circuit.OPEN] * PROMPT_SIZES
    for outcome in DOWN:
        breaker = fed(RungBreaker(), outcome, LONGEST, FEWEST_RESULTS - 1)
        assert states(breaker) == [Circuit.CLOSED] * PROMPT_SIZES
        assert states(fed(breaker, outcome, SHORT, 1)) == [Circuit.OPEN] * PROMPT_SIZES


def test_long_prompts_that_are_late_rest_however_well_short_ones_are_served():
    breaker = fed(RungBreaker(), OK, SHORT, 10_000)
    assert states(fed(breaker, LATE, LONGEST)) == [Circuit.CLOSED] * LONGEST + [Circuit.OPEN]


def test_some_late_short_prompts_among_many_say_nothing_of_long_ones():
    breaker = fed(RungBreaker(), OK, SHORT, 1_000)
    assert states(fed(breaker, LATE, SHORT, 900)) == [Circuit.CLOSED] * PROMPT_SIZES


def test_a_long_prompt_that_is_served_closes_what_rests_below_it_and_a_short_one_only_its_own():
    breaker = fed(RungBreaker(), DOWN[0], 1)
    later_ms = 1_000 + FIRST_OPEN_MS
    breaker.observe(OK, 1, later_ms, later_ms)
    assert states(breaker) == [Circuit.CLOSED, Circuit.CLOSED, Circuit.OPEN, Circuit.OPEN]
    assert breaker.by_size[2].admits(later_ms)
    breaker.observe(OK, 2, later_ms, later_ms)
    assert states(breaker) == [Circuit.CLOSED] * 3 + [Circuit.OPEN]


def test_short_ones_that_fail_while_a_long_one_is_awaited_do_not_keep_it_out():
    breaker = fed(RungBreaker(), LATE, LONGEST)
    rest, later_ms = breaker.by_size[LONGEST], 1_000 + FIRST_OPEN_MS
    assert rest.admits(later_ms)
    breaker.observe(DOWN[2], SHORT, later_ms, later_ms)
    assert rest.state is Circuit.HALF_OPEN
    breaker.observe(LATE, LONGEST, later_ms, later_ms + 8_000)
    assert rest.opens_at_ms(later_ms) == later_ms + 8_000 + 2 * FIRST_OPEN_MS


def test_a_refused_probe_is_followed_by_another():
    breaker = fed(RungBreaker(), LATE, LONGEST)
    rest, later_ms = breaker.by_size[LONGEST], 1_000 + FIRST_OPEN_MS
    assert rest.admits(later_ms)
    assert not rest.admits(later_ms)
    breaker.observe(RATE, LONGEST, later_ms, later_ms)
    assert rest.admits(later_ms)


def play(story, admit=None):
    """The breaker after each result of the story; `admit` asks for a probe of that size before each."""
    breaker, now_ms = RungBreaker(), 0
    for gap_ms, ran_ms, size, outcome, many in story:
        now_ms += gap_ms
        if admit is not None:
            breaker.by_size[admit].admits(now_ms)
        for _ in range(many):
            breaker.observe(outcome, size, now_ms - ran_ms, now_ms)
        yield now_ms, breaker


@given(steps, sizes)
def test_no_late_prompt_changes_anything_for_a_shorter_one(story, size):
    """The same story with answers of no meaning in their place comes to the same."""
    without = [(*step[:3], RATE, step[4]) if step[3] is LATE and step[2] > size else step for step in story]
    for (now_ms, one), (_, other) in zip(play(story, size), play(without, size), strict=True):
        rest, same = one.by_size[size], other.by_size[size]
        assert (rest.state, rest.opens_at_ms(now_ms)) == (same.state, same.opens_at_ms(now_ms))


@given(st.lists(st.tuples(st.integers(0, 2_000), sizes, st.sampled_from([OK, RATE, *DOWN])), max_size=80))
def test_where_nothing_is_late_all_open_at_once_just_as_one_circuit_of_all_would(story):
    breaker, single, now_ms = RungBreaker(), Breaker(), 0
    for gap_ms, size, outcome in story:
        now_ms += gap_ms
        single.observe(outcome, now_ms, now_ms)
        breaker.observe(outcome, size, now_ms, now_ms)
        assert states(breaker) == [single.state] * PROMPT_SIZES
        if single.state is Circuit.OPEN:
            return


@given(steps)
def test_the_longest_prompts_rest_no_later_than_by_one_circuit_of_all(story):
    breaker, single, now_ms = RungBreaker(), Breaker(), 0
    for gap_ms, _, size, outcome, many in story:
        now_ms += gap_ms
        for _ in range(many):
            single.observe(outcome, now_ms, now_ms)
            breaker.observe(outcome, size, now_ms, now_ms)
            if breaker.by_size[LONGEST].state is Circuit.OPEN:
                return
            assert single.state is Circuit.CLOSED


@given(steps, sizes)
def test_every_size_has_its_probe_in_time(story, size):
    for now_ms, breaker in play(story):
        opens_ms = breaker.by_size[size].opens_at_ms(now_ms)
        assert opens_ms <= now_ms + max(LONGEST_OPEN_MS, PROBE_LOST_MS)
        assert breaker.by_size[size].admits(now_ms) == (opens_ms == now_ms)


@given(steps, st.integers(0, 60_000))
def test_a_rung_that_serves_the_longest_prompt_again_is_well_for_all(story, rested_ms):
    breaker, now_ms = RungBreaker(), 0
    for now_ms, breaker in play(story):  # noqa: B007  the last one
        pass
    now_ms += LONGEST_OPEN_MS + rested_ms
    breaker.observe(OK, LONGEST, now_ms, now_ms)
    assert states(breaker) == [Circuit.CLOSED] * PROMPT_SIZES
