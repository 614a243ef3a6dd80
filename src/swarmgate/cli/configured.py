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
from swarmgate.config import Config, from_environment, load
from swarmgate.config.problems import FileError
from swarmgate.wiring.models import dialect_at

_ALL = frozenset({"0.0.0.0", "[::]"})  # noqa: S104  nothing is bound here
STAND_IN = "not-set"


class Secrets(Mapping[str, str]):
    """The environment; a variable that is not there is noted and stood in for, so that the rest can be checked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.missing: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self._environment:
            self.missing.add(name)
        return self._environment.get(name, f"{STAND_IN}-{name}")  # of each its own: they are not taken for one key

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
