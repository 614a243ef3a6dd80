import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList

from swarmgate.core.groups import registrable_domain, registrable_group
from swarmgate.core.host import normal_host
from swarmgate.core.target_errors import BadTarget
from swarmgate.facts.suffixes import load_suffix_rules

RULES = load_suffix_rules()
LIBRARY = PublicSuffixList()
SUFFIXES = sorted(RULES.suffixes | {f"x.{parent}" for parent in RULES.wildcards} | RULES.exceptions)
VECTOR = re.compile(r"^checkPublicSuffix\('([^']+)', (?:null|'([^']+)')\)", re.MULTILINE)


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.github.io", "b.github.io"),
        ("app.herokuapp.com", "app.herokuapp.com"),
        ("bucket.s3.amazonaws.com", "bucket.s3.amazonaws.com"),
        ("en.wikipedia.org", "wikipedia.org"),
        ("github.io", "github.io"),
    ],
)
def test_the_installed_list_and_its_private_part_are_in_force(host, group):
    assert registrable_group(host, RULES) == group


@given(st.sampled_from(SUFFIXES), st.lists(st.sampled_from(["a", "b-1", "city", "www"]), max_size=3))
def test_the_library_agrees_about_every_suffix(suffix, labels):
    host = ".".join([*labels, suffix])
    assert registrable_domain(host, RULES) == (LIBRARY.privatesuffix(host) or host)


def test_the_vectors_of_the_list_hold():
    shipped = files("publicsuffixlist").joinpath("test_psl.txt")
    if not shipped.is_file():
        pytest.skip("the installed package ships no vectors")
    checked = 0
    for spelled, wanted in VECTOR.findall(shipped.read_text(encoding="utf-8")):
        try:
            host = normal_host(spelled)
        except BadTarget:
            assert spelled.startswith(".")
            continue
        assert registrable_domain(host, RULES) == (normal_host(wanted) if wanted else host)
        checked += 1
    assert checked > 70
