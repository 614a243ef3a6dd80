"""
The configuration that a command works with: a file, or what the environment says.

Also what agents need to know of it: the lines that point their SDKs at the gate.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from socket import gethostname

import typer

from swarmgate.cli.exits import Exit
from swarmgate.cli.init import DEFAULT_FILE
from swarmgate.cli.itself import a_gate_runs_at, ends_at
from swarmgate.config import Config, Listen, from_environment, load
from swarmgate.config.addresses import BaseUrl
from swarmgate.config.environment import KNOWN, Known
from swarmgate.config.problems import FileError
from swarmgate.core.retry import MOST_RETRIES
from swarmgate.facts.presets import load_presets
from swarmgate.providers.tables import dialect_named
from swarmgate.wiring.caps import counts_money
from swarmgate.wiring.egress import policy_table
from swarmgate.wiring.models import dialect_at

_ALL = frozenset({"0.0.0.0", "[::]"})  # noqa: S104  nothing is bound here
_STAND_IN = "not-set"


class Secrets(Mapping[str, str]):
    """The environment; a variable that is not there is noted and stood in for, so that the rest can be checked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.missing: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self._environment:
            self.missing.add(name)
        return self._environment.get(name, f"{_STAND_IN}-{name}")  # of each its own: they are not taken for one key

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


def read(file: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration in `file`, else that of the environment, which has the keys. Ends the command if it is wrong or cannot be read."""
    try:
        return from_environment(environment) if file is None else load(file, environment)
    except FileError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{file}: cannot be read: {error.strerror}", file=sys.stderr)
    raise typer.Exit(Exit.USAGE)


def unread() -> str:
    """A sentence about the file that `init` and `check` mean and nobody named; empty if there is none."""
    return f"{DEFAULT_FILE} is here and not read: --config {DEFAULT_FILE} serves it" if DEFAULT_FILE.is_file() else ""


def without_effect(config: Config) -> dict[str, str]:
    """What is written and can do nothing in this gate, each with a sentence that says so."""
    why = "has no effect: it is for a store that gates share, and this gate keeps its budgets itself"
    idle = [f"policies.{name}.outage" for name, table in config.policies.items() if "outage" in table.model_fields_set]
    return {name: f"{name} {why}" for name in idle}


def out_of_reach(config: Config) -> dict[str, str]:
    """Ladders with more rungs than a call has sends, each with a sentence: a rung is sent to once at least, unless it is passed over."""
    sends = MOST_RETRIES + 1
    rest = {
        model: ", ".join(f"{rung.target}/{rung.model}" for rung in ladder[sends:])
        for model, ladder in config.routes.items()
        if len(ladder) > sends
    }
    why = f"a call is sent at most {sends} times, so it gets there only where rungs above are passed over"
    return {f"routes.{model}": f"routes.{model}: {rungs} may never be reached: {why}" for model, rungs in rest.items()}


def exposed(config: Config) -> dict[str, str]:
    """Files of keys that every user of the machine can read, each with a sentence that says so (reliability SC-04)."""
    files = {Path(key.file) for target in config.targets.values() for key in target.keys.values() if key.file}
    why = "every user of this machine can read this key: chmod 600"
    return {str(file): f"{file}: {why} {file}" for file in sorted(files) if _is_open(file)}


def twins(config: Config) -> dict[str, str]:
    """
    Names of one target that are one and the same key, each with a sentence that says so; names of one account are meant so.

    It is no error: a local model takes any key, and may well have several. The key itself is never told.
    """
    found: dict[str, str] = {}
    for name, target in config.targets.items():
        account = {key: scope for scope, keys in target.scopes.items() for key in keys}
        same: dict[str, list[str]] = {}
        for key, secret in target.keys.items():
            same.setdefault(secret.get_secret_value(), []).append(key)
        for keys in same.values():
            counted = len({account[key] for key in keys})
            if counted > 1:
                why = f"each has its own limits, so this key is let through up to {counted} times what it may"
                names = ", ".join(f'"{key}"' for key in keys)
                mend = f"keep one, or join them: accounts = {{ same = [{names}] }}"
                found[f"targets.{name}.keys.{keys[1]}"] = f"{name}: {', '.join(keys)} are one key: {why}; {mend}"
    return found


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & 0o004)
    except OSError:  # it was there a moment ago
        return False


def without_contact(config: Config) -> dict[str, str]:
    """Policies in force whose hosts want to read whom to write to, where nobody says so, each with a sentence that asks for it."""
    if config.egress.user_agent or not {"egress", "policies"} & config.model_fields_set:
        return {}
    why = "its hosts ask for a contact in the User-Agent; write `user_agent` in [egress], or in a policy for them"
    presets = load_presets()
    made = {name: table.preset for name, table in config.policies.items()}
    nameless = [name for name, policy in policy_table(config).by_name.items() if not policy.user_agent]
    asking = [name for name in nameless if (one := presets.get(made.get(name, name))) and one.asks_for_contact]
    return {name: f"{name}: {why}" for name in asking}


def other_upstreams(config: Config, environment: Mapping[str, str], listen: Listen) -> dict[str, str]:
    """
    Variables that name another upstream than every target of their provider, each with a sentence: the targets' holds.

    One that names the gate itself, which listens there, is for agents.
    """
    found: dict[str, str] = {}
    for one in KNOWN:
        value = environment.get(one.base_url)
        named = _parsed(one, value) if value else None
        usual = _parsed(one, "")
        urls = {
            name: target.base_url
            for name, target in config.targets.items()
            if usual and (target.provider == one.target or target.base_url.host == usual.host)
        }
        if not named or not urls or named in urls.values() or ends_at(named, listen) or a_gate_runs_at(named):
            continue
        names = ", ".join(urls)
        why = f"is not where {names} sends its calls: the base_url of the configuration holds"
        found[one.base_url] = f"{one.base_url} of this environment {why}"
    return found


def unpriced_targets(config: Config) -> dict[str, str]:
    """Targets that serve any model where money is capped, and no list or table can know a price, each with a sentence."""
    if config.prices or not counts_money(config):
        return {}
    why = 'no price can be known, so a cap in money refuses its calls; write provider = "..." or [prices]'
    return {
        name: f"{name}: nobody knows its host, and {why}"
        for name, target in config.targets.items()
        if not target.provider and dialect_at(target).name == dialect_named("generic").name
    }


def _parsed(one: Known, url: str) -> BaseUrl | None:
    """The upstream of a provider at this value of its variable; None if that is no URL."""
    try:
        return from_environment({one.key: _STAND_IN, one.base_url: url}).targets[one.target].base_url
    except FileError:
        return None


def exports(config: Config, address: str) -> Iterator[str]:
    """Lines for a shell: each SDK that a target of `config` speaks to, pointed at the gate."""
    host, _, port = address.rpartition(":")
    gate = f"{scheme(config)}://{gethostname() if host in _ALL else host}:{port}"
    key = (
        "unused"
        if config.access.agent_keys == "optional"
        else "sgk_...   # one of each agent: swarmgate keys create NAME"
    )
    yield f"export OPENAI_BASE_URL={gate}/v1"
    yield f"export OPENAI_API_KEY={key}"
    if any(dialect_at(target).name == "anthropic" for target in config.targets.values()):
        yield f"export ANTHROPIC_BASE_URL={gate}"
        yield f"export ANTHROPIC_API_KEY={key}"


def scheme(config: Config) -> str:
    """How the data port is spoken to."""
    return "http" if config.tls.certificate is None else "https"
