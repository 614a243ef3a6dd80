"""A place in line comes back as it was given, and no other way (design 2: P6)."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.answers import BlockKind, Denied
from swarmgate.core.line import CLASS_STEP
from swarmgate.core.ticket import KEEPS_MS, Place, kept, opened, sealed

KEY = b"a gate's own"
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
places = st.builds(
    Place,
    names,
    st.integers(0, 2).flatmap(lambda rank: st.integers(rank * CLASS_STEP, (rank + 1) * CLASS_STEP - 1)),
    st.integers(0, 2**50),
)


@given(places)
def test_a_sealed_place_opens_as_it_was(place):
    assert opened(sealed(place, KEY, "blue"), KEY, "blue", place.score // CLASS_STEP, place.until_ms) == place


@given(places)
def test_it_is_worth_nothing_in_another_class_or_when_it_is_too_old_or_at_another_gate(place):
    rank = place.score // CLASS_STEP
    text = sealed(place, KEY, "blue")
    assert opened(text, KEY, "blue", (rank + 1) % 3, place.until_ms) is None
    assert opened(text, KEY, "blue", rank, place.until_ms + 1) is None
    assert opened(text, b"another", "blue", rank, place.until_ms) is None


@given(places, st.text(max_size=9), st.text(max_size=9))
def test_ti_04_it_is_worth_nothing_to_another_tenant(place, own, other):
    found = opened(sealed(place, KEY, own), KEY, other, place.score // CLASS_STEP, place.until_ms)
    assert (found is None) == (own != other)


@given(places, st.data())
def test_a_changed_ticket_is_no_ticket(place, data):
    text = sealed(place, KEY, "blue")
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=126).filter(lambda one: one != text[at]))
    changed = text[:at] + other + text[at + 1 :]
    assert opened(changed, KEY, "blue", place.score // CLASS_STEP, place.until_ms) is None


@given(st.text(max_size=400), st.integers(0, 2))
def test_any_text_is_judged_and_never_raises(text, rank):
    assert opened(text, KEY, "blue", rank, 0) is None


def test_a_deferral_keeps_its_place_for_five_seconds_after_its_instant():
    denied = Denied(100, BlockKind.TIME, 1_100, 1_100, 1_100, 0, (), 77, (), 0, 0)
    assert kept("t", denied, 50_000) == Place("t", 77, 50_000 + 1_000 + KEEPS_MS)
