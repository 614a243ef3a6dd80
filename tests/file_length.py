"""
Fails when a source file grows over its budget, for a file is an idea and not a drawer, or when two files of the tests have
one name: pytest would take one for the other.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

LIMIT_LINES = 400
LIMIT_HTTP1_LINES = 200


def main() -> int:
    """Print each file over its budget; exit code 1 if there is one."""
    listed = subprocess.run(["git", "ls-files", "*.py", "*.lua"], capture_output=True, text=True, check=True).stdout
    over = []
    for name in listed.split():
        path = Path(name)
        if not path.exists():
            continue
        limit = LIMIT_HTTP1_LINES if name.startswith("src/swarmgate/http1/") else LIMIT_LINES
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > limit:
            over.append(f"{name}: {lines} lines, at most {limit}")
    names = Counter(Path(name).name for name in listed.split() if name.startswith("tests/"))
    twice = [f"{name}: {count} files of the tests have this name" for name, count in names.items() if count > 1]
    over += [line for line in twice if not line.startswith("conftest.py")]
    print("\n".join(over) or "file lengths: all within budget")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
