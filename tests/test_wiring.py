"""From a configuration to what is served: ladders, targets, budgets and the lines that keys share."""

from types import SimpleNamespace

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
    head = SimpleNamespace(fields={}, headers=[])
    path = next(iter(PATHS))
    first = made.targets["openai"].request("a", path, head, b"{}")
    assert first.startswith(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: api.openai.com\r\nauthorization: Bearer sk-9\r\n"
    )
    assert first.endswith(b"content-length: 2\r\n\r\n{}")
    local = made.targets["local"].request("only", path, head, b"")
    assert local.startswith(b"POST /api/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8000\r\nx-api-key: sk-9\r\n")
    assert "sk-9" not in repr(made.targets)
