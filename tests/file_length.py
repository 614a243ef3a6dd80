"""Fails when a source file grows over its budget: a file is an idea, not a drawer."""

import subprocess
import sys
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
    print("\n".join(over) or "file lengths: all within budget")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
