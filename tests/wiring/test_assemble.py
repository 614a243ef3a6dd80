"""From a configuration to what is served: ladders, targets, budgets and the lines that keys share."""

import subprocess
import sys

import pytest

from records import a_head
from swarmgate.config import parse
from swarmgate.core.compiler import Unit
from swarmgate.core.limits import BudgetKind
from swarmgate.gate.model_route import PATHS
from swarmgate.wiring import plan

TEXT = """
[targets.openai]
base_url = "https://api.openai.com/v1"
keys = { a = "env:KEY", b = "env:KEY" }
limits = ["5 concurrent", "3 per 60s"]
key_limits = ["500 per 60s", "200000 tokens per 60s"]

[targets.local]
base_url = "http://127.0.0.1:8000/api"
auth = "x-api-key"
keys = { only = "env:KEY" }

[routes]
fast = ["openai/gpt-4o-mini", "local/*"]
"*" = "openai/*"
"""
made = plan(parse(TEXT, {"KEY": "sk-9"}))


def test_ladders():
    fast, rest = made.ladders.by_model["fast"], made.ladders.other("gpt-4o")
    assert [(rung.target, rung.model) for rung in fast] == [("openai", "gpt-4o-mini"), ("local", "")]
    assert [(rung.target, rung.model) for rung in rest] == [("openai", "")]
    assert fast[0].ring is not rest[0].ring  # an ejection by one model leaves the others alone
    assert fast[0].retries is rest[0].retries  # a target is weak for all


def test_every_budget_of_every_route_is_defined():
    for rung in (*made.ladders.by_model["fast"], *made.ladders.other("gpt-4o")):
        for route in rung.routes.values():
            named = [name for name, _, _ in route.demands(1, 1)]
            assert len(named) == len(set(named))
            assert set(named) | set(route.budgets()) <= set(made.budgets)


def test_keys_have_budgets_of_their_own_and_one_line():
    names = [name for name in made.budgets if name.startswith("openai/") and name.endswith("requests per 60s")]
    assert sorted(names) == ["openai/a: requests per 60s", "openai/b: requests per 60s"]
    assert len({made.lines[name] for name in names}) == 1
    assert made.budgets["openai: concurrent"].kind is BudgetKind.LEASES
    assert "openai: concurrent" not in made.lines


def test_a_budget_tells_what_was_published():
    said = made.published["openai/a: requests per 60s"]
    assert (said.amount, said.unit, said.window_ms) == (500, Unit.REQUESTS, 60_000)
    assert set(made.published) < set(made.budgets)


def test_requests_carry_the_credential_of_their_target():
    path = next(iter(PATHS))
    first = made.targets["openai"].request("a", path, a_head(), b"{}")
    assert first.startswith(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: api.openai.com\r\nauthorization: Bearer sk-9\r\n"
    )
    assert first.endswith(b"content-length: 2\r\n\r\n{}")
    local = made.targets["local"].request("only", path, a_head(), b"")
    assert local.startswith(b"POST /api/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8000\r\nx-api-key: sk-9\r\n")
    assert "sk-9" not in repr(made.targets)


@pytest.mark.parametrize(
    ("target", "path", "opening"),
    [
        ('base_url = "https://api.groq.com"', b"/v1/chat/completions", b"POST /openai/v1/chat/completions "),
        ('base_url = "https://api.groq.com/x/v1"', b"/v1/chat/completions", b"POST /x/v1/chat/completions "),
        ('base_url = "http://127.0.0.1:9"', b"/v1/chat/completions", b"POST /chat/completions "),
        (
            'base_url = "http://127.0.0.1:9"\nprovider = "qwen"',
            b"/v1/embeddings",
            b"POST /compatible-mode/v1/embeddings ",
        ),
        ('base_url = "https://api.anthropic.com"', b"/v1/messages", b"POST /v1/messages "),
    ],
)
def test_the_provider_knows_its_paths(target, path, opening):
    text = f'[targets.up]\n{target}\nkeys = {{ only = "env:KEY" }}'
    sent = plan(parse(text, {"KEY": "sk-9"})).targets["up"].request("only", path, a_head(), b"{}")
    assert sent.startswith(opening)


def test_the_provider_says_which_header_its_key_goes_in_and_what_else_it_wants():
    text = '[targets.up]\nbase_url = "https://api.anthropic.com/v1"\nkeys = { only = "env:KEY" }'
    target = plan(parse(text, {"KEY": "sk-9"})).targets["up"]
    sent = target.request("only", b"/v1/messages", a_head(), b"{}")
    assert b"\r\nx-api-key: sk-9\r\n" in sent
    assert b"\r\nanthropic-version: 2023-06-01\r\n" in sent
    newer = a_head("anthropic-version: 2027-01-01")
    assert target.request("only", b"/v1/messages", newer, b"{}").count(b"anthropic-version: 2027-01-01\r\n") == 1
    assert b"2023" not in target.request("only", b"/v1/messages", newer, b"{}")


def test_rungs_of_several_know_the_window_of_their_model():
    text = TEXT.replace(
        '["openai/gpt-4o-mini", "local/*"]', '["openai/gpt-4o", "openai/gpt-4", "openai/none-such", "local/*"]'
    )
    ladders = plan(parse(text, {"KEY": "sk-9"})).ladders.by_model
    assert [rung.window("asked") for rung in ladders["fast"]] == [128_000, 8_192, 0, 0]
    (alone,) = plan(
        parse(
            text.replace('["openai/gpt-4o", "openai/gpt-4", "openai/none-such", "local/*"]', '"openai/gpt-4"'),
            {"KEY": "sk-9"},
        )
    ).ladders.by_model["fast"]
    assert alone.window is None


def test_windows_that_an_operator_tells_outrank_the_list_at_every_provider():
    text = TEXT.replace(
        '["openai/gpt-4o-mini", "local/*"]', '["openai/gpt-4o", "openai/gpt-4", "openai/o3", "local/*"]'
    )
    text = text.replace("[targets.openai]", '[targets.openai]\nwindows = { "gpt-4" = 4_096 }')
    text = text.replace("[targets.local]", '[targets.local]\nwindows = { "small8k" = 8_192, "*" = 32_768 }')
    first, fourth, listed, any_model = plan(parse(text, {"KEY": "sk-9"})).ladders.by_model["fast"]
    assert first.window("asked") == 128_000
    assert fourth.window("asked") == 4_096
    assert listed.window("asked") == 200_000
    assert [any_model.window(asked) for asked in ("small8k", "other")] == [8_192, 32_768]


HEAVY = """
import sys
from swarmgate import config, wiring
wiring.plan(config.parse(sys.argv[1], {"KEY": "k"}))
print(sorted({"jsonschema", "genai_prices"} & set(sys.modules)))
"""


def test_a_plan_with_several_rungs_reads_neither_the_list_of_prices_nor_schemas():
    done = subprocess.run([sys.executable, "-c", HEAVY, TEXT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    made = plan(parse(TEXT, {"KEY": "sk-9"}))
    assert made.warm is not None
    made.warm()
    assert plan(parse(TEXT.replace(', "local/*"]', "]"), {"KEY": "sk-9"})).warm is None
