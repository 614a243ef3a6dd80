"""The configuration that `lab serve` prints is one, and means what the stand-ins do."""

import pytest

from swarmgate.config.whole import parse
from swarmgate.lab.standin.gate_file import gate_file, hosts_of, keys_lines
from swarmgate.lab.standin.plan import DEFAULT_HOSTS, DEFAULT_PLAN, StandInPlan

PORTS = {"openai-like": 41, "anthropic-like": 42, "web-1": 43, "web-2": 44, "admin": 45}
LIMIT = {"kind": "sliding_log", "limit": 9, "window_ms": 1_500}
OTHER = {
    "providers": [
        {"name": "a", "dialect": "openai", "limits": [[LIMIT], [LIMIT | {"limit": 8}]], "scopes": 2, "keys": 2},
        {"name": "b-2", "dialect": "openai", "limits": [[LIMIT]]},
    ],
    "hosts": {"x.org": {"limits": []}, "y.org": {"limits": [LIMIT]}},
}


def read(plan, ports):
    names = [line.partition("env:")[2].strip('"') for line in gate_file(plan, ports).split("\n") if "env:" in line]
    return parse(gate_file(plan, ports), dict.fromkeys(names, "sk-canary-1"))


def routes(found):
    return {alias: rungs[0].target for alias, rungs in found.routes.items()}


def test_it_has_every_provider_with_its_keys_limits_and_accounts():
    found = read(DEFAULT_PLAN, PORTS)
    assert {name: len(one.keys) for name, one in found.targets.items()} == {"openai-like": 4, "anthropic-like": 4}
    one = found.targets["anthropic-like"]
    assert (one.base_url.port, one.provider) == (42, "anthropic")
    assert [(quota.amount, quota.window_ms) for quota in one.key_limits] == [(100, 10_000), (200_000, 10_000)]
    assert one.accounts == {"account-1": ("key-1", "key-3"), "account-2": ("key-2", "key-4")}
    assert routes(found) == {"*": "openai-like", "claude-*": "anthropic-like"}


def test_hosts_of_every_usual_kind_are_pinned():
    assert {id(host) for host in hosts_of(DEFAULT_PLAN).values()} == {id(host) for host in DEFAULT_HOSTS}
    assert len(read(DEFAULT_PLAN, PORTS).resolve) == len(DEFAULT_HOSTS)


def test_limits_that_differ_are_not_told_and_every_provider_has_models():
    found = read(StandInPlan.model_validate(OTHER), {"a": 1, "b-2": 2, "web-1": 3})
    assert found.targets["a"].key_limits == ()
    assert [quota.window_ms for quota in found.targets["b-2"].key_limits] == [1_500]
    assert routes(found) == {"*": "a", "b-2-*": "b-2"}
    assert set(found.resolve) == {"x.org", "y.org"}


@pytest.mark.parametrize(("number", "line"), [(0, "OPENAI_LIKE_$n=sk-lab-openai-like-$n"), (1, "$(seq 4)")])
def test_keys_are_put_into_the_environment(number, line):
    assert line in keys_lines(DEFAULT_PLAN)[number]
