"""Tests of the SDK stand before a real gate: the stage of tests/gate."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "gate"))
