"""
What type checkers accept and compiled code does not keep, in the modules that are compiled (hatch_build.py).

`make test-compiled` finds such places by what fails there; here they are found without a compiler, by how they are written.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/swarmgate"


def said(name):
    """What hatch_build.py says under that name; to import it needs hatchling."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node.value
    raise LookupError(name)


FILES = sorted(path for pattern in ast.literal_eval(said("COMPILED")) for path in SOURCE.glob(pattern))


def one_name_for_errors_of_several_types(function):
    """A name has one type in a compiled function: the second error is refused where it is caught."""
    types = {}
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler) and node.name:
            types.setdefault(node.name, set()).add(ast.unparse(node.type))
    return [name for name, several in types.items() if len(several) > 1]


def believed_after_it_was_set(function):
    """Of `self.a = b` a checker believes that `self.a` is of b's type, whatever was called since: None is refused."""
    found = []
    set_at = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    set_at.setdefault((ast.unparse(target), node.value.id), node.lineno)
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            pair = ast.unparse(node.left), ast.unparse(node.comparators[0])
            if set_at.get(pair, node.lineno) < node.lineno:
                found.append(" is ".join(pair))
    return found


def final_pairs_of_floats(node):
    """mypyc 2.4 takes a final tuple that begins with a float for one that was never set."""
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Tuple) or not node.value.elts:
        return []
    first = node.value.elts[0]
    is_float = isinstance(first, ast.Constant) and isinstance(first.value, float)
    return [ast.unparse(node.target)] if is_float and "Final" in ast.unparse(node.annotation) else []


def frozen_sets_and_keys(node):
    """A frozenset and the keys of a mapping are a set, whatever the stubs say: write the keys first."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub | ast.BitXor):
        return []
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    return [f"{left} & {right}"] if right.endswith(".keys()") and left.lstrip("_").isupper() else []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_is_written_that_compiled_code_does_not_keep(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        found += final_pairs_of_floats(node) + frozen_sets_and_keys(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += one_name_for_errors_of_several_types(node) + believed_after_it_was_set(node)
    assert found == []


BAD = """
_PAIR: Final = (0.5, 15.0)
def serve(self, head, fields):
    self.head = head
    try:
        self.handler.on_whole(NAMED & fields.keys())
    except KeyError as bad:
        pass
    except ValueError as bad:
        pass
    return self.head is head
"""


def test_all_of_that_is_found():
    tree = ast.parse(BAD)
    function = tree.body[1]
    assert one_name_for_errors_of_several_types(function) == ["bad"]
    assert believed_after_it_was_set(function) == ["self.head is head"]
    assert [name for node in ast.walk(tree) for name in final_pairs_of_floats(node)] == ["_PAIR"]
    assert [name for node in ast.walk(tree) for name in frozen_sets_and_keys(node)] == ["NAMED & fields.keys()"]
