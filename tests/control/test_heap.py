"""The data process keeps the pages of long bodies: they are not given back and asked for again with each request."""

import platform
import subprocess
import sys

import pytest

SETTLED = "from swarmgate.control import heap; heap.settle()"
BODIES = """
import resource

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def serve():
    for _ in range(40):
        bodies = [bytearray(130_000) for _ in range(64)]
        del bodies

serve()
before = faults()
serve()
print(faults() - before)
"""


def faults_of(*lines):
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep their memory otherwise")
def test_long_bodies_come_and_go_without_page_faults():
    assert faults_of(BODIES) > 10_000  # else this shows nothing
    assert faults_of(SETTLED, BODIES) < 1_000
