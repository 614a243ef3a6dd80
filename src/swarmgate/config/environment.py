"""What holds without a file: the providers whose keys the environment has."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from swarmgate.config.problems import FileError, Problem, explain
from swarmgate.config.whole import SECRET, Config, keys_in

_END = "/v1"


class Known(NamedTuple):
    """
    A provider whose SDK reads its key and its base URL from the environment; `models` are the names it serves.

    `provider` is how it speaks wherever it stands; None = as its host does.
    """

    target: str
    key: str
    base_url: str
    usual_url: str
    auth: str
    models: str
    provider: str | None = None


KNOWN = (
    Known("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1", "bearer", "*"),
    Known(
        "anthropic",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        "x-api-key",
        "claude-*",
        provider="anthropic",
    ),
)


def from_environment(environment: Mapping[str, str]) -> Config:
    """
    A target for each provider whose key is set, at its own URL or at that of its base URL's variable.

    Errors: `FileError` if there is no key at all, or a value is none.
    """
    found = [one for one in KNOWN if environment.get(one.key)]
    if not found:
        names = " and ".join(one.key for one in KNOWN)
        raise FileError("environment", [Problem(0, names, "are not set; set one, or name a file with --config")])
    targets = {one.target: _target(one, environment) for one in found}
    routes = {one.models if len(found) > 1 else "*": f"{one.target}/*" for one in found}
    raw = {"targets": targets, "routes": routes}
    try:
        return Config.model_validate(raw, context=environment)
    except ValidationError as error:
        variables = {f"targets.{one.target}.base_url": one.base_url for one in found}
        variables |= {f"targets.{one.target}.keys.{one.key.lower()}": one.key for one in found}
        wrong = explain(error, raw, keys_in, {}, SECRET)
        problems = [Problem(0, variables.get(field, field), reason) for _, field, reason in wrong]
        raise FileError("environment", problems) from None


def upstream(one: Known, environment: Mapping[str, str]) -> str:
    """Where its calls go: to the URL that its variable names, else to the provider itself."""
    url = (environment.get(one.base_url) or one.usual_url).rstrip("/")
    if not one.usual_url.endswith(_END) and not url.endswith(_END):
        url += _END  # that provider's SDK adds it by itself
    return url


def _target(one: Known, environment: Mapping[str, str]) -> dict[str, object]:
    url = upstream(one, environment)
    return {"base_url": url, "auth": one.auth, "provider": one.provider, "keys": {one.key.lower(): f"env:{one.key}"}}
