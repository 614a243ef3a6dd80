from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from swarmgate.core.errors import BadInput
from swarmgate.core.keys import MOST_SCOPES, PROBE_AGAIN_MS, RAMP_MS, KeyRing, QuotaScope
from swarmgate.core.limits import EXACT
from swarmgate.core.outcome import QuotaLeft, Signal, classify

OK = classify(Signal(200))
RATE = classify(Signal(429))
RATE_5S = classify(Signal(429, hint_ms=5_000))
RATE_90S = classify(Signal(429, hint_ms=90_000))
BAD_KEY = classify(Signal(401))
OVERLOADED = classify(Signal(529))
BUSY = classify(Signal(429, message="too many concurrent requests"))


def ring_of(*quotas):
    return KeyRing(QuotaScope(f"s{index}", (f"k{index}",), quota) for index, quota in enumerate(quotas))


def first_picks(ring, now_ms, count):
    return Counter(keys[0] for keys in (ring.candidates(now_ms) for _ in range(count)) if keys)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=30))
def test_shares_follow_quotas(quotas):
    """RB-28: within 5 % of the quota's share over 1,000 picks, or within one pick where 5 % is less."""
    picks = first_picks(ring_of(*quotas), 0, 1_000)
    for index, quota in enumerate(quotas):
        share = 1_000 * quota / sum(quotas)
        assert abs(picks[f"k{index}"] - share) <= max(1.5, share / 20)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30))
def test_shares_follow_what_answers_say_remains_and_empty_keys_rest(remaining):
    ring = ring_of(*[5_000] * len(remaining))
    for index, amount in enumerate(remaining):
        ring.report(f"k{index}", QuotaLeft(amount, 60_000), 0, 0)
    picks = first_picks(ring, 1, 1_000)
    for index, amount in enumerate(remaining):
        share = 1_000 * amount / max(1, sum(remaining))
        assert abs(picks[f"k{index}"] - share) <= max(1.5, share / 20) * (amount > 0)


def test_a_full_window_is_learned_from_answers():
    ring = ring_of(0, 0)
    ring.report("k0", QuotaLeft(1, 10, quota=900), 0, 0)
    ring.report("k1", QuotaLeft(1, 10, quota=100), 0, 0)
    assert first_picks(ring, 5, 1_000)["k0"] == pytest.approx(500, abs=2)
    assert first_picks(ring, 1_000, 10_000)["k0"] == pytest.approx(9_000, abs=300)  # the old plan is served first


def test_llm_gateways_74_turns_are_smooth():
    ring = ring_of(5, 1, 1)
    order = "".join(ring.candidates(0)[0][1] for _ in range(700))
    assert "000000000" not in order
    assert all(75 <= order[at : at + 140].count("0") <= 125 for at in range(0, 560, 7))
    assert Counter(order)["0"] == pytest.approx(500, abs=2)


def test_alternatives_are_of_other_scopes():
    ring = KeyRing([QuotaScope("a", ("a1", "a2", "a3")), QuotaScope("b", ("b1",)), QuotaScope("c", ("c1",))])
    for _ in range(300):
        keys = ring.candidates(0)
        assert sorted(key[0] for key in keys) == ["a", "b", "c"]
        assert len(ring.candidates(0, 2)) == 2


def test_several_keys_of_one_scope_add_no_share_and_take_turns():
    ring = KeyRing([QuotaScope("a", ("a1", "a2", "a3"), 100), QuotaScope("b", ("b1",), 100)])
    picks = first_picks(ring, 0, 600)
    assert picks == {"a1": 100, "a2": 100, "a3": 100, "b1": 300}


def test_llm_gateways_10_20_a_refused_key_rests_60_s_then_one_probe_then_ramps():
    """RB-26, one of 20 keys."""
    ring = ring_of(*[100] * 20)
    for _ in range(100):
        ring.candidates(1_000)
    assert ring.observe("k7", RATE, 1_000, 2_000)
    resting = first_picks(ring, 2_000, 500) + first_picks(ring, 61_999, 500)
    assert "k7" not in resting
    assert max(resting.values()) - min(resting.values()) <= 2
    probed = first_picks(ring, 62_000, 600) + first_picks(ring, 62_000 + PROBE_AGAIN_MS - 1, 600)
    assert probed["k7"] == 1
    assert ring.observe("k7", OK, 62_000, 72_000)
    quarter = RAMP_MS // 4
    ramp = [first_picks(ring, 72_000 + quarter * step, 1_000)["k7"] for step in range(4)]
    assert ramp == [pytest.approx(expected, abs=2) for expected in (6, 13, 26, 50)]
    assert first_picks(ring, 200_000, 1_000)["k7"] == pytest.approx(50, abs=2)


