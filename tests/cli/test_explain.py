import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.pasted import read
from swarmgate.core.errors import BadInput

GROQ = {
    "provider": "groq",
    "response": {
        "status": 429,
        "headers": {"Retry-After": "2", "x-ratelimit-limit-requests": "14400", "x-ratelimit-remaining-requests": "9"},
        "body": {
            "error": {
                "message": "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    },
}
RAW = """HTTP/1.1 100 Continue\r
\r
HTTP/2 529 \r
content-type: application/json\r
anthropic-ratelimit-requests-limit: 50\r
anthropic-ratelimit-requests-remaining: 49\r
anthropic-ratelimit-requests-reset: 2026-11-26T20:14:35Z\r
date: Thu, 26 Nov 2026 20:14:30 GMT\r
\r
{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"""


def run(*arguments, given=""):
    return CliRunner().invoke(app, ["explain", *arguments], input=given)


def said(text, *options):
    result = run("-", "--json", *options, given=text)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_recording():
    told = said(json.dumps(GROQ))
    wanted = {"provider": "groq", "dimension": "tokens", "limit": 6_000, "remaining": 966, "reset_ms": None}
    assert wanted.items() <= told.items()
    assert (told["wait_ms"], told["verdict"], told["kind"]) == (2_000, "other key", "rate")
    assert [quota["dimension"] for quota in told["dimensions"]] == ["requests"]
    assert told["reason"]


@pytest.mark.parametrize(
    "pasted",
    [
        json.dumps(
            {"status": 200, "sse": ["event: error\n", 'data: {"error":{"message":"Overloaded","code":529}}\n\n']}
        ),
        json.dumps({"response": {"status": 200, "body": ': hello\n\ndata: {"error":{"message":"Overloaded"}}\n\n'}}),
        'HTTP/1.1 200 OK\n\ndata: {"error":{"message":"Overloaded"}}\n\n',
    ],
)
def test_a_stream_that_was_copied_without_its_headers_is_read_as_one(pasted):
    told = said(pasted)
    assert (told["verdict"] == "ok", told["said"]) == (False, "Overloaded")


def test_a_pasted_answer_after_an_interim_one():
    told = said(RAW)
    wanted = {"provider": "anthropic", "dimension": "requests", "limit": 50, "remaining": 49, "reset_ms": 5_000}
    assert wanted.items() <= told.items()
    assert (told["verdict"], told["wait_ms"]) == ("other model", 0)


def test_the_least_that_can_be_said():
    told = said('{"status": 429}')
    assert (told["provider"], told["dimension"], told["dimensions"]) == ("generic", None, [])
    assert (told["verdict"], told["wait_ms"]) == ("other key", 60_000)


def test_a_used_up_quota_is_named_where_the_words_name_none():
    headers = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "0"}
    told = said(json.dumps({"status": 403, "headers": headers, "body": {"message": "API Rate Limit Exceeded"}}))
    assert (told["verdict"], told["dimension"], told["limit"], told["remaining"]) == ("other key", "requests", 60, 0)
    assert told["reason"].startswith("Requests (limit 60, 0 left): used up.")


def test_what_is_left_and_too_little_is_not_called_used_up(tmp_path):
    words = (
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29500, Requested 1000. Please try again in 1s."
    )
    file = tmp_path / "pasted.txt"
    error = json.dumps({"error": {"message": words, "code": "rate_limit_exceeded"}})
    file.write_text(f"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\r\n{error}")
    told = json.loads(run(str(file), "--json").stdout)
    assert told["reason"].startswith("Tokens per minute (limit 30000, 500 left): too little for this request.")


def test_a_success_says_what_is_left_and_what_was_used():
    body = {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    headers = {"retry-after": "59", "ratelimit": '"api";r=3;t=70', "ratelimit-policy": '"api";q=500;w=300'}
    told = said(json.dumps({"status": 200, "headers": headers, "body": body}))
    assert (told["verdict"], told["wait_ms"], told["remaining"], told["reset_ms"]) == ("ok", 0, 3, 70_000)
    assert told["tokens"] == {"prompt": 9, "completion": 3, "cached": None}


def test_an_error_inside_a_stream():
    event = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    answer = {"status": 200, "headers": [["Content-Type", "text/event-stream"]], "body": event}
    assert said(json.dumps(answer))["verdict"] == "other model"


def test_what_a_stream_counted():
    events = (
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 5}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )
    body = [f"data: {json.dumps(one)}\n\n" for one in events]
    told = said(json.dumps({"status": 200, "headers": {"content-type": "text/event-stream"}, "body": body}))
    assert (told["verdict"], told["tokens"]) == ("ok", {"prompt": 8, "completion": 7, "cached": 5})


@pytest.mark.parametrize(("provider", "verdict"), [("openai", "retry"), ("generic", "retry"), ("", "ok")])
def test_a_page_is_no_answer_of_a_provider(provider, verdict):
    page = {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>log in</html>"}
    assert said(json.dumps(page), *(("--provider", provider) if provider else ()))["verdict"] == verdict


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        '{"status": 200, "body": ""}',
        "HTTP/1.1 302 Found\r\nlocation: /\r\n\r\n{}",
        'HTTP/1.1 302 Found\r\nlocation: /\r\n\r\n{"id": "c"}',
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhello",
    ],
)
def test_what_the_gate_takes_for_no_answer_is_none_here_either(answer):
    told = said(answer, "--provider", "openai")
    assert (told["verdict"], told["kind"]) == ("retry", "error in body")
    assert told["reason"].startswith("No model answers so")
    assert said(answer)["verdict"] == "ok"  # of a host that nobody named it may be what it should be


def test_a_stream_without_its_end_was_cut():
    events = 'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
    told = said(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}", "--provider", "openai")
    assert (told["verdict"], told["kind"]) == ("retry", "lost after byte")
    assert said(f"{events}data: [DONE]\n\n", "--provider", "openai")["verdict"] == "ok"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ({"error": {"message": "Rate limit reached for m", "code": "rate_limit_exceeded"}}, "other key"),
        ({"error": {"message": "Exceeded", "type": "insufficient_quota", "code": "insufficient_quota"}}, "key dead"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "other model"),
        ({"error": {"message": "Wrong key", "code": "invalid_api_key"}}, "key dead"),
        ({"error": {"message": "No such model", "code": "model_not_found"}}, "failed"),
        ({"error": {"message": "Oops", "type": "server_error", "code": None}}, "retry"),
        ({"error": {"message": "Too long", "code": "context_length_exceeded"}}, "refuse"),
        ([{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}], "other key"),
        ({"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}, "other model"),
        ({"object": "error", "message": "Requests rate limit exceeded", "type": None, "code": "1300"}, "other key"),
        ({"error": {"message": "Something else"}}, None),
        ({"detail": "Not here"}, None),
        ({"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}, "ok"),
        ({"headers": {"retry-after": "7"}, "body": {"error": {"code": "rate_limit_exceeded"}}}, "other key"),
    ],
)
def test_of_a_body_alone_is_said_what_it_says(body, verdict):
    told = said(json.dumps(body))
    assert (told["verdict"], told["status"]) == (verdict, None)
    shown = run("-", given=json.dumps(body)).stdout
    assert "status not told" in shown
    if verdict is None:
        assert (told["kind"], told["wait_ms"]) == (None, None)
        assert shown.startswith("not known")


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ('event: error\ndata: {"error": {"message": "Rate limit", "code": "rate_limit_exceeded"}}\n\n', "other key"),
        ('data: {"error":{"message":"Overloaded","type":"overloaded_error"}}', "other model"),
        ('data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]\n\n', "ok"),
    ],
)
def test_so_it_is_of_events_alone(events, verdict):
    told = said(events)
    assert (told["verdict"], told["status"]) == (verdict, None)


def test_the_operator_knows_better():
    quota = json.dumps({"status": 429, "body": {"error": {"code": "insufficient_quota", "message": "exceeded"}}})
    assert said(quota)["verdict"] == "key dead"
    assert said(quota, "--provider", "qwen")["verdict"] == "other key"


def test_the_size_of_the_request_may_be_told():
    limit = json.dumps({"status": 429, "body": {"error": {"message": "Quota of tokens exceeded, limit: 1000."}}})
    assert said(limit)["verdict"] == "other key"
    assert said(limit, "--tokens", "1001")["verdict"] == "refuse"


def test_every_step_of_a_sequence():
    steps = [{"response": {"status": status}} for status in (200, 404)]
    told = said(json.dumps({"steps": steps}))
    assert [step["verdict"] for step in told["steps"]] == ["ok", "failed"]
    assert "step 1" in run("-", given=json.dumps({"steps": steps})).stdout


def test_people_get_a_sentence_and_a_table(tmp_path):
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(GROQ))
    shown = run(str(file)).stdout
    assert shown.startswith("other key")
    assert "organisation" in shown
    assert "14400" in shown


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "neither JSON nor HTTP"),
        ("hello", "neither JSON nor HTTP"),
        ("[" * 100_000, "neither JSON nor HTTP"),
        ("[]", "holds no answer"),
        ("[1]", "holds no answer"),
        (": hello\n\n", "holds no answer"),
        ("data: hello\n\n", "holds no answer"),
        ('{"colour": "red"}', "no status"),
        ('{"status": 42, "error": {"code": "rate_limit_exceeded"}}', "no status"),
        ("{}", "no status"),
        ('{"status": 42}', "no status"),
        ('{"status": true}', "no status"),
        ('{"response": []}', "no status"),
        ('{"status": 200, "headers": [[1]]}', "headers"),
        ("HTTP/1.1 OK\r\n\r\n", "three digits"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_could_be_one(text, word):
    result = run("-", given=text)
    assert result.exit_code == 2
    assert word in result.stderr


def test_a_file_that_is_not_there_and_a_provider_without_a_table(tmp_path):
    assert run(str(tmp_path / "none.json")).exit_code == 2
    result = run("-", "--provider", "grok", given="{}")
    assert result.exit_code == 2
    assert "groq" in result.stderr


@given(
    st.sampled_from(["", "HTTP/1.1 ", '{"status": 429, "body": ']),
    st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps),
)
def test_any_text_is_read_or_refused(beginning, text):
    with contextlib.suppress(BadInput):
        assert read(beginning + text)
