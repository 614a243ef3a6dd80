from urllib.parse import unquote, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.target_errors import BadTarget
from swarmgate.core.url_path import ascii_only, path_to_judge, path_to_send

SEGMENTS = st.sampled_from(["", ".", "..", "%2e", "%2E%2e", ".%2e", "a", "b%2f", "...", ".a", "%", "%25", "é", "a;b"])
RAW = st.lists(SEGMENTS, max_size=8).map(lambda segments: "/" + "/".join(segments))


@given(RAW)
def test_what_is_sent_is_ascii_and_stays_as_it_is(raw):
    sent = path_to_send(raw)
    assert sent.isascii()
    assert path_to_send(sent) == sent


@given(RAW)
def test_no_dot_segment_reaches_target_or_patterns(raw):
    sent = path_to_send(raw)
    assert not {".", "..", "%2e", "%2e%2e"} & set(sent.lower().split("/"))
    try:
        judged = path_to_judge(sent)
    except BadTarget:
        return
    assert not {".", ".."} & set(judged.split("/"))
    assert "//" not in judged


@given(st.lists(st.sampled_from([".", "..", "a", "b"]), max_size=8).map(lambda segments: "/" + "/".join(segments)))
def test_dot_segments_go_as_rfc_3986_says(raw):
    assert path_to_send(raw) == (urljoin("http://h", raw).removeprefix("http://h") or "/")


@pytest.mark.parametrize(
    ("raw", "judged"),
    [
        ("", "/"),
        ("/v1//search", "/v1/search"),
        ("/v1/%73earch", "/v1/search"),
        ("/v1%2Fsearch", "/v1/search"),
        ("/v1/Search", "/v1/Search"),
        ("/v1/%2573earch", "/v1/%73earch"),
        ("/.well-known/x", "/.well-known/x"),
        ("/a/...", "/a/..."),
        ("/caf%C3%A9", "/café"),
        ("/%ff", "/\ufffd"),
        ("/%zz%", "/%zz%"),
    ],
)
def test_patterns_judge_the_decoded_path(raw, judged):
    assert path_to_judge(path_to_send(raw)) == judged


@pytest.mark.parametrize(
    "raw",
    ["/a%2f..%2fb", "/a/..%2fb", "/a%2F.", "/a%5c..%5cb", "/a/..;/b", "/a/..;x=1", "/.;/b", "/a/%2e%2e%3b/b", "/..%5c"],
)
def test_a_hidden_dot_segment_is_refused(raw):
    with pytest.raises(BadTarget) as caught:
        path_to_judge(path_to_send(raw))
    assert caught.value.reason == "caller_path_ambiguous"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_non_ascii_is_percent_encoded_and_nothing_else(text):
    encoded = ascii_only(text)
    assert encoded.isascii()
    assert ascii_only(encoded) == encoded
    assert unquote(encoded) == unquote(text)
