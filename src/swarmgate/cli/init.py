"""`swarmgate init`: a first configuration, commented, for the providers whose keys the environment has."""

import os
import re
import sys
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from swarmgate.cli.exits import Exit
from swarmgate.config.environment import KNOWN

EXAMPLE = "Example: swarmgate init gate.toml && swarmgate check gate.toml"
DEFAULT_FILE = Path("swarmgate.toml")


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.", metavar="[FILE]")] = DEFAULT_FILE,
) -> None:
    """Write a first configuration with comments; an existing file is left alone."""
    text = first_text({one.target for one in KNOWN if os.environ.get(one.key)} or {KNOWN[0].target})
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        print(f"{file} exists already and is left as it is; name another file", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    except OSError as error:
        print(f"{file} cannot be written: {error.strerror}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    print(f"{file} is written. Next: swarmgate check {file}, then swarmgate up --config {file}")


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
    return "".join(f"# {line.removeprefix('# ')}" for line in found[0].splitlines(keepends=True))
