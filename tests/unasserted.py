"""
A plugin of pytest: the gate without its assertions, the tests with theirs (reliability HI-20): `pytest -p unasserted`.

Modules of swarmgate are compiled as `python -O` compiles them, but for its own test kit; processes that tests start run with -O.
"""

import dis
import subprocess
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

import pytest


class Loader(SourceFileLoader):
    """Compiles without assertions, and leaves no file behind for those who want them."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return compile(self.get_data(path), path, "exec", dont_inherit=True, optimize=1)


class Finder:
    """Finds the modules of swarmgate as ever."""

    @staticmethod
    def find_spec(name, path=None, target=None) -> ModuleSpec | None:
        if not f"{name}.".startswith("swarmgate.") or name.startswith("swarmgate.testing"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


if any(name.startswith("swarmgate") for name in sys.modules):
    raise RuntimeError("the gate is here already, with its assertions: ask for this plugin by -p")
sys.meta_path.insert(0, Finder)


def asserting(code) -> bool:
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_consts")]
    return any(one.opname == "LOAD_ASSERTION_ERROR" for one in dis.get_instructions(code)) or any(map(asserting, inner))


@pytest.fixture(scope="session", autouse=True)
def optimized():
    """Whatever a test starts has no assertions either; the modules that have some in their source have none here."""
    loaders = {name: module.__loader__ for name, module in sys.modules.items() if name.startswith("swarmgate.")}
    mine = {name: loader for name, loader in loaders.items() if isinstance(loader, Loader)}
    with_some = [name for name, it in mine.items() if asserting(SourceFileLoader.get_code(it, name))]
    if not with_some or any(asserting(mine[name].get_code(name)) for name in mine):
        pytest.fail("the gate's modules have their assertions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONOPTIMIZE", "1")
        subprocess.run([sys.executable, "-c", "assert False"], check=True)
        yield
