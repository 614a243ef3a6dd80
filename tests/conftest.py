"""
What every test shares: this folder on the import path, no clock in properties, canaries that no test may leave behind.

The run ends with what was skipped, by reason, and, after worlds were simulated, with a table of the faults that struck calls.
"""

import collections

import pytest
from hypothesis import settings

import canaries
import struck
from swarmgate.core import kernel
from swarmgate.lab.sim import coverage

# A busy machine is no bug: what takes long is measured in benchmarks/, and a hang is ended by pytest-timeout.
settings.register_profile("swarmgate", deadline=None, print_blob=True)
settings.load_profile("swarmgate")


def pytest_configure(config):
    """Every log line is heard: what is silent by default may still say a secret to who asks for more."""
    config.option.log_level = config.option.log_level or "DEBUG"


def pytest_collection_modifyitems(items):
    """Where the gate is compiled, its objects take only what their types say."""
    if not kernel.__file__.endswith(".py"):
        needs_python = pytest.mark.skip(reason="replaces parts of the gate, which the compiled form does not allow")
        for item in items:
            if item.get_closest_marker("interpreted"):
                item.add_marker(needs_python)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that passed and left a canary behind did not pass (SC-01)."""
    report = yield
    if report.passed and call.when == "teardown":
        left = next((f"{name}: {shown}" for name, text in report.sections if (shown := canaries.in_text(text))), "")
        folder = item.funcargs.get("tmp_path")
        left = left or (canaries.in_folder(folder) if folder is not None else "")
        if left:
            report.outcome = "failed"
            report.longrepr = f"SC-01: a secret was left behind in {left}"
    return report


def pytest_sessionfinish(session):
    """A process of several tells the first one what its worlds met."""
    if struck.PAIRS and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["struck"] = struck.as_json()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """One of several processes has ended."""
    struck.add(getattr(node, "workeroutput", {}).get("struck", ()))


def pytest_terminal_summary(terminalreporter):
    """Why tests were skipped; how often each fault struck a call in each state, and the pairs that never happened (reliability 3)."""
    skipped = collections.Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if skipped:
        terminalreporter.section("skipped")
        for reason, count in skipped.most_common():
            terminalreporter.write_line(f"{count:4}  {reason.removeprefix('Skipped: ')}")
    if struck.PAIRS:
        terminalreporter.section("faults by the state of the calls they struck")
        for kind, *counts in coverage.table(struck.PAIRS):
            terminalreporter.write_line(f"{kind:16}" + "".join(f"{count:>12}" for count in counts))
        never = ", ".join(coverage.never(struck.PAIRS)) or "none"
        terminalreporter.write_line(f"of the pairs above that can happen, these never did: {never}")
