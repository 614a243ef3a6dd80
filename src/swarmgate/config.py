"""
The operator's one TOML file: what it may say, checked whole, every mistake at once with its line.

Here live names, numbers and references; what follows from them (budgets, rings, ladders) is made in wiring.py. A key never
stands in the file: it is named (`env:NAME`, `file:PATH`) and kept as a secret that shows itself to nobody.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from swarmgate.core.compiler import HEADROOM_PERCENT, Compiled, Published, Unit, compile_limit
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BadLimit
from swarmgate.problems import FileError, Loc, Problem, explain, key_lines, nearest, problem

DEFAULT_LISTEN = "127.0.0.1:8787"
ANY_MODEL = "*"
_LIMIT = re.compile(r"([0-9][0-9_]{0,17})(?: ([a-z_]+))?(?: per (.+))?")
_KEY = re.compile(r"[!-~]{1,4096}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # anything else may be a key written by mistake: it is not repeated
_METERED = (Unit.REQUESTS, Unit.TOKENS, Unit.CONCURRENT)


class Quota(NamedTuple):
    """`500 per 60s`, `200_000 tokens per 1m`, `50 concurrent`: an amount of a unit in any window of that length."""

    amount: int
    unit: Unit
    window_ms: int

    def __str__(self) -> str:
        window = f" per {self.window_ms / 1_000:g}s" if self.window_ms else ""
        return f"{self.amount} {self.unit}{window}"


class BaseUrl(NamedTuple):
    """A base URL taken apart; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str


class Listen(NamedTuple):
    """The data port."""

    host: str
    port: int


class Deployment(NamedTuple):
    """One rung: a model at a target; model `*` = whatever the caller asked for."""

    target: str
    model: str


def _quota(text: object) -> Quota:
    found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadInput("", f'{text!r} is no limit; write "500 per 60s", "200_000 tokens per 1m" or "50 concurrent"')
    amount, unit, window = found.groups()
    if unit is not None and unit not in _METERED:
        raise BadInput("", f"{unit!r} is no unit that is metered here; {nearest(unit, _METERED)}")
    known = Unit(unit or Unit.REQUESTS)
    if (window is None) != (known is Unit.CONCURRENT):
        raise BadInput("", f'{text!r}: "concurrent" has no window, everything else has one, as in "500 per 60s"')
    return Quota(int(amount), known, 0 if window is None else parse_duration_ms(window, ""))


def _base_url(text: object) -> BaseUrl:
    try:
        url = urlsplit(text) if isinstance(text, str) else urlsplit("")
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise BadInput("", "is no base URL; write https://host[:port]/v1")
    if url.username or url.password:
        raise BadInput("", "carries a user or a password; keys stand in `keys`")
    return BaseUrl(url.scheme, url.hostname, port or (443 if url.scheme == "https" else 80), url.path.rstrip("/"))


def _listen(text: object) -> Listen:
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadInput("", f"{text!r} is no address; write {DEFAULT_LISTEN!r}")
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise BadInput("", f"{host!r} is not loopback, and agents have no keys yet; listen on 127.0.0.1 or [::1]")
    return Listen(host, int(port))


def _ladder(value: object) -> tuple[Deployment, ...]:
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str) and "/" in text]
    if not texts or (isinstance(value, list) and len(texts) < len(value)):
        raise BadInput("", 'is no ladder; write "target/model" or ["target/model", "next/model"]')
    return tuple(Deployment(*text.split("/", 1)) for text in texts)


