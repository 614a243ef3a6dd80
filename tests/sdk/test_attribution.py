"""Who calls: contexts nest, follow tasks, follow threads when told to, and never leak into their neighbours."""

import asyncio
import subprocess
import sys
import threading
from contextvars import copy_context

import pytest

import swarmgate
from swarmgate.sdk import context, current
from swarmgate.sdk.attribution import Attribution


def said():
    return {name: value for name, value in current()._asdict().items() if value and not name.endswith("_id")}


def test_inner_words_win_and_outer_ones_hold_on():
    with context(agent="a", goal="g", step="1"):
        with context(step="2", priority="P0") as inner:
            assert said() == {"agent": "a", "goal": "g", "step": "2", "priority": "P0"}
            assert current() is inner
        assert said() == {"agent": "a", "goal": "g", "step": "1"}
    assert current() == Attribution()
    assert current().headers() == {}


def test_an_error_inside_ends_the_context():
    with pytest.raises(KeyError), context(agent="a"):
        raise KeyError
    assert said() == {}


def test_headers_are_the_words_of_the_gate():
    with context(agent="a", task_type="hypothesis", ticket="t.1", traceparent=f"00-{'1' * 32}-{'2' * 16}-01"):
        headers = current().headers()
    trace = headers.pop("traceparent")
    assert headers == {
        "x-swarmgate-agent": "a",
        "x-swarmgate-task-type": "hypothesis",
        "x-swarmgate-ticket": "t.1",
    }
    assert trace.startswith(f"00-{'1' * 32}-")
    assert trace.split("-")[2] != "2" * 16


def test_a_trace_begins_outside_and_each_context_is_a_span_of_it():
    with context(agent="a") as outer, context(step="1") as inner:
        assert (len(outer.trace_id), len(outer.span_id)) == (32, 16)
        assert outer.trace_id == inner.trace_id
        assert outer.span_id != inner.span_id
    with context(agent="a") as other:
        assert other.trace_id != outer.trace_id


def test_a_tracer_at_work_comes_first():
    trace = pytest.importorskip("opentelemetry.trace")
    span = trace.NonRecordingSpan(trace.SpanContext(7, 9, is_remote=False, trace_flags=trace.TraceFlags(1)))
    with context(agent="a"), trace.use_span(span):
        assert current().headers()["traceparent"] == f"00-{7:032x}-{9:016x}-01"


def test_tasks_inherit_it_and_keep_their_own():
    async def agent(name):
        with context(agent=name):
            await asyncio.sleep(0)
            inner = await asyncio.create_task(step())  # noqa: TID251  an agent's own task
            await asyncio.sleep(0)
            return said(), inner

    async def step():
        with context(step="s"):
            await asyncio.sleep(0)
            return said()

    async def swarm():
        with context(goal="g"):
            return await asyncio.gather(*[agent(f"a{number}") for number in range(50)])

    for number, (own, inner) in enumerate(asyncio.run(swarm())):
        assert own == {"agent": f"a{number}", "goal": "g"}
        assert inner == {"agent": f"a{number}", "goal": "g", "step": "s"}


def test_threads_have_it_when_told_to():
    heard = {}

    async def off_loop():
        return await asyncio.to_thread(said)

    with context(agent="a"):
        told = threading.Thread(target=copy_context().run, args=(lambda: heard.update(told=said()),))
        untold = threading.Thread(target=lambda: heard.update(untold=said()))
        for thread in (told, untold):
            thread.start()
            thread.join()
        heard["to_thread"] = asyncio.run(off_loop())
    assert heard == {"told": {"agent": "a"}, "untold": {}, "to_thread": {"agent": "a"}}


@pytest.mark.parametrize("value", ["two words", "lück", "a\r\nb", "x" * 201, 7, None])
def test_a_word_that_no_header_can_carry_is_named(value):
    with pytest.raises(ValueError, match="agent"), context(agent=value):
        pass


def test_unknown_words_and_traces_are_told():
    with pytest.raises(TypeError, match="agnet"), context(agnet="a"):
        pass
    with pytest.raises(ValueError, match="traceparent"), context(traceparent="00-1-2-01"):
        pass


def test_the_package_knows_it_by_name_and_imports_no_gate():
    assert swarmgate.context is context
    assert swarmgate.Deferred is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = swarmgate.nothing
    program = (
        "import sys, swarmgate, swarmgate.sdk, swarmgate.sdk.httpx, swarmgate.sdk.httpx2\n"
        "print([m for m in sys.modules if m.startswith('swarmgate.') and not m.startswith('swarmgate.sdk')])\n"
        "print('msgspec' in sys.modules, 'uvloop' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\nFalse False\n"
    bare = subprocess.run(
        [sys.executable, "-c", "import sys, swarmgate; print([m for m in sys.modules if m.startswith('swarmgate.')])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bare.stdout == "[]\n"
