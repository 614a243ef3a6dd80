"""
The compiled form: mypyc translates the modules that every call passes to C, from the same Python (docs/development.md: Compiled).

Only for wheels, and only if asked: `make compiled`, or HATCH_BUILD_HOOK_ENABLE_CUSTOM=true before any `pip install` or
`pip wheel` of the sources. It takes two to three minutes and a C compiler; without it the package is pure Python.
"""

import contextlib
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "swarmgate"
COMPILED = (
    "core/*.py",
    "engine/*.py",
    "gate/*.py",
    "gate/egress/*.py",
    "http1/*.py",
    "stores/journal/*.py",
    "stores/memory/*.py",
)
# What stays Python, and why. mypyc drops what a class statement says to a metaclass, and turns annotations into plain types.
INTERPRETED = {
    **dict.fromkeys(
        (
            "gate/answer_shape.py",
            "gate/peeked.py",
            "gate/turns.py",
            "stores/journal/rows.py",
            "stores/journal/learned.py",
            "stores/journal/in_force.py",
        ),
        "structs of msgspec",
    ),
    **dict.fromkeys(("core/limits.py", "stores/journal/audit.py"), "msgspec reads their annotations"),
    "core/errors.py": "stores and surfaces have errors of their own below it",
    "http1/faults.py": "an enumeration with a constructor",
    "http1/plain_callers.py": "its classes are of a library that makes them itself",
    "gate/dead_letters.py": "a protocol that is asked for at run time",
    "stores/memory/snapshot.py": "an error that is an OSError",
    **dict.fromkeys(("http1/listen.py", "http1/tls.py"), "uvloop hands it other types than asyncio promises"),
}


def modules(package: Path) -> list[str]:
    """The files to compile, relative to the folder that holds the package."""
    found = sorted(path for pattern in COMPILED for path in package.glob(pattern) if not path.name.startswith("__"))
    names = [path.relative_to(package).as_posix() for path in found]
    if gone := set(INTERPRETED) - set(names):
        raise FileNotFoundError(f"hatch_build.py lists what is not there: {', '.join(sorted(gone))}")
    return [f"{PACKAGE}/{name}" for name in names if name not in INTERPRETED]


def compile_package(source: Path, place: Path) -> list[Path]:
    """Compile a copy of `source` in `place`, an empty folder; the libraries, below `place`/`lib`."""
    from mypyc.build import mypycify  # noqa: PLC0415  needed by nobody who does not compile
    from setuptools import setup  # noqa: PLC0415  see above

    shutil.copytree(source, place / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    with contextlib.chdir(place):
        setup(
            name=PACKAGE,
            ext_modules=mypycify(
                ["--config-file=", "--ignore-missing-imports", *modules(Path(PACKAGE))], opt_level="2", multi_file=True
            ),
            script_args=["--quiet", "build_ext", "--build-lib", "lib"],
        )
    return sorted((place / "lib").rglob("*.so"))


class CompileHook(BuildHookInterface):
    """Adds the libraries to a wheel, beside the Python that they were made from."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the package is installed as its sources."""
        if version == "editable":
            return
        place = Path(self.root, "build", "compiled")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for library in compile_package(Path(self.root, "src", PACKAGE), place):
            build_data["force_include"][str(library)] = library.relative_to(place / "lib").as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
