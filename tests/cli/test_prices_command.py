"""`swarmgate prices`: candidates side by side; an unknown price is told as unknown."""

import json

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["prices", *arguments])


def test_candidates_side_by_side():
    done = run("gpt-4o-mini", "groq/llama-3.3-70b-versatile", "--json")
    assert done.exit_code == 0
    first, second = json.loads(done.stdout)
    assert (first["provider"], first["input_micro"], first["output_micro"]) == ("openai", 150_000, 600_000)
    assert first["usual_call_micro"] == 1_500
    assert first["context_tokens"] == 128_000
    assert "vision" in first["capabilities"]
    assert second["provider"] == "groq"


def test_an_unknown_price_is_none_and_names_are_told(tmp_path):
    done = run("gpt-4o-minni", "--json")
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)
    assert row["input_micro"] is row["usual_call_micro"] is None
    assert "gpt-4o-mini" in row["nearest"]
    shown = run("gpt-4o-minni")
    assert "unknown" in shown.stdout
    assert "nearest: gpt-4o-mini" in shown.stderr
    file = tmp_path / "gate.toml"
    file.write_text('[prices."gpt-4o-minni"]\ninput = 1\noutput = 2\n')
    assert json.loads(run("gpt-4o-minni", "--config", str(file), "--json").stdout)[0]["input_micro"] == 1_000_000


@pytest.mark.parametrize("key", ["env:SWARMGATE_TEST_NO_SUCH_KEY", "file:/no/such/key"])
def test_prices_of_a_configuration_need_no_keys(tmp_path, key):
    file = tmp_path / "gate.toml"
    text = f'[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = {{ one = "{key}" }}\n'
    file.write_text(text + '[prices."own-1"]\ninput = 1\noutput = 2\n')
    done = run("own-1", "--config", str(file), "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["output_micro"] == 2_000_000
    file.write_text(file.read_text().replace("output", "outptu"))
    assert "nearest is 'output'" in run("own-1", "--config", str(file)).stderr


def test_an_empty_name_is_no_model():
    done = run("", " ")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no model is named" in done.stderr


def test_a_model_at_a_target_of_the_configuration(tmp_path):
    file = tmp_path / "gate.toml"
    work = '[targets.work]\nbase_url = "https://api.openai.com/v1"\nkeys = { a = "env:A" }\n'
    own = '[targets.own]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = { a = "env:A" }\nwindows = { "q" = 8_192 }\n'
    routes = '[routes]\n"*" = "work/*"\nq = "own/q"\n[prices."own/*"]\ninput = 0\noutput = 0\n'
    file.write_text(work + own + routes)
    first, second = json.loads(run("work/gpt-4o-mini", "own/q", "--config", str(file), "--json").stdout)
    assert (first["provider"], first["input_micro"], first["context_tokens"]) == ("work", 150_000, 128_000)
    assert (second["provider"], second["input_micro"], second["context_tokens"]) == ("own", 0, 8_192)


def test_nothing_is_cut_off_in_a_narrow_terminal():
    shown = run("gpt-4o-mini", "claude-haiku-4-5").stdout
    assert {"claude-haiku-4-5", "anthropic", "0.0015", "200,000"} <= set(shown.split())
