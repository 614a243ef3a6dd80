"""What every table must keep, and what each says of the answers that its provider really sent."""

import csv
import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import get_args

import pytest

from swarmgate.config.targets import Provider
from swarmgate.core.errors import BadInput
from swarmgate.core.outcome import ROWS, Ejects, Verdict
from swarmgate.gate.model_route import PATHS
from swarmgate.gate.taps import read_answer, read_cached
from swarmgate.providers.openai import DIALECT as OPENAI
from swarmgate.providers.tables import DIALECTS, GENERIC, dialect_named, dialect_of, recognised
from swarmgate.providers.usage import read_tokens

DATA = Path(__file__).parents[3] / "shared" / "data"
beside = pytest.mark.skipif(not DATA.is_dir(), reason="the recordings lie beside the repository")
every = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
SINCE = datetime(2025, 4, 1, tzinfo=UTC)  # before, the usual max_tokens of 16 were added
MISCOUNTED = {"azure-020"}  # a resold model: 314 cached of 198
NOT_A_TABLE = {"gemini-openai": "gemini", "vertex": "gemini", "qwen-dashscope": "qwen"}


@every
def test_a_table_is_well_formed(dialect):
    assert dialect.document.startswith("https://")
    assert set(dialect.paths) <= {path.decode() for path in PATHS}
    assert dialect.paths
    assert dialect.base_path.startswith("/")
    assert dialect.auth in {"bearer", "x-api-key", "api-key"}
    assert dialect.errors_in_200[0] == "error"
    names = [name for row in dialect.rates for name in (row.limit, row.remaining, row.reset) if name]
    marks = [word for mark in dialect.kinds for word in (*mark.codes, *mark.words)]
    for text in (*names, *marks, *dialect.hosts, *dialect.telltales, dialect.error_header):
        assert text == text.lower()
    assert len(names) == len(set(names))


@every
def test_no_word_kills_a_key(dialect):
    for mark in dialect.kinds:
        if ROWS[mark.kind].ejects is Ejects.KEY or ROWS[mark.kind].verdict is Verdict.KEY_DEAD:
            assert mark.codes
            assert not mark.words


def test_the_configuration_knows_every_table():
    assert set(get_args(Provider)) == set(DIALECTS)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.openai.com", "openai"),
        ("API.OpenAI.com.", "openai"),
        ("api.openai.com:443", "openai"),
        ("evil-api.openai.com", "generic"),
        ("api.openai.com.evil.org", "generic"),
        ("mine.openai.azure.com", "azure"),
        ("openai.azure.com", "generic"),
        ("us-central1-aiplatform.googleapis.com", "gemini"),
        ("maps.googleapis.com", "generic"),
        ("127.0.0.1:11434", "generic"),
        ("[::1]:8000", "generic"),
        ("", "generic"),
    ],
)
def test_the_host_says_how_it_speaks(host, name):
    assert dialect_of(host).name == name


def test_a_name_without_a_table_is_refused_with_those_that_have_one():
    assert dialect_named("groq").name == "groq"
    with pytest.raises(BadInput, match="openrouter"):
        dialect_named("grok")


def test_headers_give_an_answer_away():
    assert recognised(["Date", "OpenAI-Processing-Ms"]).name == "openai"
    assert recognised(["date"]) is GENERIC


def recordings():
    for path in sorted((DATA / "recordings").glob("*/*.json")):
        said = json.loads(path.read_text())
        if "response" in said and "provider" in said:
            yield path.stem, said


@beside
def test_hosts_that_were_called_have_the_table_of_their_provider():
    for name, said in recordings():
        host = (said.get("request") or {}).get("host")
        provider = NOT_A_TABLE.get(said["provider"], said["provider"])
        if host:
            assert dialect_of(host).name == (provider if provider in DIALECTS else "generic"), name


@beside
def test_telltales_name_nobody_else():
    for name, said in recordings():
        found = recognised(said["response"].get("headers", ()))
        provider = NOT_A_TABLE.get(said["provider"], said["provider"])
        assert found.name in {"generic", provider} or provider not in DIALECTS, name


@beside
def test_the_columns_of_usage_find_what_was_counted():
    seen = set()
    for name, said in recordings():
        body = said["response"].get("body")
        usage = body.get("usage") if isinstance(body, dict) else None
        provider = NOT_A_TABLE.get(said["provider"], said["provider"])
        if usage and provider in DIALECTS and set(usage) & {"prompt_tokens", "input_tokens"}:
            tokens = read_tokens(DIALECTS[provider].usage, usage)
            assert name in MISCOUNTED or tokens.prompt >= (tokens.cached or 0), name
            (prompt, output), (cached, apart) = (
                read_answer(json.dumps(body).encode())[0],
                read_cached(json.dumps(body).encode()),
            )
            assert (prompt + apart, max(0, output)) == (tokens.prompt, tokens.completion or 0), name
            assert max(0, cached) == (tokens.cached or 0), name
            both = tokens.prompt + (tokens.completion or 0)
            assert usage.get("total_tokens", both) == both, name
            seen.add(provider)
    assert len(seen) >= 9


@beside
def test_what_openai_charged_is_what_its_table_says():
    off = []
    with (DATA / "latency" / "provider_token_charge.csv").open() as file:
        for row in csv.DictReader(file):
            if parsedate_to_datetime(row["date"]) < SINCE or row["has_image"] == "1":
                continue
            contents = int(row["msg_chars"]) - int(row["toolcall_chars"])
            said = -(-contents // 4) + int(row["n_msgs"]) + 1
            said += int(row["max_tokens"] or 0) * OPENAI.charge.reserves_output
            off.append(abs(int(row["charged"]) - said))
    assert len(off) > 600
    assert sum(one == 0 for one in off) > 0.7 * len(off)
    assert sum(one <= 3 for one in off) > 0.9 * len(off)