def test_a_probe_that_answers_counts_before_it_has_ended():
    ring = ring_of(5)
    assert ring.observe("k0", RATE, 0, 1)
    assert ring.candidates(60_001) == ("k0",)
    assert ring.candidates(60_002) == ()
    assert ring.begun("k0", 60_001, 60_100)
    assert not ring.begun("k0", 60_001, 60_101)  # it is no probe any more
    assert ring.candidates(60_102) == ("k0",)
    assert not ring.observe("k0", OK, 60_001, 90_000)
    assert ring.observe("k0", RATE, 60_001, 90_001)  # an error event later in the same stream
    assert ring.candidates(90_002) == ()


def test_an_answer_to_what_was_sent_before_the_refusal_brings_nothing_back():
    ring = ring_of(5)
    assert ring.observe("k0", RATE, 10, 20)
    assert not ring.begun("k0", 15, 30)
    assert ring.candidates(31) == ()


def test_a_probe_whose_answer_never_came_is_repeated():
    ring = ring_of(1)
    ring.observe("k0", RATE, 1, 2)
    assert first_picks(ring, 60_002, 5) == {"k0": 1}
    assert ring.back_at_ms(60_002) == 60_002 + PROBE_AGAIN_MS
    assert first_picks(ring, 60_002 + PROBE_AGAIN_MS, 5) == {"k0": 1}


def test_a_probe_that_was_not_sent_is_free_again():
    ring = ring_of(1)
    ring.observe("k0", RATE, 1, 2)
    assert ring.candidates(60_002) == ("k0",)
    assert not ring.ready(60_003)
    assert ring.unused("k0", 60_002)
    assert ring.candidates(60_003) == ("k0",)
    assert not ring.unused("k0", 60_002)  # that was an earlier one
    assert ring.observe("k0", OK, 60_003, 60_100)
    assert not ring.unused("k0", 60_100)
    assert ring.ready(60_100)


def test_a_reset_in_a_thousand_years_is_a_month_away():
    ring = ring_of(100)
    ring.report("k0", QuotaLeft(0, 2**53), 1, 2)
    assert ring.back_at_ms(2) == 2 + 31 * 86_400_000


def test_a_refused_probe_rests_again():
    ring = ring_of(1)
    ring.observe("k0", RATE, 1, 2)
    assert ring.candidates(60_002) == ("k0",)
    assert ring.observe("k0", RATE_5S, 60_002, 60_100)
    assert ring.back_at_ms(60_100) == 65_100


def test_when_every_key_is_out_the_ring_says_when_one_returns():
    """RB-27."""
    ring = ring_of(1, 1, 1)
    for index, outcome in enumerate([RATE, RATE_90S, RATE_5S]):
        ring.observe(f"k{index}", outcome, 1, 1_000)
    for now_ms in (1_000, 3_000, 5_999):
        assert ring.candidates(now_ms) == ()
        assert not ring.ready(now_ms)
        assert ring.back_at_ms(now_ms) == 6_000
    assert ring.ready(6_000)
    assert ring.candidates(6_000) == ("k2",)


def test_llm_gateways_12_concurrent_refusals_are_one_event():
    ring = ring_of(1, 1)
    assert ring.observe("k0", RATE, 900, 1_000)
    for sent_ms in range(1, 50):
        assert not ring.observe("k0", RATE, sent_ms, 30_000 + sent_ms)
    ring.observe("k1", RATE, 900, 1_000)
    assert ring.back_at_ms(2_000) == 61_000
    assert not ring.observe("k0", RATE_90S, 950, 2_000)
    assert not ring.observe("k1", RATE_5S, 950, 2_000)
    assert ring.back_at_ms(2_000) == 61_000
    assert first_picks(ring, 62_000, 500) == {"k1": 1}


