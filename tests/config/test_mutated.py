"""OP-01: whatever is changed in a configuration, it is refused with its place and a reason, or it is one that can be served."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from swarmgate import wiring
from swarmgate.config import parse
from swarmgate.config.problems import FileError
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import EXACT

GOOD = """\
listen = "127.0.0.1:8787"
connections = 100
[targets.up]
base_url = "http://127.0.0.1:9/v1"
provider = "openai"
keys = { one = "env:KEY", two = "env:KEY" }
key_limits = ["500 per 60s", "2_000_000 tokens per 60s"]
limits = ["100 concurrent"]
headroom = 80
largest_tokens = 16_384
windows = { m = 8_192 }
accounts = { lab = ["one", "two"] }
[routes]
"m-*" = ["up/m"]
[prices]
m = { input = 1.5, output = 2 }
[agents]
limits = ["5 per 1s", "4 concurrent"]
[teams.biology]
agents = ["bio-*"]
limits = ["20 USD per 1d"]
reserve = 25
share = 50
[task_types.literature]
context = 16_384
over = "compress"
[resolve]
"a.example" = "10.0.0.7:8080"
[egress]
unknown = "1 per 1s"
presets = "off"
wait = "0s"
[policies.archive]
hosts = ["b.example", "*.c.example"]
limits = ["5 per 1s", "2_000 per 1h"]
gap = "250ms"
[access]
agent_keys = "optional"
"""
WORDS = re.findall(r'"[^"\n]*"|[\w.*]+|[\[\]{}=,]', GOOD)
ODD = [
    "-1",
    "0",
    "1e400",
    "nan",
    "9" * 25,
    "true",
    '""',
    '"\\u0000"',
    '"0 per 0s"',
    '"5 per 1ms"',
    '"9 per 999d"',
    "[]",
    "{}",
    '"*"',
    "1979-05-27",
]

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("word"), st.integers(0, len(WORDS) - 1), st.sampled_from(WORDS + ODD)),
        st.tuples(st.just("line"), st.integers(0, GOOD.count("\n") - 1), st.sampled_from(GOOD.splitlines())),
        st.tuples(st.just("letter"), st.integers(0, len(GOOD) - 1), st.characters(max_codepoint=300)),
        st.tuples(st.just("swap"), st.integers(0, GOOD.count("\n") - 1), st.integers(0, GOOD.count("\n") - 1)),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip


def mutated(changes):
    text = GOOD
    for kind, at, by in changes:
        if kind == "word":
            places = list(re.finditer(re.escape(WORDS[at]), text))
            if places:
                place = places[at % len(places)]
                text = text[: place.start()] + by + text[place.end() :]
        elif kind == "letter":
            text = text[: at % len(text)] + by + text[at % len(text) + 1 :]
        else:
            lines = text.splitlines()
            other = by if kind == "line" else lines[by % len(lines)]
            text = "\n".join([*lines[: at % len(lines)], other, *lines[at % len(lines) + 1 :], ""])
    return text


def served_or_refused(text):
    """The budgets that the configuration makes, or every place and reason for which it is refused."""
    try:
        return wiring.plan(parse(text, {"KEY": "sk"})).budgets.values(), []
    except FileError as refused:
        return [], [(problem.field, problem.reason) for problem in refused.problems]
    except BadInput as bad:  # what only the whole shows
        return [], [(bad.field, bad.reason)]


@given(mutations)
@example([("word", 0, "listen")])
@example([("word", 0, '""')])
@settings(max_examples=300, deadline=None)
def test_op_01_a_changed_configuration_is_refused_with_a_reason_or_can_be_served(changes):
    budgets, refused = served_or_refused(mutated(changes))
    assert all(field and reason for field, reason in refused)
    for limits in budgets:
        assert 1 <= limits.burst <= EXACT
        assert 0 <= limits.quota * max(1, limits.window_ms) <= 2**53 * 1_000


def test_a_good_one_is_served():
    budgets, refused = served_or_refused(GOOD)
    assert (len(budgets) > 5, refused) == (True, [])
