"""Who calls: headers and path read the same, headers win, and no misspelt word passes silently."""

import contextlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.errors import BadInput
from swarmgate.gate.identity import NAMES, UNSAID, proxy_words, read_identity, split_as

KEY = "sgk_0123456789_" + "x" * 43


def headers(**said):
    return {f"x-swarmgate-{name.replace('_', '-')}".encode(): value.encode() for name, value in said.items()}


def test_a_key_is_the_keepers_and_is_said_in_a_header_only():
    assert read_identity({b"x-swarmgate-key": KEY.encode()}) == UNSAID
    basic = b64encode(f"key={KEY}:".encode())
    with pytest.raises(BadInput, match="no place for a key"):
        proxy_words({b"proxy-authorization": b"Basic " + basic})


def test_nothing_said():
    assert read_identity({}) == UNSAID
    assert UNSAID.rank == 1


def test_headers_and_path_and_who_wins():
    path, said = split_as(b"/as/agent=a17,goal=g%203,priority=P2,task-type=hyp/v1/chat/completions")
    assert path == b"/v1/chat/completions"
    with pytest.raises(BadInput, match="x-swarmgate-goal"):
        read_identity({}, said)
    said["goal"] = "g3"
    identity = read_identity(headers(priority="P0", step="7", wait="1s500ms", timeout="250ms"), said)
    assert identity.step == ("a17", "", "g3", "7", "", "hyp")
    assert (identity.rank, identity.wait_ms, identity.timeout_ms) == (0, 1_500, 250)


@pytest.mark.parametrize(
    ("said", "field", "reason"),
    [
        (headers(prority="P0"), "x-swarmgate-prority", "nearest is x-swarmgate-priority"),
        (headers(priority="high"), "x-swarmgate-priority", "P0, P1 or P2"),
        (headers(wait="20"), "x-swarmgate-wait", "250ms"),
        (headers(timeout="-1s"), "x-swarmgate-timeout", "duration"),
        (headers(agent=""), "x-swarmgate-agent", "visible ASCII"),
        (headers(agent="a" * 129), "x-swarmgate-agent", "128"),
        (headers(agent="a\xe9"), "x-swarmgate-agent", "visible ASCII"),
        (headers(zzz="1"), "x-swarmgate-zzz", "unknown"),
        (headers(agent=KEY), "x-swarmgate-agent", "x-swarmgate-key"),
        (headers(goal=f"g/{KEY}"), "x-swarmgate-goal", "x-swarmgate-key"),
        (headers(ticket=KEY), "x-swarmgate-ticket", "x-swarmgate-key"),
    ],
)
def test_a_bad_word_names_its_header(said, field, reason):
    with pytest.raises(BadInput) as caught:
        read_identity(said)
    assert caught.value.field == field
    assert reason in caught.value.reason
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        b"/as/key=sgk_1/v1/x",
        b"/as/agent=a,key=/v1/x",
        b"/as/",
        b"/as/agent=a",
        b"/as/agent/v1/x",
        b"/as/agent=a,agent=b/v1/x",
        b"/as//v1",
    ],
)
def test_a_path_that_cannot_be_read(path):
    with pytest.raises(BadInput):
        split_as(path)


@given(st.dictionaries(st.sampled_from([f"x-swarmgate-{n}".encode() for n in NAMES]) | st.binary(), st.binary()))
def test_any_headers_are_an_identity_or_bad_input(fields):
    with contextlib.suppress(BadInput):
        assert read_identity(fields).rank in {0, 1, 2}


@given(st.binary().map(lambda rest: b"/as/" + rest))
def test_any_path_is_split_or_bad_input(path):
    try:
        rest, _ = split_as(path)
    except BadInput:
        return
    assert rest.startswith(b"/")
    assert path.endswith(rest)


def test_a_malformed_traceparent_is_none():
    good = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
    assert read_identity({b"traceparent": good}).traceparent == good.decode()
    assert read_identity({b"traceparent": b"00-xyz"}).traceparent == ""
