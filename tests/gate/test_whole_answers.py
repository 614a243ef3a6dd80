"""An answer that comes whole has three times what its model was seen to take, on virtual time (design 4: Timeouts)."""

import json

import pytest
from stage import UNARY, warm, whole
from test_front import request
from test_triggers import TWO, sent_to, waits
from wires import Bench

from swarmgate.core.answer_times import FEW
from swarmgate.core.prompt_size import PROMPT_BOUNDS


def said(tokens):
    return whole(UNARY | {"usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}})


def ask(bench, **more):
    """Send a call; the target's end on which it waits."""
    bench.client.data_received(request(body=json.dumps({"model": "m"} | more).encode()))
    sent_to(bench)
    return bench.dialler.opened[-1][0]


def given_ms(bench, step_ms=1_000):
    """How long the first rung is given before the call goes on."""
    passed = 0
    while sent_to(bench)[-1] == "first":
        bench.pass_time(step_ms)
        passed += step_ms
    return passed


def met(takes_ms, tokens, often=FEW):
    """A gate that saw so many answers of the first rung; each took so long."""
    bench = Bench(TWO)
    warm(bench.gate)
    for _ in range(often):
        end = ask(bench, max_tokens=tokens)
        waits(bench, takes_ms, takes_ms // 4)
        end.data_received(said(tokens))
    assert bench.ends == ["answered"] * often
    return bench


@pytest.mark.parametrize(("takes_ms", "least_ms", "most_ms"), [(100_000, 300_000, 340_000), (10_000, 30_000, 36_000)])
def test_three_times_what_answers_of_that_size_took(takes_ms, least_ms, most_ms):
    """Before any was seen it was 60 ms a token: 245 s."""
    bench = met(takes_ms, 4_096)
    ask(bench, max_tokens=4_096)
    assert least_ms <= given_ms(bench) <= most_ms


@pytest.mark.parametrize("several", [{"n": 128}, {"n": 1, "best_of": 20}, {"prompt": ["a", "b"]}], ids=str)
def test_p14_many_answers_in_one_say_nothing_of_the_time_of_one_long_answer(several):
    """One caller's many choices come side by side, with as many tokens as an answer of another that takes minutes."""
    bench = Bench(TWO)
    warm(bench.gate)
    for _ in range(2 * FEW):
        end = ask(bench, max_tokens=400, **several)
        waits(bench, 6_000, 1_500)
        end.data_received(said(40_000))
    ask(bench, max_tokens=4_096)
    assert 245_000 <= given_ms(bench) <= 248_000


def test_what_long_prompts_take_to_be_read_is_not_given_to_short_ones():
    """Times knew no prompts: 25 s for a long one gave 75 s to whoever asked a line of a target that hangs."""
    long = {"max_tokens": 9, "messages": [{"content": "x" * 4 * (PROMPT_BOUNDS[0] + 1)}]}
    bench = Bench(TWO)
    warm(bench.gate)
    for _ in range(FEW):
        end = ask(bench, **long)
        waits(bench, 25_000, 5_000)
        end.data_received(said(9))
    for asked, least_ms, most_ms in (({"max_tokens": 9}, 30_000, 32_000), (long, 75_000, 86_000)):
        ask(bench, **asked)
        assert least_ms <= given_ms(bench) <= most_ms
        bench.dialler.opened[-1][0].data_received(said(9))


def test_few_answers_say_nothing():
    bench = met(10_000, 4_096, FEW - 1)
    ask(bench, max_tokens=4_096)
    assert 245_000 <= given_ms(bench) <= 248_000


def test_a_call_that_limits_nothing_has_the_time_of_the_longest_usual_answer():
    bench = met(100_000, 4_000)
    ask(bench)
    assert 300_000 <= given_ms(bench) <= 340_000


def test_the_next_rung_has_its_own_time():
    bench = met(10_000, 4_096)
    ask(bench, max_tokens=4_096)
    given_ms(bench)
    waits(bench, 240_000, 1_000)
    bench.dialler.opened[-1][0].data_received(said(9))
    assert bench.ends == ["answered"] * (FEW + 1)


def test_attempts_that_were_cut_count_as_what_they_were_given():
    bench = Bench(TWO)
    warm(bench.gate)
    for _ in range(FEW):
        ask(bench, max_tokens=9)
        assert 30_000 <= given_ms(bench) <= 32_000
        bench.dialler.opened[-1][0].data_received(said(9))
    ask(bench, max_tokens=9)
    assert 90_000 <= given_ms(bench) <= 110_000


def test_the_last_rung_of_a_stream_that_must_have_a_form_has_the_time_of_a_whole_answer():
    bench = Bench(TWO)
    warm(bench.gate)
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    end = ask(bench, max_tokens=4_096, stream=True, response_format=form)
    end.data_received(whole({"error": {"type": "overloaded_error", "message": "busy"}}, "529 Overloaded"))
    assert sent_to(bench) == ["first", "second"]
    second = bench.dialler.opened[1][1]
    waits(bench, 244_000, 1_000)
    assert not second.closing
    waits(bench, 4_000, 1_000)
    assert second.closing
