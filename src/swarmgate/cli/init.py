"""`swarmgate init`: a first configuration, commented, for the providers whose keys the environment has, or from LiteLLM's."""

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from swarmgate.cli.exits import Exit
from swarmgate.cli.itself import a_gate_runs_at, ends_at
from swarmgate.config import Config
from swarmgate.config.addresses import read_base_url
from swarmgate.config.environment import KNOWN, Known, upstream
from swarmgate.core.errors import BadInput
from swarmgate.providers.tables import GENERIC, dialect_of

if TYPE_CHECKING:
    from swarmgate.cli.litellm.reading import LeftOut

EXAMPLE = "Example: swarmgate init gate.toml --from-litellm litellm.yaml"
DEFAULT_FILE = Path("swarmgate.toml")
_GATE = Config.model_fields[
    "listen"
].default  # where the file's gate listens: what agents are told is no upstream of it


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.", metavar="FILE")] = DEFAULT_FILE,
    from_litellm: Annotated[
        Path | None, typer.Option(help="The YAML of a LiteLLM proxy to take over.", metavar="YAML")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Write a first configuration with comments; an existing file is left alone."""
    left_out: tuple[LeftOut, ...] = ()
    elsewhere: dict[Known, str] = {}
    of_agents: list[Known] = []
    if from_litellm is None:
        targets = {one.target for one in KNOWN if os.environ.get(one.key)} or {KNOWN[0].target}
        elsewhere, of_agents = _elsewhere(targets)
        text = _moved(first_text(targets), elsewhere)
    else:
        text, left_out = _taken_over(from_litellm)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        _refuse(f"{file} exists already and is left as it is; name another file")
    except OSError as error:
        _refuse(f"{file} cannot be written: {error.strerror}")
    if as_json:
        upstreams = {one.target: url for one, url in elsewhere.items()}
        done = {"file": str(file), "upstreams": upstreams, "left_out": [one._asdict() for one in left_out]}
        print(json.dumps(done, indent=2))
        return
    print(f"{file} is written. Next: swarmgate check {file}, then swarmgate up --config {file}")
    for one, url in elsewhere.items():
        print(
            f"Calls of {one.target} go to {url}, as {one.base_url} says here; once written, the file's base_url holds."
        )
    for one in of_agents:
        print(f"{one.base_url} names a gate here, which is for agents; {one.target} stays at {upstream(one, {})}.")
    if left_out:
        print("Not taken over, as the end of the file says, too:")
    for field, reason in left_out:
        print(f"- {field}: {reason}")


def _elsewhere(targets: Collection[str]) -> tuple[dict[Known, str], list[Known]]:
    """
    The providers in force whose variable names another upstream than the provider itself, with that upstream, and those
    whose variable names a gate, as it does for agents. Ends the command where one is no URL, or has a password in it.
    """
    elsewhere, of_agents = {}, []
    for one in KNOWN:
        if one.target not in targets or not os.environ.get(one.base_url):
            continue
        url = upstream(one, os.environ)
        try:
            read = read_base_url(url)
        except BadInput as bad:
            _refuse(f"{one.base_url} of this environment {bad.reason}; nothing is written")
        if ends_at(read, _GATE) or a_gate_runs_at(read):
            of_agents.append(one)
        elif read != read_base_url(upstream(one, {})):
            elsewhere[one] = url
    return elsewhere, of_agents


def _moved(text: str, elsewhere: Mapping[Known, str]) -> str:
    """The configuration with those upstreams; `provider` says what speaks there, where the host does not tell."""
    for one, url in elsewhere.items():
        usual = f'base_url = "{upstream(one, {})}"\n'
        is_told = one.provider is None and dialect_of(read_base_url(url).host) is not GENERIC
        told = f"base_url = {json.dumps(url)}\n" + f'provider = "{one.target}"\n' * (not is_told)
        text = text.replace(usual, told)
    return text


def _taken_over(source: Path) -> "tuple[str, tuple[LeftOut, ...]]":
    """A LiteLLM proxy's file as one of ours, and what of it is not in there."""
    try:
        from swarmgate.cli.litellm.conversion import converted  # noqa: PLC0415  needs an extra, and only here
        from swarmgate.cli.litellm.writing import toml  # noqa: PLC0415  see above
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        _refuse("reading YAML needs PyYAML: pip install pyyaml")
    try:
        told = converted(source.read_text(encoding="utf-8"), os.environ)
    except OSError as error:
        _refuse(f"{source} cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        _refuse(f"{source} is not UTF-8: {error.reason} at byte {error.start}")
    except BadInput as bad:
        _refuse(f"{source}: {bad}")
    return toml(told, source.name if source.name.isprintable() else "a file"), told.left_out


def _refuse(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    raise typer.Exit(Exit.USAGE)


def first_text(targets: Collection[str]) -> str:
    """The first configuration, in which only these of its targets are in force; the others stand as comments."""
    text = (resources.files("swarmgate.config") / "first.toml").read_text(encoding="utf-8")
    for one in KNOWN:
        if one.target not in targets:
            text = re.sub(rf"^\[targets\.{one.target}\]\n(?:.+\n)+", _as_comment, text, flags=re.MULTILINE)
            text = re.sub(rf'^"[^"]+" = "{one.target}/.*\n', _as_comment, text, flags=re.MULTILINE)
    if len(targets) == 1:
        (only,) = targets
        text = re.sub(rf'^"[^"]+" = "{only}/', f'"*" = "{only}/', text, flags=re.MULTILINE)
    return text


def _as_comment(found: re.Match[str]) -> str:
    """Each line once more: what is a comment in the part stays one when somebody puts the part in force."""
    return "".join(f"# {line}" for line in found[0].splitlines(keepends=True))