def _secret(reference: object, info: ValidationInfo) -> SecretStr:
    """Errors never repeat what was written: it may be the key itself."""
    kind, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if kind == "env" and _VARIABLE.fullmatch(name):
        key = (info.context or {}).get(name)
        if key is None:
            raise BadInput("", f"the environment has no {name}")
    elif kind == "file":
        try:
            key = Path(name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput("", f"the file {name} cannot be read: {type(error).__name__}") from None
    else:
        raise BadInput("", "must be env:NAME or file:PATH; a key does not stand in this file")
    if not _KEY.fullmatch(key):
        raise BadInput("", f"{kind}:{name} does not hold one key: visible ASCII without spaces")
    return SecretStr(key)


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=40)]
Limits = tuple[Annotated[Quota, BeforeValidator(_quota)], ...]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Target(_Table):
    """
    A place where models are called.

    `limits` hold for all its keys together, `key_limits` for each key; `headroom` is the percentage of a published limit
    that is used; `largest_tokens` the largest call that must still fit a limit on tokens.
    """

    base_url: Annotated[BaseUrl, BeforeValidator(_base_url)]
    keys: Annotated[dict[Name, Annotated[SecretStr, BeforeValidator(_secret)]], Field(min_length=1)]
    auth: Literal["bearer", "x-api-key", "api-key"] = "bearer"
    headroom: Annotated[int, Field(ge=1, le=100)] = HEADROOM_PERCENT
    limits: Limits = ()
    key_limits: Limits = ()
    largest_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 16_384

    def compiled(self, quota: Quota, line: str = "") -> Compiled:
        """The budget that keeps a quota; calls wait in `line`. Errors: `BadLimit` if none can."""
        largest = self.largest_tokens if quota.unit is Unit.TOKENS else 1
        return compile_limit(
            Published(
                quota.amount,
                quota.window_ms,
                quota.unit,
                headroom_percent=self.headroom,
                largest=(largest, largest, largest),
                line=line,
                sharing=len(self.keys) if line else 1,
            )
        )

    @model_validator(mode="after")
    def _limits_can_be_kept(self) -> Self:
        for field in ("limits", "key_limits"):
            for quota in getattr(self, field):
                try:
                    self.compiled(quota)
                except BadLimit as bad:
                    raise BadInput(field, f"{quota}: {bad.reason}") from None
        return self


class Config(_Table):
    """The whole file; without routes the only target serves every model."""

    listen: Annotated[Listen, BeforeValidator(_listen)] = Listen("127.0.0.1", 8787)
    targets: Annotated[dict[Name, Target], Field(min_length=1)]
    routes: dict[str, Annotated[tuple[Deployment, ...], BeforeValidator(_ladder)]] = {}


def load(path: Path, environment: Mapping[str, str]) -> Config:
    """The configuration in a file. Errors: `FileError` with all its problems, OSError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            str(path), [Problem(1, "file", f"is not UTF-8: {error.reason} at byte {error.start}")]
        ) from None
    return parse(text, environment, str(path))


def parse(text: str, environment: Mapping[str, str], source: str = "configuration") -> Config:
    """The configuration that `text` describes. Errors: `FileError` with all its problems."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise FileError(source, [Problem(int(line[1]) if line else 1, "file", f"is not TOML: {error}")]) from None
    lines = key_lines(text)
    found = [problem(loc, reason, lines) for loc, reason in _unresolved(raw)]
    try:
        config = Config.model_validate(raw, context=environment)
    except ValidationError as error:
        found += explain(error, raw, _names, lines, secret=("keys",))
    if found:
        raise FileError(source, found)
    return config


def from_environment(environment: Mapping[str, str]) -> Config:
    """
    What holds without a file: `OPENAI_API_KEY` at OpenAI, or at `OPENAI_BASE_URL`.

    Errors: `FileError` if there is no such key, or the URL is none.
    """
    target = {
        "base_url": environment.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        "keys": {"openai_api_key": "env:OPENAI_API_KEY"},
    }
    try:
        return Config.model_validate({"targets": {"openai": target}}, context=environment)
    except ValidationError as error:
        raise FileError("environment", explain(error, {}, _names, {}, secret=("keys",))) from None


def _names(table: str) -> Collection[str]:
    """The valid keys of a table; those of a target stand below its name."""
    return list(Target.model_fields) if table.startswith("targets.") else list(Config.model_fields)


def _unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Rungs at targets that are not there, found in the raw file so that they are told together with the rest."""
    targets, routes = raw.get("targets"), raw.get("routes", {})
    if not isinstance(targets, dict) or not isinstance(routes, dict):
        return
    if len(targets) > 1 and not routes:
        yield ("routes",), "is missing: with several targets each model needs a ladder"
    for alias, value in routes.items():
        for text in value if isinstance(value, list) else [value]:
            name = text.partition("/")[0] if isinstance(text, str) and "/" in text else None
            if name is not None and name not in targets:
                yield ("routes", alias), f"{name!r} is no target; {nearest(name, targets)}"
