"""Operations as values do what the kernel's functions do, and name what is not defined."""

import pytest

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted, Revised
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.operations import Define, Done, Revise, Undefined, Withdraw, apply

LIMITS = Limits(BudgetKind.LEASES, burst=2)


def take(*names, waits=False):
    return Take("t", "l", 1, first_score(1), (tuple((name, 0, 2) for name in names),), 100, waits=waits)


def test_each_operation_has_its_reply():
    book = Book(5)
    assert apply(book, take("a"), 10) == Undefined(10, "a")
    assert apply(book, Define("a", LIMITS), 10) == Done(10)
    assert apply(book, Define("a", Limits(BudgetKind.LEASES, burst=9)), 10) == Done(10)
    assert apply(book, take("a"), 10) == Granted(10, 0, 110)
    denied = apply(book, take("a", waits=True), 10)
    assert isinstance(denied, Denied)
    assert list(book.lines["a"].entries) == ["t"]
    assert apply(book, Withdraw("t", ("a", "nobody")), 11) == Done(11)
    assert book.lines["a"].order == []
    assert apply(book, Renew("l", ("a", "unknown"), 500), 12) == Done(12)
    assert book.cells["a"].leases["l"].expires_ms == 512
    assert apply(book, Release("l", ("a", "unknown")), 13) == Done(13)
    assert book.cells["a"].pending == 0
    assert apply(book, Settle("l", (Usage("a", 0, 5), Usage("unknown", 0, 5)), last=True), 14) == Done(14)
    assert apply(book, Revise("a", 1, Limits(BudgetKind.LEASES, burst=7, revision=2)), 15) == Revised(15, True, 2)
    assert apply(book, Revise("b", 1, LIMITS), 15) == Revised(15, False, 0)


def test_use_beyond_a_reservation_is_told():
    book = Book(0)
    apply(book, Define("c", Limits(BudgetKind.COUNTER, burst=9, window_ms=100)), 1)
    assert apply(book, Settle("l", (Usage("c", 2, 7),), last=True), 1) == Done(1, 5)


@pytest.mark.interpreted  # replaces a function of the kernel
def test_a_bug_inside_is_not_taken_for_an_unknown_budget(monkeypatch):
    book = Book(0)
    apply(book, Define("a", Limits(BudgetKind.LEVEL, burst=9, quota=1)), 1)
    monkeypatch.setattr(kernel, "_commit", lambda *_: {}["a"])
    with pytest.raises(KeyError):
        apply(book, take("a"), 1_000_000)
