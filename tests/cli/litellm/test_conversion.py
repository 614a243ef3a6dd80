"""A LiteLLM proxy's file becomes one that `check` accepts; what has no counterpart is told, and no key is repeated."""

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.configured import Secrets
from swarmgate.cli.litellm.conversion import converted
from swarmgate.cli.litellm.writing import toml
from swarmgate.config import parse
from swarmgate.core.errors import BadInput
from swarmgate.wiring import plan

WHOLE = """
model_list:
  - model_name: gpt-4o
    litellm_params: {model: azure/gpt-4o-eu, api_base: "https://eu.openai.azure.com/", api_key: os.environ/AZ_EU,
                     rpm: 100, tpm: 80_000, api_version: "2024-02-01"}
  - model_name: gpt-4o
    litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_1}
    rpm: 500
    model_info: {id: "7", input_cost_per_token: 2.5e-6, output_cost_per_token: "0.00001"}
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_key: sk-verysecret1234, rpm: "500"}
  - model_name: claude
    litellm_params: {model: anthropic/claude-sonnet-4-5, temperature: 0}
  - model_name: small
    litellm_params: {model: hosted_vllm/Qwen/Qwen3-4B, api_base: os.environ/VLLM, max_parallel_requests: 8}
    model_info: {max_input_tokens: 8192, max_output_tokens: 2048}
  - model_name: bed
    litellm_params: {model: bedrock/anthropic.claude-3, aws_region_name: us-west-2}
  - model_name: "anthropic/*"
    litellm_params: {model: anthropic/*}
  - model_name: "*"
    litellm_params: {model: openai/*, api_key: os.environ/OPENAI_1}
  - model_name: tiny
    litellm_params: {model: groq/llama-3, tpm: 6000}
router_settings:
  fallbacks: [{gpt-4o: [claude, small]}, {claude: [gone]}]
  num_retries: 5
  model_group_alias: {gpt-4: gpt-4o, four: {model: gpt-4o, hidden: true}}
  redis_host: localhost
litellm_settings:
  max_budget: 100
  budget_duration: 30d
  default_fallbacks: [small]
  drop_params: true
  never_heard_of: 1
general_settings: {master_key: sk-1234-master}
environment_variables: {VLLM: "http://127.0.0.1:8000/v1"}
"""
GPT = ["azure/gpt-4o-eu", "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "hosted-vllm/Qwen/Qwen3-4B"]


def test_a_whole_file():
    told = converted(WHOLE, {})
    text = toml(told, "litellm.yaml")
    raw = tomllib.loads(text)
    assert raw["targets"] == {
        "azure": {
            "base_url": "https://eu.openai.azure.com/openai/v1",
            "keys": {"key-1": "env:AZ_EU"},
            "key_limits": ["100 per 60s", "80000 tokens per 60s"],
        },
        "openai": {
            "base_url": "https://api.openai.com/v1",
            "keys": {"key-1": "env:OPENAI_1", "key-2": "env:OPENAI_API_KEY_1"},
            "key_limits": ["500 per 60s"],
        },
        "anthropic": {"base_url": "https://api.anthropic.com/v1", "keys": {"key-1": "env:ANTHROPIC_API_KEY"}},
        "hosted-vllm": {
            "base_url": "http://127.0.0.1:8000/v1",
            "keys": {"key-1": "env:HOSTED_VLLM_API_KEY"},
            "key_limits": ["8 concurrent"],
            "windows": {"Qwen/Qwen3-4B": 8192},
        },
        "openai-2": {"base_url": "https://api.openai.com/v1", "keys": {"key-1": "env:OPENAI_1"}},
        "groq": {
            "base_url": "https://api.groq.com/openai/v1",
            "keys": {"key-1": "env:GROQ_API_KEY"},
            "key_limits": ["6000 tokens per 60s"],
            "largest_tokens": 1024,
        },
    }
    assert raw["routes"] == {
        "gpt-4o": GPT,
        "gpt-4": GPT,
        "four": GPT,
        "claude": "anthropic/claude-sonnet-4-5",
        "small": "hosted-vllm/Qwen/Qwen3-4B",
        "*": ["openai-2/*", "hosted-vllm/Qwen/Qwen3-4B"],
        "tiny": ["groq/llama-3", "hosted-vllm/Qwen/Qwen3-4B"],
    }
    assert raw["prices"] == {"openai/gpt-4o": {"input": 2.5, "output": 10}}
    assert raw["environments"] == {"everybody": {"agents": ["*"], "limits": ["100 USD per 30d"]}}
    assert {field for field, _ in told.left_out} == {
        "model_list.litellm_params.api_version",
        "model_list.litellm_params.temperature",
        "model_list[2].litellm_params.api_key",
        "model_list[5].litellm_params.model",
        "model_list[6].model_name",
        "model_list: groups of several deployments",
        "fallbacks: gone",
        "router_settings.num_retries",
        "router_settings.redis_host",
        "litellm_settings.drop_params",
        "litellm_settings.never_heard_of",
        "general_settings.master_key",
        "environment_variables",
    }
    assert all(f"# {field}" in text for field, _ in told.left_out)
    assert "sk-" not in text
    plan(parse(text, Secrets({})))


ONE = {"model_name": "a", "litellm_params": {"model": "openai/a", "api_base": "http://127.0.0.1:1/v1"}}


@pytest.mark.parametrize(
    ("params", "url", "provider", "variable"),
    [
        ({"model": "claude-opus-4-5"}, "https://api.anthropic.com/v1", None, "ANTHROPIC_API_KEY"),
        ({"model": "anthropic/x", "api_base": "http://10.0.0.1"}, "http://10.0.0.1/v1", "anthropic", None),
        ({"model": "azure/x", "api_base": "https://gw.corp/"}, "https://gw.corp/openai/v1", "azure", "AZURE_API_KEY"),
        ({"model": "x", "custom_llm_provider": "groq"}, "https://api.groq.com/openai/v1", None, "GROQ_API_KEY"),
        ({"model": "ollama/llama3"}, "http://127.0.0.1:11434/v1", None, "OLLAMA_API_KEY"),
        ({"model": "gemini/g"}, "https://generativelanguage.googleapis.com/v1beta/openai", None, "GEMINI_API_KEY"),
        ({"model": "openrouter/a/b"}, "https://openrouter.ai/api/v1", None, "OPENROUTER_API_KEY"),
        ({"model": "deepseek/x", "api_key": "os.environ/DS"}, "https://api.deepseek.com/v1", None, "DS"),
    ],
)
def test_where_a_provider_s_models_are_called(params, url, provider, variable):
    told = converted(yaml.safe_dump({"model_list": [{"model_name": "m", "litellm_params": params}]}), {})
    (target,) = told.targets
    assert (target.url, target.provider or None) == (url, provider)
    assert variable is None or target.variables == (variable,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("model_list: [", "not YAML at line 1"),
        ("- 1", "no configuration"),
        ("", "no configuration"),
        ("[" * 5_000, "not YAML"),
        ("model_list: []", "no model that can be served"),
        ("model_list: [1, {model_name: x}]", "model_name: is no name"),
        ("model_list: [{model_name: x, litellm_params: {model: hosted_vllm/x}}]", "api_base: is missing"),
        ("model_list: [{model_name: x, litellm_params: {model: openai/x, api_base: os.environ/NO}}]", "has no NO"),
        (
            "model_list: [{model_name: x, litellm_params: {model: openai/x, api_base: 'http://u:p@h'}}]",
            "carries a user or a password",
        ),
        ("model_list: [{model_name: x, litellm_params: {model: who/x}}]", "whose model"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_its_name(text, reason):
    with pytest.raises(BadInput) as caught:
        converted(text, {})
    assert reason in str(caught.value)


@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "f" * 5_000, "0b" + "1" * 20_000])
def test_a_number_without_end_is_no_file_and_no_traceback(number):
    with pytest.raises(BadInput, match=r"digits|not YAML"):
        converted(f"{WHOLE}\nx: {number}\n", {})


def test_a_quoted_number_without_end_is_no_number():
    assert converted(WHOLE.replace('rpm: "500"', f'rpm: "{"9" * 5_000}"'), {}).targets


JUNK = st.one_of(st.none(), st.booleans(), st.integers(-5, 10**12), st.text(max_size=8), st.just([{"a": ["b", 1]}, 2]))
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-4o", "openai/*", "azure/x", "bedrock/y", "hosted_vllm/z", "groq/q\x7f"]) | JUNK,
        "api_base": st.sampled_from(["http://127.0.0.1:1/v1", "https://x.openai.azure.com", "os.environ/B"]) | JUNK,
        "api_key": st.sampled_from(["os.environ/KEY", "sk-hidden-1", "sk-hidden-2", "os.environ/sk-hidden"]) | JUNK,
        "rpm": st.integers(1, 10**6) | JUNK,
        "tpm": st.integers(1, 10**9) | JUNK,
        "order": JUNK,
        "input_cost_per_token": st.floats() | JUNK,
        "output_cost_per_token": st.floats(0, 1) | JUNK,
        "weight": JUNK,
    },
)
NAMES = st.sampled_from(["a", "b", "*", "gpt-4o", "x*y", 'q"\\', "*/b"])
INFO = st.fixed_dictionaries({}, optional={"max_input_tokens": st.integers(0, 10**9) | JUNK})
ENTRY = st.fixed_dictionaries(
    {}, optional={"model_name": NAMES | JUNK, "litellm_params": PARAMS | JUNK, "model_info": INFO | JUNK}
)
FALLBACKS = st.lists(st.dictionaries(NAMES, st.lists(NAMES | JUNK, max_size=3) | JUNK, max_size=2), max_size=3) | JUNK
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "fallbacks": FALLBACKS,
        "default_fallbacks": st.lists(NAMES, max_size=2) | JUNK,
        "model_group_alias": st.dictionaries(NAMES | st.text(max_size=4), NAMES | JUNK, max_size=3) | JUNK,
        "max_budget": st.floats() | JUNK,
        "budget_duration": st.sampled_from(["30d", "1mo"]) | JUNK,
        "global_max_parallel_requests": JUNK,
    },
)
FILES = st.fixed_dictionaries(
    {"model_list": st.lists(ENTRY, max_size=5).map(lambda entries: [*entries, ONE])},
    optional={
        "router_settings": SETTINGS | JUNK,
        "litellm_settings": SETTINGS | JUNK,
        "general_settings": SETTINGS | JUNK,
        "a\nb": JUNK,
    },
)


