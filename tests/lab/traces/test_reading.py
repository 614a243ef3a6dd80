import contextlib
import csv
import gzip
import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swarmgate.lab.traces.formats import FORMATS
from swarmgate.lab.traces.reading import read_open_trace, read_trace
from swarmgate.lab.traces.rows import TraceError

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
MOONCAKE = """{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 0, "input_length": 12, "output_length": 1, "hash_ids": []}
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,0,1087,Conversation log
"""
CHATDEV = """{"session": "s1", "step": 0, "t_start_s": 0.0, "t_end_s": 7.0, "prompt_tokens": 172, "completion_tokens": 198}
{"session": "s1", "step": 1, "t_start_s": 7.0, "t_end_s": 8.0, "prompt_tokens": 618, "completion_tokens": 4}
"""
DEERFLOW = """{"session": "d", "step": 0, "role": "human", "context_chars_before": 0, "out_chars": 40}
{"session": "d", "step": 2, "role": "ai", "t_ms": 0, "context_chars_before": 107, "out_chars": 1101}
{"session": "d", "step": 4, "role": "ai", "context_chars_before": 1025, "out_chars": 467}
{"session": "d", "step": 5, "role": "ai", "t_ms": 11275, "context_chars_before": 1490, "out_chars": 2}
"""


def copilot_call(at, prompt, completion):
    tokens = {"total": prompt + completion, "prompt": prompt, "completion": completion, "cached": 7, "cached_pct": 0.9}
    return {"timestamp": at, "duration_ms": 1200.5, "model": "Model A", "status_code": "OK", "tokens": tokens}


COPILOT = json.dumps(
    {
        "session_id": "ab12",
        "date": "2026-06-01",
        "turns": [
            {"llm_calls": [copilot_call("2026-06-01T00:00:01.000Z", 67_800, 527)], "tool_batches": []},
            {"llm_calls": [copilot_call("2026-06-01T00:00:09.500Z", 68_400, 40)], "tool_batches": []},
        ],
    }
)
PLAIN = """t_ms,prompt_tokens,output_tokens,session,hosts
0,10,20,a,x.org y.org
7,11,21,b,
"""
KNOWN = {
    "azure": (AZURE, [(0, 374, 44, "", ()), (4314, 396, 109, "", ())]),
    "mooncake": (MOONCAKE, [(0, 12, 1, "", ()), (3000, 6758, 500, "", ())]),
    "burstgpt": (BURSTGPT, [(0, 472, 18, "", ()), (40_000, 1087, 0, "", ())]),
    "chatdev": (CHATDEV, [(0, 172, 198, "s1", ()), (7_000, 618, 4, "s1", ())]),
    "deer-flow": (DEERFLOW, [(0, 26, 275, "d", ()), (11_275, 372, 0, "d", ())]),
    "copilot": (COPILOT, [(0, 67_800, 527, "ab12", ()), (8_500, 68_400, 40, "ab12", ())]),
    "plain": (PLAIN, [(0, 10, 20, "a", ("x.org", "y.org")), (7, 11, 21, "b", ())]),
}


def read(text, name="mine.csv"):
    return read_open_trace(io.BytesIO(text if isinstance(text, bytes) else text.encode()), name)


def test_each_format_has_an_example():
    assert set(KNOWN) == {one.name for one in FORMATS}


@pytest.mark.parametrize(("text", "calls"), KNOWN.values(), ids=KNOWN)
def test_published_columns_are_known_packed_or_not(text, calls):
    assert [tuple(call) for call in read(text).calls] == calls
    assert read(gzip.compress(text.encode())) == read(text) == read("\ufeff" + text)


