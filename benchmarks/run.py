"""Runs every benchmark of this folder, one after another: python benchmarks/run.py [--quick]"""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """The number of benchmarks that failed."""
    failed = 0
    for script in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"== {script.name}", flush=True)
        failed += subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
