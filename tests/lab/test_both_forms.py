"""The compiled form is the same program: a world of the simulator runs in it as in Python, event by event."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swarmgate.core import kernel
from swarmgate.lab.scenario_file import shipped

SOURCES = Path(__file__).parents[2] / "src"
RUN = "import sys; from swarmgate.cli import main; from swarmgate.core import kernel; print(kernel.__file__, file=sys.stderr); main()"


def played(name, **environment):
    """Where its kernel lies, and what a short run of a scenario says."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "sim", name, "--seed", "7", "--seconds", "20", "--agents", "60", "--json"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout, done.stderr  # so short a run may miss a goal; that is no matter here
    return done.stderr.splitlines()[0], json.loads(done.stdout)


@pytest.mark.skipif(kernel.__file__.endswith(".py"), reason="needs the compiled form: make test-compiled")
@pytest.mark.parametrize("name", shipped())
def test_a_seed_gives_the_same_run_in_both_forms(name):
    (here, compiled), (there, plain) = played(name), played(name, PYTHONPATH=str(SOURCES))
    assert here == kernel.__file__
    assert there == str(SOURCES / "swarmgate" / "core" / "kernel.py")
    for what in ("trace_hash", "violations", "targets", "goodput_ratio"):
        assert compiled[what] == plain[what], what
