"""What crosses the wire: indices, numbers that doubles hold, and nothing that is not an answer."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.answers import Blocker, BlockKind, Denied, Granted, Revised
from swarmgate.core.book import Take, Usage, first_score
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.limits import EXACT, BudgetKind, Limits, Tier
from swarmgate.core.operations import Define, Done, Revise, Undefined, Withdraw
from swarmgate.stores.valkey.replies import BadAnswer, Elsewhere, decode
from swarmgate.stores.valkey.wire import LONGEST_NAME, BadOperation, Batch, limits_text, meta_key

BUCKET = Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000, floors=(0, 5, 10), line="pool")
numbers = st.integers(0, 2**53 - 1)
amounts = st.integers(0, EXACT - 1)


def batch(*operations, lines=None):
    made = Batch(lines or {})
    for operation in operations:
        made.add(operation)
    return made


def told(made):
    return msgspec.msgpack.decode(made.argument("run", 7))


@given(
    st.sampled_from((BudgetKind.LEASES, BudgetKind.COUNTER)),
    amounts,
    amounts,
    st.integers(1, EXACT - 1),
    st.lists(amounts, min_size=3, max_size=3),
    st.lists(amounts, min_size=4, max_size=4),
    st.text(st.characters(codec="ascii"), max_size=9),
)
def test_limits_survive_the_way_there_and_back(kind, burst, quota, window_ms, floors, rest, line):
    hold_ms, anchor_ms, lease_ms, revision = rest
    floors = tuple(min(burst, floor) for floor in floors)
    limits = Limits(
        kind,
        burst,
        quota,
        window_ms,
        floors,
        hold_ms,
        anchor_ms=anchor_ms,
        lease_ms=lease_ms,
        line=line,
        revision=revision,
    )
    for one in (limits, BUCKET):
        assert msgspec.json.decode(limits_text(one), type=Limits) == one


def test_a_name_crosses_once_and_stands_as_its_index():
    take = Take("t", "l", 1, 99, ((("a", 1, 0), ("b", 2, 3)), (("a", 4, 5),)), 10, standing=("pool", "c"))
    made = batch(take, Settle("l", (Usage("b", 3, 2),), last=False), Withdraw("t", ("c",)), lines={"b": "pool"})
    assert told(made) == [
        7,
        "run",
        ["a", "b"],
        [1, 2],
        ["a", "pool", "c"],
        [
            ["take", "t", "l", 1, 99, [[1, 1, 0, 2, 2, 3], [1, 4, 5]], 10, [2, 3], True, 5_000],
            ["settle", "l", [[2, 3, 2]], False],
            ["leave", "t", [3]],
        ],
    ]
    assert made.keys("d") == ["{sg:d}"] + [
        "{sg:d}" + key for key in ("b:a", "h:a", "b:b", "h:b", "q:a", "t:a", "q:pool", "t:pool", "q:c", "t:c")
    ]


def test_every_operation_has_its_verb():
    made = batch(
        Release("l", ("a",)), Renew("l", ("a",), 5), Define("a", BUCKET), Revise("a", 3, BUCKET), lines={"a": "pool"}
    )
    text = limits_text(BUCKET)
    assert told(made)[-1] == [
        ["release", "l", [1]],
        ["renew", "l", [1], 5],
        ["define", 1, text],
        ["revise", 1, 3, text],
    ]


@given(st.integers(-(2**70), 2**70))
def test_hostile_usage_is_cut_as_the_kernel_cuts_it(used):
    ((_, _, ((_, _, cut),), _),) = told(batch(Settle("l", (Usage("a", 0, used),), last=True)))[-1]
    assert cut == min(max(0, used), EXACT - 1)


@pytest.mark.parametrize(
    ("field", "operation"),
    [
        ("cost, reserve", Take("t", "l", 1, 1, ((("a", -1, 0),),), 1)),
        ("cost, reserve", Take("t", "l", 1, 1, ((("a", 0, 2**53),),), 1)),
        ("score", Take("t", "l", 1, 2**53, ((("a", 0, 0),),), 1)),
        ("rank", Take("t", "l", 3, 1, ((("a", 0, 0),),), 1)),
        ("rank", Take("t", "l", -1, 1, ((("a", 0, 0),),), 1)),
        ("lease_ms", Take("t", "l", 1, 1, ((("a", 0, 0),),), EXACT)),
        ("expires_after_ms", Take("t", "l", 1, 1, ((("a", 0, 0),),), 1, expires_after_ms=-1)),
        ("ticket", Take("", "l", 1, 1, ((("a", 0, 0),),), 1)),
        ("lease", Release("ä", ())),
        ("budget", Release("l", ("\ud800",))),
        ("line", Withdraw("t", ("x" * (LONGEST_NAME + 1),))),
        ("reserved", Settle("l", (Usage("a", -1, 0),), last=True)),
        ("lease_ms", Renew("l", (), -1)),
        ("expected", Revise("a", -1, BUCKET)),
    ],
)
def test_what_does_not_fit_is_refused_and_the_rest_of_the_batch_stays(field, operation):
    made = batch(Release("l", ()))
    with pytest.raises(BadOperation) as refused:
        made.add(operation)
    assert refused.value.field == field
    _, _, budgets, lined, _, operations = told(made)
    assert len(made) == len(operations) == 1
    assert len(budgets) == len(lined)


def test_a_line_that_cannot_cross_takes_no_budget_with_it():
    made = Batch({"a": "ä", "b": "pool"})
    with pytest.raises(BadOperation, match="line"):
        made.add(Release("l", ("a",)))
    made.add(Release("l", ("b",)))
    assert told(made)[2:5] == [["b"], [1], ["pool"]]


@pytest.mark.parametrize("name", ["", "a{b", "a}b", "ö", "x" * 513])
def test_a_deployment_that_would_leave_its_hash_tag_is_refused(name):
    with pytest.raises(BadOperation):
        meta_key(name)


def test_a_batch_is_full_by_operations_or_by_budgets():
    assert batch(*[Release("l", ())] * 64).full
    assert not batch(*[Release("l", ())] * 63).full
    assert batch(Release("l", tuple(f"b{number}" for number in range(512)))).full


@given(
    numbers,
    numbers,
    st.lists(
        st.tuples(st.sampled_from((1, 2)), st.sampled_from(BlockKind), *[numbers] * 6, st.sampled_from(Tier)),
        max_size=3,
    ),
    st.lists(numbers, min_size=6, max_size=6),
)
def test_every_reply_survives_the_way_back(now_ms, birth_ms, blockers, rest):
    made = batch(*[Release("l", ("a", "b"))] * 6, lines={"b": "pool"})
    ready_ms, certain_ms, due_ms, score, position, depth = rest
    answers = [
        ["granted", 1, score],
        ["denied", 2, ready_ms, certain_ms, due_ms, 1, blockers, score, [2, 1], position, depth],
        ["revised", False, depth],
        ["done", depth],
        ["undefined", 2],
        ["elsewhere", 1, "pool"],
    ]
    back = decode(made, msgspec.msgpack.encode((now_ms, birth_ms, 3, answers)))
    assert back[:3] == (now_ms, birth_ms, 3)
    names = {1: "a", 2: "b"}
    assert back.replies == [
        Granted(now_ms, 1, score),
        Denied(
            now_ms,
            BlockKind.EVENT,
            ready_ms,
            certain_ms,
            due_ms,
            1,
            tuple(Blocker(names[one[0]], *one[1:]) for one in blockers),
            score,
            ("pool", "a"),
            position,
            depth,
        ),
        Revised(now_ms, False, depth),
        Done(now_ms, depth),
        Undefined(now_ms, "b"),
        Elsewhere(now_ms, "a", "pool"),
    ]
    assert isinstance(back.replies[1].kind, BlockKind)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 9)
    | st.text(max_size=9)
    | st.sampled_from(("granted", "denied", "done")),
    lambda inner: st.lists(inner, max_size=5),
)


@given(
    st.one_of(
        st.binary(),
        anything.map(msgspec.msgpack.encode),
        st.lists(anything).map(lambda answers: msgspec.msgpack.encode([1, 2, 3, answers])),
    )
)
def test_whatever_is_no_answer_is_a_bad_answer_and_never_half_of_one(answer):
    made = batch(Release("l", ("a",)))
    try:
        replies = decode(made, answer).replies
    except BadAnswer:
        return
    assert len(replies) == 1
    assert isinstance(replies[0], Granted | Denied | Revised | Done | Undefined | Elsewhere)


def test_a_first_score_fits():
    assert told(batch(Take("t", "l", 2, first_score(2), ((("a", 0, 0),),), 1)))[-1][0][4] == first_score(2) < 2**53
