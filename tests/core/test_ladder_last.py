"""Which rung is the last of a call: that below which none may serve it. There its answer is checked whole."""

from dataclasses import replace

import pytest
from test_ladder_ends import BUDGETS, FREE, narrow, small

from life import KEY_DEAD, OVERLOADED, Life, World, route, rung
from swarmgate.core import kernel
from swarmgate.core.answer_times import AnswerTimes
from swarmgate.core.book import Book
from swarmgate.core.commands import End
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import State
from swarmgate.core.rungs import too_small

FAILED = ((5, OVERLOADED),)


def keyless(target="keyless"):
    """A rung whose only key is dead."""
    made = rung(target, FREE)
    made.ring.observe("k1", KEY_DEAD.outcome, 1_000_000, 1_000_001)
    return made


def silent(target="silent"):
    """A rung that speaks otherwise."""
    return rung(target, FREE)._replace(serves=frozenset({"messages"}))


def watch(*rungs, sends=(), before=None, **given):
    """Play a call that asks for a form; where it connected, and whether its answer would have been checked there."""
    world, noted = World(BUDGETS), []
    if before is not None:
        world.call("before", rungs=(before,))
        world.run(100)

    def look(call):
        told = (call.rungs[call.rung].target, call.checked)
        if call.state is State.CONNECTING and noted[-1:] != [told]:
            noted.append(told)

    world.pump.after = look
    call = world.call(
        "x",
        Life(sends=sends),
        rungs=rungs,
        context_tokens=10,
        surface="chat",
        **{"form": True, "times": AnswerTimes()} | given,
    )
    world.run(600_000)
    world.check_clean()
    return noted, call


@pytest.mark.parametrize("useless", [narrow, silent, keyless])
def test_where_those_below_cannot_serve_the_one_above_is_the_last(useless):
    noted, call = watch(rung("a", FREE), rung("b", FREE), useless(), narrow("d"), sends=(FAILED,))
    assert noted == [("a", False), ("b", True)]
    assert (call.end, call.rung) == (End.ANSWERED, 1)


def test_so_it_is_where_the_price_of_those_below_is_not_known():
    noted, _ = watch(rung("a", FREE), rung("b", FREE), rung("c", FREE), sends=(FAILED,), costs=(1, 1, -1))
    assert noted == [("a", False), ("b", True)]


@pytest.mark.parametrize(("limit", "at"), [(5, ("b", True)), (6, ("b", False)), (None, ("b", False))])
def test_so_it_is_where_budgets_below_can_never_hold_the_call(limit, at):
    """A call of 6 tokens; of a budget that is not known here nothing is said, and the rung is stood on whatever was said."""
    world, below = World(BUDGETS), rung("c", route(fixed=(), metered=("other",), whole=()))
    call = world.call("x", rungs=(rung("a", FREE), rung("b", FREE), below))
    book = Book()
    if limit is not None:
        kernel.define(book, "other", Limits(BudgetKind.LEVEL, burst=limit, quota=1, window_ms=1_000))
    assert too_small(call, book.cells.get) == ((2,) if at[1] else ())
    noted, _ = watch(rung("a", FREE), rung("b", FREE), rung("c", FREE), sends=(FAILED,), too_small=(2,) * at[1])
    assert noted == [("a", False), at]


def test_any_key_whose_budgets_hold_it_is_enough_and_a_paused_one_has_no_size():
    book = Book()
    kernel.define(book, "small", BUDGETS["small"])
    kernel.define(book, "large", Limits(BudgetKind.LEVEL, burst=6, quota=1, window_ms=1_000))
    kernel.define(book, "paused", replace(BUDGETS["small"], paused=True))
    keys = [route(name, fixed=(), metered=(name,), whole=()) for name in ("small", "large", "paused")]
    world = World(BUDGETS)
    for last, told in ((keys[:1], (1,)), (keys[:2], ()), (keys[2:], ())):
        call = world.call("x", rungs=(rung("a", FREE), rung("b", *last)))
        assert too_small(call, book.cells.get) == told


def test_one_that_may_serve_is_the_last_by_its_place():
    noted, _ = watch(rung("a", FREE), rung("b", FREE), rung("c", FREE), sends=(FAILED, FAILED))
    assert noted == [("a", False), ("b", False), ("c", True)]


def test_the_first_rung_is_never_the_last_of_several():
    noted, _ = watch(rung("a", FREE), narrow(), sends=(FAILED,) * 4)
    assert noted == [("a", False)]


def test_who_asks_for_no_form_is_checked_nowhere():
    noted, _ = watch(rung("a", FREE), rung("b", FREE), sends=(FAILED,), form=False)
    assert noted == [("a", False), ("b", False)]


def test_a_call_whose_first_rung_cannot_serve_it_begins_at_the_last():
    noted, call = watch(silent("a"), rung("b", FREE), sends=(((20_000, OVERLOADED),),))
    assert noted == [("b", True)]
    assert call.trail[-1].ms == 20_000  # it had the time of a whole answer


def test_a_call_that_goes_back_up_has_its_last_rung_there():
    """The wait at `b` led to `c`, whose budget is too small, as is found by standing there only."""
    slow = rung("b", route(fixed=(("slow", 1, 0),), metered=(), whole=()))
    noted, call = watch(rung("a", FREE), slow, small("c"), sends=(FAILED,), before=slow)
    assert noted == [("a", False), ("b", False), ("c", True), ("b", True)]
    assert (call.end, call.rung) == (End.ANSWERED, 1)
