"""What was probably meant is named, and nothing that is not near."""

from swarmgate.core.nearest import MOST, closest, near, nearest


def test_the_nearest_name_is_told_else_all_of_them_or_none():
    assert nearest("opnai", {"openai", "azure"}) == "nearest is 'openai'"
    assert nearest("x", {"openai", "azure"}) == "one of azure, openai"
    assert near("opnai", ["openai", "azure"]) == "; nearest is 'openai'"
    assert not near("x", ["openai", "azure"])
    assert not near("x", [])


def test_capitals_make_no_other_name():
    assert closest("OPENAI", ["Openai"]) == "Openai"


def test_names_beyond_a_bound_and_the_rest_of_a_long_one_are_not_compared():
    assert not closest("openai", [*map(str, range(MOST)), "openai"])
    assert closest("openai" + "x" * 10_000_000, ["openai" + "x" * 74])
