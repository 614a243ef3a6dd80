"""Tests of the SDK stand before a real gate: the stages of tests/gate and tests/gate/egress."""

import sys
from pathlib import Path

GATE = Path(__file__).parents[1] / "gate"
sys.path += [str(GATE), str(GATE / "egress")]
