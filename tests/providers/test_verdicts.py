"""
Every recorded answer that is no plain success is understood as its provider's documents say.

`verdicts.json` was written from the documents. Its answers are cut from recordings that lie beside the repository; where
those are there, each is read whole too, and none may be missing.
"""

import json
from pathlib import Path

import pytest

from swarmgate.gate.understanding import Answer, understand
from swarmgate.providers.tables import DIALECTS, dialect_of

FACTS = json.loads((Path(__file__).parents[1] / "data" / "verdicts.json").read_text())
RECORDINGS = Path(__file__).parents[3] / "shared" / "data" / "recordings"
NOW_S = 1_790_000_000
facts = pytest.mark.parametrize(
    "fact", FACTS, ids=lambda fact: fact["id"] + ("-counted" if "requested_tokens" in fact else "")
)
beside = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings lie beside the repository")


def dialect(fact):
    return dialect_of(fact["host"]) if "host" in fact else DIALECTS.get(fact["provider"], DIALECTS["generic"])


def answer(response):
    body = response.get("body") or response.get("body_text") or "".join(response.get("sse", ()))
    headers = tuple((name.lower(), value) for name, value in response.get("headers", {}).items())
    return Answer(response["status"], headers, (body if isinstance(body, str) else json.dumps(body)).encode())


def understood(fact, response):
    one = understand(dialect(fact), answer(response), NOW_S, fact.get("requested_tokens"))
    reading = one.reading
    return {
        "verdict": one.outcome.verdict.replace("_", " "),
        "wait_ms": one.wait_ms,
        "dimension": reading and reading.dimension,
        "limit": reading and reading.limit,
        "remaining": reading and reading.remaining,
        "reset_ms": reading and reading.reset_ms,
    }


@facts
def test_what_the_documents_say(fact):
    assert fact["source"]
    assert fact["license"]
    assert fact["reason"]
    assert fact["document"].startswith("https://")
    assert understood(fact, fact["response"]) == fact["expect"]


def recorded(name):
    said = json.loads((RECORDINGS / name).read_text())
    return [step["response"] for step in said["steps"]] if "steps" in said else [said["response"]]


@beside
@facts
def test_the_whole_recording_says_the_same(fact):
    assert understood(fact, recorded(fact["file"])[fact.get("step", 0)]) == fact["expect"]


@beside
def test_no_recording_is_missing():
    told = {(fact["file"], fact.get("step", 0)) for fact in FACTS}
    for path in RECORDINGS.glob("*/*.json"):
        name = str(path.relative_to(RECORDINGS))
        for step, response in enumerate(recorded(name)):
            one = understand(DIALECTS["generic"], answer(response), NOW_S)
            assert ((name, step) in told) >= (one.said != "" or not 200 <= response["status"] < 300), name