def test_a_late_refusal_of_an_old_send_does_not_eject_again():
    ring = ring_of(1)
    ring.observe("k0", RATE_5S, 1, 1_000)
    ring.candidates(6_000)
    ring.observe("k0", OK, 6_000, 6_500)
    assert not ring.observe("k0", RATE_90S, 900, 7_000)
    assert ring.ready(7_000)


def test_llm_gateways_24_a_refusal_by_one_key_rests_its_whole_scope():
    ring = KeyRing([QuotaScope("a", ("a1", "a2")), QuotaScope("b", ("b1",))])
    ring.observe("a1", RATE, 1, 2)
    assert set(first_picks(ring, 2, 100)) == {"b1"}


def test_a_dead_key_rests_alone_and_until_a_person_acts():
    ring = KeyRing([QuotaScope("a", ("a1", "a2")), QuotaScope("b", ("b1",))])
    assert ring.observe("a1", BAD_KEY, 1, 2)
    assert not ring.observe("a1", BAD_KEY, 1, 2)
    assert first_picks(ring, 10**12, 100) == {"a2": 50, "b1": 50}
    ring.observe("a2", BAD_KEY, 1, 2)
    ring.observe("b1", BAD_KEY, 1, 2)
    assert ring.candidates(10**15) == ()
    assert ring.back_at_ms(10**15) is None
    assert ring.revive()
    assert set(first_picks(ring, 10**15, 4)) == {"a1", "a2", "b1"}
    assert not ring.revive()


@pytest.mark.parametrize("outcome", [OVERLOADED, BUSY, classify(Signal(500)), classify(Signal(400)), OK])
def test_what_no_key_is_to_blame_for_ejects_nothing(outcome):
    ring = ring_of(1)
    assert not ring.observe("k0", outcome, 1, 2)
    assert ring.candidates(2) == ("k0",)


def test_planners_see_which_key_is_out_and_until_when():
    ring = ring_of(1, 1, 1)
    ring.observe("k1", RATE_90S, 1, 1_000)
    ring.observe("k2", BAD_KEY, 1, 1_000)
    seen = ring.views(1_000)
    assert [seen[key].state.value for key in ("k0", "k1", "k2")] == ["ready", "backoff", "stalled"]
    assert (seen["k1"].back_at_ms, seen["k2"].back_at_ms) == (91_000, EXACT)
    assert ring.views(91_000)["k1"].state.value == "ready"
    assert not ring.candidates(1_000)[1:]  # a look took no turn and freed nobody


def test_an_empty_scope_returns_at_its_reset_at_full_weight():
    ring = ring_of(100, 100)
    ring.report("k0", QuotaLeft(0, 5_000), 0, 100)
    assert set(first_picks(ring, 4_999, 300)) == {"k1"}
    assert first_picks(ring, 5_000, 1_000)["k0"] == pytest.approx(500, abs=1)
    ring.report("k0", QuotaLeft(0), 5_001, 5_001)
    assert ring.back_at_ms(5_001) == 5_001
    assert set(first_picks(ring, 65_000, 300)) == {"k1"}
    assert set(first_picks(ring, 65_001, 300)) == {"k0", "k1"}


def test_sentinels_and_stale_reports_are_ignored():
    ring = ring_of(100, 100)
    ring.report("k0", QuotaLeft(-1), 0, 0)
    ring.observe("k1", RATE_5S, 10, 20)
    ring.candidates(5_020)
    ring.observe("k1", OK, 5_020, 5_030)
    ring.report("k1", QuotaLeft(0), 15, 5_040)
    assert set(first_picks(ring, 5_040 + RAMP_MS, 100)) == {"k0", "k1"}


def test_scopes_of_unknown_quota_count_like_the_largest():
    assert first_picks(ring_of(0, 400, 200), 0, 1_000) == {
        "k0": pytest.approx(400, abs=1),
        "k1": pytest.approx(400, abs=1),
        "k2": pytest.approx(200, abs=1),
    }


def test_keys_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="twice"):
        KeyRing([QuotaScope("a", ("k",)), QuotaScope("b", ("k",))])
    with pytest.raises(BadInput, match="at most"):
        ring_of(*[1] * (MOST_SCOPES + 1))
    assert len(first_picks(ring_of(*[1] * MOST_SCOPES), 0, MOST_SCOPES)) == MOST_SCOPES
    assert KeyRing([]).candidates(0) == ()


