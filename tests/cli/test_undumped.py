"""SC-12: a process that keeps keys in memory can be neither dumped nor read by another one of its user."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from swarmgate.cli.undumped import leave_no_dump
prctl = ctypes.CDLL(None).prctl
before = prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE
leave_no_dump()
print(before, prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_sc_12_no_dump_is_left_and_nobody_looks_in():
    told = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=30)
    assert told.stdout.split() == ["1", "0", "0", "0"]
