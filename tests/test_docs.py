"""
The documents say what the code does: commands, targets of make, scenarios, codes, words, files, links, the example.

`python tests/test_docs.py` writes the tables of docs/reasons.md anew.
"""

import ast
import gzip
import re
import tomllib
from pathlib import Path

import pytest
import typer

from swarmgate import config, wiring
from swarmgate.cli import app
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.core.target_errors import TARGET_REASONS
from swarmgate.gate.identity import NAMES
from swarmgate.http1.refusals import REQUEST_ROWS
from swarmgate.lab.scenario_file import shipped

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/swarmgate"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs/guide.md").read_text()
REASONS = ROOT / "docs/reasons.md"
GROUP = typer.main.get_command(app)
COMMANDS = {name: GROUP.get_command(None, name) for name in GROUP.list_commands(None)}

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
FILE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|lua|toml|md|json))`")
WORD = re.compile(r"^\| `(\w+)` \| .+\. \| `([\w./]+)` \|$", re.MULTILINE)
CHECK = re.compile(r"^\| ([A-Z]{2}-\d\d) \| [^|]+ \| ([^|]*) \| ([^|]*)\|$", re.MULTILINE)
NAMED_TEST = re.compile(r"`((?:tests|src/swarmgate/testing)/[\w/]+\.py)::(\w+)`")
PRIVATE = re.compile(r"(?<![\w.-])/work\b|\.\./shared\b")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def fenced(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def prose(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def plain_text(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")


def section(page, title):
    return page.split(f"# {title}\n")[1].split("\n#")[0]


def first_cells(text):
    """What stands as code in the first column of tables."""
    cells = "".join(re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE))
    return set(re.findall(r"`([^`]+)`", cells))


def table(*rows):
    head, *others = rows
    return "\n".join(
        [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *[f"| {' | '.join(row)} |" for row in others]]
    )


def generated():
    """The tables of docs/reasons.md by the mark before each."""
    return {
        "reasons": table(("Code", "What it means"), *[(f"`{one.value}`", SENTENCES[one]) for one in Reason]),
        "heads": table(
            ("Code", "Status", "About", "What is wrong"),
            *[(f"`caller_{row.name}`", str(row.status), row.field, row.sentence) for row in REQUEST_ROWS],
        ),
        "targets": table(
            ("Code", "About", "What is wrong"),
            *[(f"`{code}`", field, sentence) for code, (field, sentence) in TARGET_REASONS.items()],
        ),
    }


def current(page):
    """The page with its tables as the code has them."""
    for mark, rows in generated().items():
        before, rest = page.split(f"<!-- {mark} -->\n")
        page = f"{before}<!-- {mark} -->\n\n{rows}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return page


def anchors(page):
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_tables_of_codes_are_current():
    assert REASONS.read_text() == current(REASONS.read_text()), "python tests/test_docs.py writes them anew"


def test_every_command_is_told():
    assert set(re.findall(r"^- `swarmgate ([\w-]+)", GUIDE, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_options_of_a_command_are_told_and_no_others(name):
    (told,) = re.findall(rf"^- `swarmgate {name}\b([^`]*)`", GUIDE, re.MULTILINE)
    command = COMMANDS[name]
    told_commands = [one for one in getattr(command, "commands", {"": command}).values() if not one.hidden]
    options = {o for one in told_commands for param in one.params for o in param.opts if o.startswith("-")}
    assert set(re.findall(r"--?\w[\w-]*", told)) == options


def test_every_target_of_make_is_told():
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    told = section((ROOT / "docs/development.md").read_text(), "Commands")
    assert {f"make {target}" for target in targets} == first_cells(told)


def test_every_shipped_scenario_is_told():
    assert first_cells(section(GUIDE, "Scenarios")) == set(shipped())


def test_every_word_that_callers_may_say_is_told():
    assert first_cells(section(GUIDE, "What callers may say")) == set(NAMES)


def test_the_example_of_a_configuration_loads():
    text = "\n".join(fenced(GUIDE, "toml"))
    read = config.parse(text, dict.fromkeys(re.findall(r"env:(\w+)", text), "a-key"))
    assert set(wiring.plan(read).ladders.names) == set(tomllib.loads(text)["routes"])


@pages
def test_examples_in_python_are_python(page):
    for block in fenced(page.read_text(), "python"):
        ast.parse(block)


@pages
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(prose(page)):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pages
def test_files_that_are_named_are_there(page):
    for name in FILE.findall(prose(page)):
        assert any((folder / name).exists() for folder in (ROOT, SOURCE, page.parent)), name


def test_every_word_of_the_glossary_stands_in_its_file():
    rows = WORD.findall((ROOT / "docs/glossary.md").read_text())
    assert len(rows) > 200
    assert [row for row in rows if not re.search(rf"\b{row[0]}\b", (SOURCE / row[1]).read_text())] == []


def test_every_check_stands_once_and_names_tests_that_exist():
    page = (ROOT / "docs/checks.md").read_text()
    rows = CHECK.findall(page)
    assert [name for name, _, _ in rows] == re.findall(r"^\| ([A-Z]{2}-\d+)", page, re.MULTILINE), "four columns each"
    assert len({name for name, _, _ in rows}) == len(rows)
    assert [name for name, tests, why in rows if not NAMED_TEST.search(tests) and not why.strip()] == [], (
        "a test or why not"
    )
    named = NAMED_TEST.findall(page)
    assert [
        one
        for one in named
        if not re.search(rf"^ *(?:async )?def {one[1]}\(", (ROOT / one[0]).read_text(), re.MULTILINE)
    ] == []


def test_every_folder_of_the_package_is_in_the_tree():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    filled = {name for name in folders if len(list((SOURCE / name).rglob("*.py"))) > 1}
    assert filled <= set(re.findall(r"^  (\w+)/ ", README, re.MULTILINE)) <= folders


def test_nothing_that_is_shipped_names_the_place_where_it_was_made():
    shipped_files = [*ROOT.glob("*"), *(ROOT / ".ci").glob("*"), *(ROOT / "docs").rglob("*"), *SOURCE.rglob("*")]
    texts = [path for path in shipped_files if path.is_file() and path.suffix != ".pyc" and path.name != ".git"]
    assert [path for path in texts if PRIVATE.search(plain_text(path))] == []


if __name__ == "__main__":
    REASONS.write_text(current(REASONS.read_text()))
