"""What a call cost, as its caller may ask: the operator's price at once, the public one once the list is read."""

from types import SimpleNamespace

import pytest

from swarmgate.core.price import Price
from swarmgate.facts.prices import PriceBook
from swarmgate.gate.taps import NO_USAGE
from swarmgate.gate.view import calls
from swarmgate.gate.view.calls import Costs


def a_call(model="", asked="gpt-4o-mini"):
    rungs = (SimpleNamespace(model=model, target="up"),)
    return SimpleNamespace(rungs=rungs, rung=0, model=asked, flat_micro=-1, end=None)


def test_the_public_list_is_read_aside_and_once(monkeypatch):
    asides = []
    costs = Costs(PriceBook(), lambda _target: "openai", asides.append)
    monkeypatch.setattr(calls, "is_read", lambda: False)
    assert [costs.of(a_call(), (1_000_000, 0)) for _ in range(2)] == [None, None]
    (read,) = asides
    read()
    monkeypatch.undo()
    assert costs.of(a_call(), (1_000_000, 0)) == 150_000
    assert costs.of(a_call(model="gpt-4o"), (1_000_000, 0)) == 2_500_000  # what a route renames is what answered
    assert len(asides) == 1


@pytest.mark.parametrize(
    ("call", "usage", "cost"),
    [
        (a_call(), (2, 3), 32),
        (a_call(), NO_USAGE, None),
        (a_call(asked=""), (2, 3), None),
        (a_call(asked="nobody-knows-it"), (2, 3), None),
    ],
)
def test_what_is_not_known_is_none_and_the_operator_knows_best(call, usage, cost):
    own = {"up/gpt-4o-mini": Price(((0, 1_000_000),), ((0, 10_000_000),))}
    costs = Costs(PriceBook(own), lambda _target: "openai", lambda read: read())
    assert costs.of(call, usage) == cost
