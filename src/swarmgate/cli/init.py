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
from swarmgate.config.environment import KNOWN, Known, upstream
from swarmgate.core.errors import BadInput

if TYPE_CHECKING:
    from swarmgate.cli.litellm.reading import LeftOut

EXAMPLE = "Example: swarmgate init gate.toml --from-litellm litellm.yaml"
DEFAULT_FILE = Path("swarmgate.toml")
_GATE = ("http://127.0.0.1:8787/", "http://localhost:8787/")  # what agents are told; a gate is not its own upstream


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
    if from_litellm is None:
        targets = {one.target for one in KNOWN if os.environ.get(one.key)} or {KNOWN[0].target}
        elsewhere = _elsewhere(targets)
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
        print(json.dumps({"file": str(file), "left_out": [one._asdict() for one in left_out]}, indent=2))
        return
    print(f"{file} is written. Next: swarmgate check {file}, then swarmgate up --config {file}")
    for one, url in elsewhere.items():
        print(
            f"Calls of {one.target} go to {url}, as {one.base_url} says here; once written, the file's base_url holds."
        )
    if left_out:
        print("Not taken over, as the end of the file says, too:")
    for field, reason in left_out:
        print(f"- {field}: {reason}")


def _elsewhere(targets: Collection[str]) -> dict[Known, str]:
    """The providers in force whose variable names another upstream than the provider itself, and that upstream."""
    named = {one: upstream(one, os.environ) for one in KNOWN if one.target in targets}
    return {one: url for one, url in named.items() if url != upstream(one, {}) and not url.startswith(_GATE)}


def _moved(text: str, elsewhere: Mapping[Known, str]) -> str:
    """The configuration with those upstreams; `provider` says what speaks there, since no host tells it any more."""
    for one, url in elsewhere.items():
        usual = f'base_url = "{upstream(one, {})}"\n'
        told = f'base_url = {json.dumps(url)}\nprovider = "{one.target}"\n'
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
