"""Stand-ins are asked through a real gate too: the stage of tests/gate."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "gate"))
