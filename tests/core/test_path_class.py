import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swarmgate.core.path_class import NO_CLASS, class_of, path_class
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import BadPattern

SEARCH = path_class("search", "/v1/search*", ["GET"])
ITEM = path_class("item", "/v1/*/item")
EXACT = path_class("exact", "/v1/search")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/v1/search", "search"),
        ("GET", "/v1/search/x", "search"),
        ("get", "/v1/searching", "search"),
        ("POST", "/v1/search", "exact"),
        ("POST", "/v1/search/x", NO_CLASS),
        ("GET", "/v1/Search", NO_CLASS),
        ("GET", "/v1/a/b/item", "item"),
        ("GET", "/v1/item", NO_CLASS),
        ("GET", "/V1/search", NO_CLASS),
        ("GET", "/", NO_CLASS),
    ],
)
def test_the_first_class_that_takes_method_and_path_wins(method, path, name):
    assert class_of([SEARCH, ITEM, EXACT], method, path) == name


@example(["", "ab", "ba"], "aba")
@given(st.lists(st.text("ab/", max_size=3), min_size=1, max_size=4), st.text("ab/", max_size=10))
def test_a_star_stands_for_any_characters(pieces, rest):
    pattern = "/" + "*".join(pieces)
    if "//" in pattern:
        return
    wanted = re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), "/" + rest)
    assert (class_of([path_class("x", pattern)], "GET", "/" + rest) == "x") is bool(wanted)


def _detours(segment):
    encoded = "".join(f"%{ord(char):02X}" for char in segment)
    half = segment[0] + f"%{ord(segment[1]):02x}" + segment[2:]
    return [
        segment,
        encoded,
        half,
        f"./{segment}",
        f"/{segment}",
        f"x/../{segment}",
        f"x/%2e%2E/{segment}",
        f"%2e/{segment}",
    ]


@given(st.data())
def test_no_spelling_of_a_path_evades_its_class(data):
    path = "/".join(data.draw(st.sampled_from(_detours(segment))) for segment in ("v1", "search"))
    up = data.draw(st.sampled_from(["", "../", "a/b/../../", "//", "./"]))
    url = parse_target(f"https://api.example.com/{up}{path}")
    assert class_of([SEARCH], "GET", url.path) == "search"


@pytest.mark.parametrize(
    ("field", "name", "pattern", "methods"),
    [
        ("class", "", "/", []),
        ("class", "Search", "/", []),
        ("class", "a#b", "/", []),
        ("class", "a" * 65, "/", []),
        ("path", "x", "v1/search", []),
        ("path", "x", "", []),
        ("path", "x", "/v1//search", []),
        ("path", "x", "/v1/../search", []),
        ("path", "x", "/v1/%73earch", []),
        ("path", "x", "/v1/..;/x", []),
        ("method", "x", "/", ["get"]),
        ("method", "x", "/", ["GET,POST"]),
    ],
)
def test_a_pattern_that_can_never_match_is_refused(field, name, pattern, methods):
    with pytest.raises(BadPattern) as caught:
        path_class(name, pattern, methods)
    assert caught.value.field == field


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_pattern_is_taken_or_refused(name, pattern):
    try:
        one = path_class(name, "/" + pattern)
    except BadPattern:
        return
    assert "*" in pattern or class_of([one], "GET", one.pattern) == name
