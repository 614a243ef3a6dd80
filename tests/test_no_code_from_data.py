"""AZ-08, AZ-10: no text of others becomes code: nothing is evaluated, unpickled or built into SQL or Lua."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/swarmgate"
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {"pickle", "marshal", "shelve", "dill", "jinja2", "mako", "code", "codeop"}
CALLS = {"eval", "exec", "__import__"}
YAML = {"safe_load"}
SQL = {"text", "execute", "executemany", "executescript", "exec_driver_sql"}
PRAGMAS = {"PRAGMA user_version={}", "PRAGMA journal_size_limit={}"}  # numbers of ours; SQLite takes no parameter there


def name_of(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def built(node):
    """Whether a text is put together of others."""
    if isinstance(node, ast.JoinedStr):
        parts = (one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
        return "".join(parts) not in PRAGMAS
    is_format = isinstance(node, ast.Call) and name_of(node.func) in {"format", "replace", "join"}
    return is_format or isinstance(node, ast.BinOp)


def wrong(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            yield from names & MODULES
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            is_yaml = isinstance(node.func, ast.Attribute) and name_of(node.func.value) == "yaml"
            if (isinstance(node.func, ast.Name) and name in CALLS) or (is_yaml and name not in YAML):
                yield name
            if name in SQL and node.args and built(node.args[0]):
                yield ast.unparse(node)


def test_az_08_10_no_text_becomes_code():
    found = {str(file.relative_to(SOURCE)): list(wrong(ast.parse(file.read_text()))) for file in FILES}
    assert len(found) > 200
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "eval(x)",
        "yaml.load(x)",
        "link.execute(f'SELECT {x}')",
        "link.execute('SELECT ' + x)",
        "text('SELECT {}'.format(x))",
    ],
)
def test_what_would_be_wrong_is_found(text):
    assert list(wrong(ast.parse(text)))


def test_az_08_lua_takes_what_it_is_told_as_arguments():
    scripts = sorted(SOURCE.rglob("*.lua"))
    assert scripts
    for script in scripts:
        assert "loadstring" not in script.read_text()
        assert "load(" not in script.read_text()
    assert not [file for file in FILES if "redis.call" in file.read_text()]
