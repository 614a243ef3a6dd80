"""Streams and answers as real providers sent them: content found, usage read, the end seen. Needs ../shared/data."""

import json
import re
from pathlib import Path

import pytest

from swarmgate.gate.taps import NO_USAGE, StreamTap, read_answer
from swarmgate.providers.errors import read_error_body

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "recordings"
APIS = {"chat.completions", "completions", "messages", "responses", "embeddings"}
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recordings lie beside the repository")
TOTAL = re.compile(r'"(?:completion_tokens|output_tokens)"\s*:\s*[0-9]+')


def recorded(*, stream):
    found = []
    for file in sorted(FOLDER.glob("*/*.json")):
        said = json.loads(file.read_text())
        if isinstance(said, dict) and said.get("api") in APIS and bool(said.get("stream")) is stream:
            found.append((file.stem, said["api"], said["response"]))
    return found


def test_streams():
    seen = 0
    for name, _, response in recorded(stream=True):
        if response["status"] != 200 or not response.get("sse"):
            continue
        text = "".join(response["sse"])
        tap = StreamTap()
        for event in response["sse"]:
            tap.feed(event.encode())
        tap.close()
        assert tap.failure or tap.finished, name
        assert tap.failure or tap.begun, name
        if TOTAL.search(text) and not tap.failure:
            assert tap.usage != NO_USAGE, name
        seen += 1
    assert seen > 40


def test_whole_answers():
    seen = 0
    for name, _, response in recorded(stream=False):
        body = response.get("json") or response.get("body") or response.get("text")
        if not body:
            continue
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        usage, failure = read_answer(raw)
        if response["status"] >= 400:
            assert read_error_body(raw).message, name
        elif TOTAL.search(raw.decode()):
            assert failure or usage != NO_USAGE, name
        seen += 1
    assert seen > 40