@pytest.mark.parametrize(
    ("told", "windows"), [([8_192, "4096"], {"m": 4096}), ([None, 9], {"m": 9}), ([0, "x"], {}), ([10**12, True], {})]
)
def test_the_smallest_window_of_a_model_is_taken_over(told, windows):
    params = {"model": "hosted_vllm/m", "api_base": "http://127.0.0.1:1/v1"}
    entries = [
        {"model_name": "m", "litellm_params": params, "model_info": {} if one is None else {"max_input_tokens": one}}
        for one in told
    ]
    made = converted(yaml.safe_dump({"model_list": entries}), {})
    assert made.targets[0].windows == windows
    omitted = [field for field, _ in made.left_out if field.endswith("max_input_tokens")]
    assert len(omitted) == (0 if windows else len(told))
    plan(parse(toml(made, "a file"), Secrets({})))


@given(FILES)
def test_whatever_is_taken_over_is_accepted_and_shows_no_key(file):
    text = toml(converted(yaml.safe_dump(file), {"B": "http://127.0.0.1:2"}), "a file")
    plan(parse(text, Secrets({})))
    assert "sk-hidden-" not in text


def test_the_command(tmp_path):
    source, file = tmp_path / "litellm.yaml", tmp_path / "gate.toml"
    source.write_text(WHOLE)
    done = CliRunner().invoke(app, ["init", str(file), "--from-litellm", str(source)])
    assert done.exit_code == 0
    assert "- router_settings.num_retries: reads are repeated at most 3 times, writes never\n" in done.stdout
    assert CliRunner().invoke(app, ["check", str(file)]).exit_code == 0
    again = CliRunner().invoke(app, ["init", str(file), "--from-litellm", str(source), "--json"])
    assert again.exit_code == 2
    assert "left as it is" in again.stderr
    other = tmp_path / "other.toml"
    done = CliRunner().invoke(app, ["init", str(other), "--from-litellm", str(source), "--json"])
    told = json.loads(done.stdout)
    assert told["file"] == str(other)
    assert {"field": "fallbacks: gone", "reason": "is no group of model_list that can be served"} in told["left_out"]
    for text, said in (("a: [", "is not YAML"), ("\xff", "is not UTF-8"), (None, "cannot be read")):
        bad = tmp_path / "bad.yaml"
        bad.write_text(text, encoding="latin-1") if text else bad.unlink()
        done = CliRunner().invoke(app, ["init", str(tmp_path / "none.toml"), "--from-litellm", str(bad)])
        assert done.exit_code == 2
        assert said in done.stderr
        assert not (tmp_path / "none.toml").exists()


def test_without_pyyaml_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    for name in ("conversion",):
        monkeypatch.delitem(__import__("sys").modules, f"swarmgate.cli.litellm.{name}")
    done = CliRunner().invoke(app, ["init", str(tmp_path / "a.toml"), "--from-litellm", "x.yaml"])
    assert done.exit_code == 2
    assert "pip install pyyaml" in done.stderr
