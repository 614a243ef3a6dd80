"""
What is no mistake of a configuration, and yet not what its author wants: each a sentence by the name of what it is about.

`WARNINGS` is the table of all of them: people and programs are told what stands in it, and nothing else.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from swarmgate.cli.configured import STAND_IN
from swarmgate.cli.itself import a_gate_runs_at, ends_at, itself
from swarmgate.cli.unpriced import unpriced, unpriced_targets
from swarmgate.config import BaseUrl, Config, Listen, from_environment
from swarmgate.config.environment import KNOWN, Known
from swarmgate.config.problems import FileError
from swarmgate.core.retry import MOST_RETRIES
from swarmgate.facts.presets import load_presets
from swarmgate.wiring.egress import policy_table


class Asked(NamedTuple):
    """What warnings are about: a configuration, the environment in which it is read, and where its gate listens."""

    config: Config
    environment: Mapping[str, str]
    listen: Listen


class Warned(NamedTuple):
    """One warning: its kind (a key of `WARNINGS`), what it is about, and what people read."""

    kind: str
    name: str
    sentence: str


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


def _parsed(one: Known, url: str) -> BaseUrl | None:
    """The upstream of a provider at this value of its variable; None if that is no URL."""
    try:
        return from_environment({one.key: STAND_IN, one.base_url: url}).targets[one.target].base_url
    except FileError:
        return None


# By kind, what looks for it. Whoever adds one adds it here, and to the guide.
WARNINGS: Final[dict[str, Callable[[Asked], dict[str, str]]]] = {
    "itself": lambda asked: itself(asked.config, asked.listen),
    "unpriced": lambda asked: unpriced(asked.config),
    "unpriced_targets": lambda asked: unpriced_targets(asked.config),
    "exposed": lambda asked: exposed(asked.config),
    "same_key": lambda asked: twins(asked.config),
    "without_effect": lambda asked: without_effect(asked.config),
    "out_of_reach": lambda asked: out_of_reach(asked.config),
    "without_contact": lambda asked: without_contact(asked.config),
    "other_upstreams": lambda asked: other_upstreams(asked.config, asked.environment, asked.listen),
}


def warned(asked: Asked) -> list[Warned]:
    """Every warning, in the order of the table."""
    return [Warned(kind, name, sentence) for kind, look in WARNINGS.items() for name, sentence in look(asked).items()]
