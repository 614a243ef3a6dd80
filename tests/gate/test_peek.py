"""Reading a model call: total over any bytes, what was judged is what is sent, no key twice."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.errors import BadInput
from swarmgate.gate.peek import MOST_MEMBERS, peek
from swarmgate.gate.peeked import LONG_BYTES
from swarmgate.gate.prompts import MOST_READ_BYTES

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), values, max_size=6).map(
    lambda said: (
        {key: value for key, value in said.items() if key not in {"stream", "max_tokens", "n", "best_of"}}
        | {"model": "m"}
    )
)
spaces = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " :  ")])


@given(st.binary(max_size=200) | objects.map(lambda said: json.dumps(said).encode()[:-2]))
def test_any_bytes_are_a_call_or_bad_input(body):
    with contextlib.suppress(BadInput):
        assert isinstance(peek(body).model, str)


@given(objects, spaces, st.booleans())
def test_what_is_sent_means_what_was_written(said, separators, ascii_only):
    body = json.dumps(said, separators=separators, ensure_ascii=ascii_only).encode()
    peeked = peek(body)
    assert json.loads(peeked.body) == said
    assert json.loads(peeked.with_model("other")) == said | {"model": "other"}
    assert peeked.model == "m"


@given(objects, spaces, st.data())
def test_a_key_that_stands_twice_is_an_error_wherever_it_stands(said, separators, data):
    comma, colon = separators
    members = [json.dumps(key) + colon + json.dumps(value) for key, value in said.items()]
    again = json.dumps(data.draw(st.sampled_from(sorted(said)))) + colon + json.dumps(data.draw(values))
    members.insert(data.draw(st.integers(0, len(members))), again)
    with pytest.raises(BadInput):
        peek(("{" + comma.join(members) + "}").encode())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b'{"model":"m"} x', "body"),
        (b'{"model":"m","x":NaN}', "body"),
        (b'{"model":"m","x":' + b"[" * 100_000, "body"),
        (b"{}", "model"),
        (b'{"model":1}', "model"),
        (b'{"model":"\xff"}', "body"),
        (b'{"model":"m","m\\u006fdel":"n"}', "body"),
        (b'{"model":"m","stream":1}', "stream"),
        (b'{"model":"m","stream":"true"}', "stream"),
        (b'{"model":"m","max_tokens":"9"}', "max_tokens"),
        (b'{"model":"m","max_tokens":0}', "max_tokens"),
        (b'{"model":"m","max_tokens":1e400}', "max_tokens"),
        (b'{"model":"m","max_completion_tokens":-1}', "max_completion_tokens"),
    ],
)
def test_what_is_wrong_is_named(body, field):
    with pytest.raises(BadInput) as caught:
        peek(body)
    assert caught.value.field == field


NOT_UTF_8 = [b"\xff\xfe", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"h\xc3", b"\xe2\x82"]


@pytest.mark.parametrize("wrong", NOT_UTF_8)
@pytest.mark.parametrize(
    "form",
    [b'{"model":"%b"}', b'{"model":"m","%b":1}', b'{"model":"m","x":"%b"}', b'{"model":"m","x":[{"content":"%b"}]}'],
)
@pytest.mark.parametrize("before", [b"", b'"y":"%b",' % (b"y" * LONG_BYTES)], ids=["short", "long"])
def test_hi_16_bytes_that_are_no_utf_8_are_named_wherever_they_stand(before, form, wrong):
    body = form.replace(b"{", b"{" + before, 1).replace(b"%b", wrong)
    with pytest.raises(
        BadInput, match=rf"body: is not UTF-8 at byte {body.index(wrong[-1:] if wrong[:1] == b'h' else wrong)}"
    ):
        peek(body)


LONE = [rb"\ud800", rb"\uDBFF", rb"\ud800x", rb"\ud800 and more", rb"\ud800\n", rb"\ud800\u0041", rb"\ud800\ud800"]
LONE += [rb"\udc00", rb"\uDfffx", rb"x\udc00\ud800"]


@pytest.mark.parametrize("wrong", LONE)
@pytest.mark.parametrize(
    "form",
    [b'{"model":"%b"}', b'{"%b":1,"model":"m"}', b'{"model":"m","x":"%b"}', b'{"model":"m","x":[{"content":"%b"}]}\n'],
)
@pytest.mark.parametrize("before", [b"", b'"y":"%b",' % (b"y" * LONG_BYTES)], ids=["short", "long"])
def test_hi_16_half_a_pair_of_surrogates_is_called_so(before, form, wrong):
    with pytest.raises(BadInput, match="body: has half of a surrogate pair"):
        peek(form.replace(b"{", b"{" + before, 1).replace(b"%b", wrong))


def test_what_is_cut_off_is_called_so():
    for body in (
        b'{"model":"m","x":"abc',
        rb'{"model":"m","x":"\ud83d',
        rb'{"model":"m","x":["\ud83d\ude00"',
        b'{"model":"m"',
    ):
        with pytest.raises(BadInput, match="truncated"):
            peek(body)


def test_sizes():
    peeked = peek(json.dumps({"model": "m", "messages": "x" * 4_000, "max_tokens": 7, "stream": True}).encode())
    assert peeked.stream
    assert peeked.max_tokens == 7
    assert peeked.prompt_tokens == 4_002 // 4 + 1
    assert peek(b'{"model":"m","max_tokens":null}').max_tokens is None
    assert peek(b'{"model":"m","max_tokens":9,"max_completion_tokens":4}').max_tokens == 4


LONG = b'"messages":["' + b"x" * LONG_BYTES + b'"]'


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (b",".join(b'"k%d": 1' % number for number in range(MOST_MEMBERS)), "members"),
        (b'"k": 1,' * 1_000_000 + b'"k": 1', "twice"),
        (b'"model": "other"', "twice"),
        (b'"mod\\u0065l": "other"', "twice"),
        (b'"messages": []', "twice"),
    ],
)
def test_ov_20_a_long_body_is_given_up_at_its_first_member_too_many(members, words):
    with pytest.raises(BadInput, match=words):
        peek(b'{"model": "m", %b, %b}' % (LONG, members))


def test_a_long_body_is_read_like_a_short_one():
    members = b",".join(b'"k%d": {"model": 1, "model": 2}' % number for number in range(MOST_MEMBERS - 2))
    assert peek(b'{"model": "m", %b, %b}' % (LONG, members)).model == "m"
    for wrong in (b"[%b]" % LONG[11:], b'{"model": "m", %b' % LONG, b'{"model": 1, %b}' % LONG):
        with pytest.raises(BadInput):
            peek(wrong)


@given(st.lists(st.sampled_from([b'"x"', b"[1, 2]", b'"%b"' % (b"y" * LONG_BYTES)]), max_size=4), st.booleans())
def test_the_pieces_of_a_long_body_say_what_it_says(values, counts):
    members = b"".join(b', "k\\u0030%d" : %b' % pair for pair in enumerate(values))
    peeked = peek(b'{ "model" : "m", %b%b}' % (LONG, members))
    pieces = peeked.pieces("other", {"include_usage": True} if counts else None)
    changed = {"model": "other"} | ({"stream_options": {"include_usage": True}} if counts else {})
    assert json.loads(b"".join(pieces)) == json.loads(peeked.body) | changed
    assert json.loads(b"".join(peeked.pieces("", None))) == json.loads(peeked.body)


@pytest.mark.parametrize("name", ["model", "stream", "max_tokens", "max_output_tokens"])
def test_what_is_read_of_a_long_body_is_short(name):
    with pytest.raises(BadInput, match=f"^{name}: is longer"):
        peek(b'{%b"%b":"%b"}' % (b"" if name == "model" else b'"model":"m",', name.encode(), b"x" * LONG_BYTES))


def test_options_as_long_as_a_body_are_refused():
    body = b'{"model":"m","stream_options":{%b}}' % b",".join(b'"k%d":1' % number for number in range(LONG_BYTES))
    with pytest.raises(BadInput, match="stream_options"):
        peek(body)


@pytest.mark.parametrize(
    ("more", "choices"),
    [
        ({}, 1),
        ({"n": 4}, 4),
        ({"n": None}, 1),
        ({"n": 2, "best_of": 8}, 8),
        ({"n": 16_384}, 16_384),
        ({"prompt": "a, b"}, 1),
        ({"prompt": []}, 1),
        ({"prompt": {"id": "pmpt_1"}}, 1),
        ({"prompt": [15496, 11, 995]}, 1),
        ({"prompt": [[15496, 11], [995]]}, 2),
        ({"prompt": ["a, b", "c"], "n": 3}, 6),
        ({"prompt": [15496] * 100_000}, 1),
        ({"prompt": [[1, 2]] * 100_000}, 100_000),
    ],
)
def test_answers_that_are_made_side_by_side(more, choices):
    assert peek(json.dumps({"model": "m"} | more).encode()).choices == choices


LIKE_JSON = st.text(alphabet='"\\[],x ', max_size=4)  # what may be taken for the end of a text, or of a list


@given(st.lists(LIKE_JSON | st.text(max_size=3), min_size=1, max_size=20), st.integers(1, 2_000), st.booleans())
def test_there_are_as_many_prompts_as_a_list_holds_however_long_it_is(prompts, times, is_uneven):
    listed = [*prompts * times, *["x" * MOST_READ_BYTES] * is_uneven]
    body = json.dumps({"model": "m", "prompt": listed}).encode()
    assert peek(body).choices == len(listed)


def test_a_long_prompt_before_short_ones_hides_none_and_one_behind_them_makes_no_more_of_them():
    for listed in (["x" * 66_000] + ["y"] * 2_000, ["y"] * 2_000 + ["x" * 1_000_000], ["a\\"] * 16_000):
        assert peek(json.dumps({"model": "m", "prompt": listed}).encode()).choices == len(listed)