class Rotation(RuleBasedStateMachine):
    """Against a plain record of what is out until when: no such key is ever offered, and nothing else is withheld."""

    @initialize(scopes=st.lists(st.integers(1, 3), min_size=1, max_size=5))
    def start(self, scopes):
        self.scopes = {f"s{index}": [f"s{index}.{key}" for key in range(count)] for index, count in enumerate(scopes)}
        self.ring = KeyRing(QuotaScope(scope, tuple(keys), 10) for scope, keys in self.scopes.items())
        self.now_ms = 1
        self.out, self.probing, self.decided = {}, set(), {}

    @rule(data=st.data(), gap_ms=st.integers(0, 40_000), hint_ms=st.sampled_from([None, 1, 3_000, 200_000]))
    def refuse(self, data, gap_ms, hint_ms):
        self.now_ms += gap_ms
        sent_ms = self.now_ms - data.draw(st.integers(0, gap_ms))
        scope = data.draw(st.sampled_from(sorted(self.scopes)))
        key = data.draw(st.sampled_from([f"{scope}.0", *self.scopes[scope]]))
        news = self.ring.observe(key, classify(Signal(429, hint_ms=hint_ms)), sent_ms, self.now_ms)
        assert news == (sent_ms > self.decided.get(scope, 0))
        if news:
            self.out[scope] = self.now_ms + (hint_ms or 60_000)
            self.decided[scope] = self.now_ms
            self.probing.add(scope)
        elif scope in self.probing:
            self.out[scope] = max(self.out[scope], self.now_ms + (hint_ms or 0))

    @rule(data=st.data(), remaining=st.integers(-1, 3), reset_ms=st.integers(0, 90_000))
    def tell(self, data, remaining, reset_ms):
        scope = data.draw(st.sampled_from(sorted(self.scopes)))
        if self.scopes[scope] and scope not in self.probing:
            self.now_ms += 1
            reset_at_ms = self.now_ms + reset_ms if reset_ms else 0
            self.ring.report(self.scopes[scope][0], QuotaLeft(remaining, reset_at_ms), self.now_ms, self.now_ms)
            if remaining == 0:
                self.out[scope] = max(self.out.get(scope, 0), reset_at_ms or self.now_ms + 60_000)

    @rule(data=st.data())
    def die(self, data):
        key = data.draw(st.sampled_from(sorted(key for keys in self.scopes.values() for key in keys) or ["none"]))
        if key != "none":
            self.ring.observe(key, BAD_KEY, self.now_ms, self.now_ms)
            self.scopes[key.partition(".")[0]].remove(key)

    @rule(gap_ms=st.integers(0, 70_000), n=st.integers(1, 3))
    def pick(self, gap_ms, n):
        self.now_ms += gap_ms
        may = {scope for scope, keys in self.scopes.items() if keys and self.out.get(scope, 0) <= self.now_ms}
        assert self.ring.ready(self.now_ms) == bool(may)
        keys = self.ring.candidates(self.now_ms, n)
        assert bool(keys) == bool(may)
        chosen = [key.partition(".")[0] for key in keys]
        assert len(set(chosen)) == len(chosen) <= n
        assert set(chosen) <= may
        assert all(key in self.scopes[scope] for key, scope in zip(keys, chosen, strict=True))
        assert not self.probing & set(chosen[1:])
        if keys and chosen[0] in self.probing:
            self.out[chosen[0]] = self.now_ms + PROBE_AGAIN_MS

    @rule(data=st.data())
    def succeed(self, data):
        scope = data.draw(st.sampled_from(sorted(self.scopes)))
        if self.scopes[scope] and scope in self.probing:
            self.now_ms += 1
            assert self.ring.observe(self.scopes[scope][0], OK, self.now_ms, self.now_ms)
            self.probing.discard(scope)
            self.out[scope] = 0

    @invariant()
    def says_when_one_returns(self):
        back_ms = self.ring.back_at_ms(self.now_ms)
        returns_ms = [self.out.get(scope, 0) for scope, keys in self.scopes.items() if keys]
        assert back_ms == (max(self.now_ms, min(returns_ms)) if returns_ms else None)


Rotation.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestRotation = Rotation.TestCase
