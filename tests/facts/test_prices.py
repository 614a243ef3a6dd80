"""Prices: the operator's outrank the list, the list's are what its package computes, and what nobody knows is None."""

import subprocess
import sys
from decimal import Decimal

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.config import parse
from swarmgate.config.problems import FileError
from swarmgate.core.price import Used
from swarmgate.facts.prices import PriceBook, capabilities, cost_of, listed, nearest

MODELS = [
    ("openai", "gpt-4o-mini"),
    ("openai", "text-embedding-3-small"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-2.5-pro"),
    ("deepseek", "deepseek-chat"),
    ("moonshot", "kimi-k2-0905-preview"),
    ("groq", "llama-3.3-70b-versatile"),
]
OWN = """
[prices."up/gpt-4o-mini"]
input = 1.5
output = "2.25"
[prices."local-*"]
input = 0
output = 0
"""


@pytest.mark.parametrize(("provider", "model"), MODELS)
@given(st.integers(1, 400_000), st.integers(0, 9_000), st.integers(0, 100))
def test_a_cost_is_what_the_package_computes(provider, model, prompt, output, cached_percent):
    if model.startswith("text-embedding"):
        output = 0
    cached = prompt * cached_percent // 100
    usage = genai_prices.Usage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=output)
    theirs = {"gemini": "google", "moonshot": "moonshotai"}.get(provider, provider)
    exact = genai_prices.calc_price(usage, model, provider_id=theirs).total_price * 1_000_000
    assert 0 <= cost_of(model, provider, Used(prompt, output, cached)) - exact < Decimal("1.5")


def test_what_nobody_knows_is_none():
    assert cost_of("no-such-model", "openai", Used(1, 1)) is None
    assert cost_of("gpt-4o-mini", "no-such-provider", Used(1, 1)) is None
    assert listed("no-such-model") is None
    assert "gpt-4o-mini" in nearest("gpt-4o-minni")


def test_the_operators_prices_outrank_the_list():
    tables = parse(OWN, {}).prices
    book = PriceBook({name: table.price for name, table in tables.items()})
    million = Used(1_000_000, 1_000_000)
    assert book.cost_micro("gpt-4o-mini", "openai", million, target="up") == 3_750_000
    assert book.cost_micro("gpt-4o-mini", "openai", million) == 750_000
    assert book.cost_micro("local-7b", "", million) == 0
    assert book.cost_micro("unknown", "", million) is None


@pytest.mark.parametrize(
    ("target", "model", "dollars"),
    [
        ("up", "large", 7),
        ("small", "large", 1),
        ("up", "large-2", 6),
        ("up", "any", 3),
        ("uphill", "any", 3),
        ("up", "one", 9),
        ("elsewhere", "any", 0),
    ],
)
def test_the_price_that_says_more_outranks_the_one_that_says_less(target, model, dollars):
    said = {"*": 0, "up*": 3, "large": 7, "large-*": 6, "small/*": 1, "up/one": 9}
    tables = parse("".join(f'[prices."{name}"]\ninput = {usd}\noutput = 0\n' for name, usd in said.items()), {}).prices
    book = PriceBook({name: table.price for name, table in tables.items()})
    assert book.cost_micro(model, "", Used(1_000_000, 0), target) == dollars * 1_000_000


@pytest.mark.parametrize("price", ["-1", "true", '"much"', '"NaN"', "1e9"])
def test_what_is_no_price(price):
    with pytest.raises(FileError, match="dollars per million tokens"):
        parse(f"[prices.m]\ninput = {price}\noutput = 1\n", {})


def test_what_models_can_do():
    assert "vision" in capabilities()["gpt-4o-mini"]


def test_a_start_does_not_load_the_list():
    code = (
        "import sys, swarmgate.cli, swarmgate.wiring, swarmgate.facts.prices; sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
