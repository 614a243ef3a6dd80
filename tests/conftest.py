"""What every test shares: this folder on the import path, no clock in properties, and canaries that no test may leave behind."""

import pytest
from hypothesis import settings

import canaries

# A busy machine is no bug: what takes long is measured in benchmarks/, and a hang is ended by pytest-timeout.
settings.register_profile("swarmgate", deadline=None, print_blob=True)
settings.load_profile("swarmgate")


def pytest_configure(config):
    """Every log line is heard: what is silent by default may still say a secret to who asks for more."""
    config.option.log_level = config.option.log_level or "DEBUG"


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
