import io
import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from facts import START_MS, end, intent, note
from swarmgate.stores.journal import rows
from swarmgate.telemetry.alerts import Notice
from swarmgate.telemetry.log_lines import Log


def written(*batch, **limits):
    stream = io.StringIO()
    Log(stream, **limits).hear(batch)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_of_an_attempt_names_request_and_key():
    (line,) = written(note("req-1", kind="rate", status=429, reason="target_rate", end=""))
    assert line["event"] == "attempt_failed"
    assert (line["request_id"], line["key_id"], line["status"], line["reason"]) == ("req-1", "k1", 429, "target_rate")
    assert "end" not in line
    (line,) = written(note("req-1", prompt_tokens=-1, output_tokens=-1))
    assert not {"prompt_tokens", "output_tokens"} & line.keys()  # nobody said


def test_the_callers_own_name_stands_beside_ours():
    for row in (note("req-1"), end("req-1")):
        (line,) = written(msgspec.structs.replace(row, client_request_id="own-1"))
        assert (line["request_id"], line["client_request_id"]) == ("req-1", "own-1")
        assert "client_request_id" not in written(row)[0]


def test_a_deferral_says_who_and_when():
    (line,) = written(end("req-1"))
    assert line["event"] == "deferred"
    assert (line["request_id"], line["key_id"], line["agent"], line["step"]) == ("req-1", "", "a1", "step")
    assert line["not_before_in_ms"] == 2_000
    assert line["blocked"] == ["openai: 5 per 60s"]


def test_an_intent_is_no_line_and_other_rows_are_told_plainly():
    assert written(intent()) == []
    (line,) = written(rows.KeyEvent(1, START_MS, "openai", "k1", "ejected", "target_rate", START_MS + 60_000))
    assert line == {
        "event": "key_event", "at_ms": START_MS, "target": "openai", "key_id": "k1", "what": "ejected",
        "reason": "target_rate", "until_ms": START_MS + 60_000,
    }  # fmt: skip


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=80))
def test_a_flood_is_cut_and_what_was_left_out_is_told(steps):
    batch, at_ms = [], START_MS
    for number, step in enumerate(steps):
        at_ms += step
        batch.append(note(f"c{number}", at_ms))
    told = written(*batch, per_second=2, burst=5)
    assert len(told) <= 5 + 2 * (at_ms - START_MS) / 1_000 + 1
    at_end = written(*batch, note("last", at_ms + 10_000), per_second=2, burst=5)
    assert sum(1 + line.get("left_out_before", 0) for line in at_end) == len(batch) + 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_person_at_a_terminal_is_not_shown_every_call():
    terminal = Terminal()
    Log(terminal).hear([note(), end(), rows.Gap(1, START_MS, 3, START_MS, "disk full")])
    assert [json.loads(line)["event"] for line in terminal.getvalue().splitlines()] == ["rows_not_recorded"]


def test_alerts_are_never_left_out():
    stream = io.StringIO()
    log = Log(stream, per_second=0, burst=0)
    log.notice(Notice("slow_p99", "openai/k1 m", True, START_MS, START_MS, "P99 is 40.0 s"))
    assert json.loads(stream.getvalue())["event"] == "alert"