BROKEN = [
    (AZURE.replace("374", "many"), 2, "ContextTokens", "no number"),
    (AZURE.replace("374", "-4"), 2, "ContextTokens", "outside"),
    (AZURE.replace("374", "3.5"), 2, "ContextTokens", "whole"),
    (AZURE.replace("374", "1e300"), 2, "ContextTokens", "outside"),
    (AZURE.replace("374", "nan"), 2, "ContextTokens", "outside"),
    (AZURE.replace(",109", ""), 3, "GeneratedTokens", "2 cells, the header 3"),
    (AZURE.replace("2023-11-16 18:15:50.9951690", "yesterday"), 3, "TIMESTAMP", "no date"),
    (AZURE.replace("ContextTokens", "Prompt"), 1, "ContextTokens", "nearest format: azure"),
    (MOONCAKE.replace('"timestamp": 0, ', ""), 2, "timestamp", "None is no number"),
    (MOONCAKE.replace("500", "true"), 1, "output_length", "no number"),
    (MOONCAKE + "{oops\n", 3, "line", "not JSON"),
    (MOONCAKE + "[1]\n", 3, "line", "no JSON object"),
    ("{" * 1, 1, "line", "not JSON"),
    (CHATDEV.replace('"t_end_s": 8.0', '"t_end_s": 3.0'), 2, "t_end_s", "before t_start_s"),
    (COPILOT.replace('"turns": [', '"turns": [5, '), 1, "turns", "no list of objects"),
    (COPILOT.replace('"prompt": 67800', '"prompt": "x"'), 1, "prompt", "no number"),
    (PLAIN.replace("7,11,21,b,", "7,11,21,,"), 3, "session", "empty here and named before"),
    (PLAIN.replace("a,x.org y.org", ","), 3, "session", "named here and empty before"),
    (PLAIN.replace(",", ";"), 1, "line", "separated by commas"),
    (f"[{MOONCAKE}]", 1, "file", "one object a line"),
    (AZURE.encode() + b"2023-11-16 18:15:50,\xff,1\n", 4, "line", "UTF-8"),
    (gzip.compress((PLAIN + "7,11,21,b,\n" * 4_000).encode())[:-9], None, "line", "the last that could be unpacked"),
    ("", 1, "file", "is empty"),
    ("a,b\n", 2, "file", "holds no call"),
    (b"\xff\xfe\x00a,b\n", 1, "line", "UTF-8"),
    (b"\x1f\x8b broken", 1, "line", "unpacked"),
]


@pytest.mark.parametrize(("text", "row", "column", "reason"), BROKEN, ids=[f"{b[2]}-{b[3]}" for b in BROKEN])
def test_a_broken_file_is_told_by_row_and_column(text, row, column, reason):
    with pytest.raises(TraceError, match=r"mine\.csv") as caught:
        read(text)
    assert caught.value.column == column
    assert row in {None, caught.value.row}
    assert reason in caught.value.reason
    assert (f"row {caught.value.row}" in str(caught.value)) == (column != "file")
    assert ("column" in str(caught.value).partition(": ")[0]) == (column not in {"file", "line"})


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_trace(tmp_path / "none.csv")


numbers = st.integers(0, 10**9)
calls = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=30)


@given(calls)
def test_nothing_is_lost_and_time_never_falls(rows):
    out = io.StringIO()
    csv.writer(out).writerows([("t_ms", "prompt_tokens", "output_tokens"), *rows])
    trace = read(out.getvalue())
    zero = min(t for t, _, _ in rows)
    assert sorted((c.t_ms + zero, c.prompt_tokens, c.output_tokens) for c in trace.calls) == sorted(rows)
    assert all(a.t_ms <= b.t_ms for a, b in zip(trace.calls, trace.calls[1:], strict=False))


@given(st.binary(max_size=200))
@example(b"\r\x00")
def test_any_bytes_are_a_trace_or_a_typed_error(raw):
    with contextlib.suppress(TraceError):
        assert read(raw).calls


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
@given(st.data())
def test_any_values_in_known_columns_are_a_trace_or_a_typed_error(one, data):
    row = data.draw(st.fixed_dictionaries(dict.fromkeys((*one.columns, "hosts"), anything)))
    with contextlib.suppress(TraceError):
        assert read(json.dumps(row)).calls
