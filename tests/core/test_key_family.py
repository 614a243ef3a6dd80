"""Rings of the same keys, one for each model: what is a model's own, and what is the keys'."""

from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.limits import EXACT
from swarmgate.core.outcome import QuotaLeft, Signal, classify

RATE, BAD_KEY = classify(Signal(429)), classify(Signal(401))


def two():
    one = KeyRing([QuotaScope("a", ("a1", "a2")), QuotaScope("b", ("b",))])
    return one, one.apart()


def picks(ring, now_ms):
    return {key for _ in range(20) for key in ring.candidates(now_ms, 1)}


def test_a_rest_is_the_models_own():
    one, other = two()
    one.observe("b", RATE, 1, 2)
    assert picks(one, 3) == {"a1", "a2"}
    assert picks(other, 3) == {"a1", "a2", "b"}
    other.report("a1", QuotaLeft(0, 5_000), 1, 3)
    assert picks(one, 4) == {"a1", "a2"}
    assert picks(other, 4) == {"b"}


def test_a_dead_key_is_dead_for_all_though_they_have_planned_with_it():
    one, other = two()
    assert picks(other, 1) == {"a1", "a2", "b"}
    for key in ("b", "a1"):
        assert one.observe(key, BAD_KEY, 1, 2)
        assert not other.observe(key, BAD_KEY, 1, 2)  # it is known
    assert picks(one, 3) == picks(other, 3) == picks(one.apart(), 3) == {"a2"}
    assert other.views(3)["b"].back_at_ms >= EXACT
    assert other.observe("a2", BAD_KEY, 1, 4)
    assert not one.ready(5)
    assert one.candidates(5) == ()
    assert one.back_at_ms(5) is None


def test_a_person_brings_it_back_for_all():
    one, other = two()
    assert picks(other, 1) == {"a1", "a2", "b"}
    one.observe("b", BAD_KEY, 1, 2)
    assert picks(other, 3) == {"a1", "a2"}
    assert one.revive()
    assert picks(other, 4) == picks(one, 4) == {"a1", "a2", "b"}
    assert not other.revive()


def test_where_all_models_are_counted_together_there_is_one_ring():
    ring = KeyRing([QuotaScope("a", ("a1", "a2"))], together=True)
    assert ring.apart() is ring


def test_rings_count_alike_that_have_the_same_keys_in_the_same_accounts():
    one, other = two()
    assert one.counts == other.counts == two()[0].counts
    assert one.counts != KeyRing([QuotaScope("a", ("a1",)), QuotaScope("b", ("b", "a2"))]).counts
    assert one.counts != KeyRing([QuotaScope("a", ("a1", "a2")), QuotaScope("b", ("b",))], together=True).counts
