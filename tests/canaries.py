"""
No secret in what tests leave behind (reliability SC-01): every test's log at DEBUG, output and files are searched for canaries.

Keys in tests are canaries: `sk-canary-...` for providers' keys. A test that uses one and leaves it in a log, on a terminal or in
its folder fails, whatever it was about.
"""

import base64
import re
from pathlib import Path

CANARY = "sk-canary-"
WRITTEN_BY_TESTS = {".toml", ".py", ".pyc"}  # configurations, and programs that tests start
MOST_BYTES = 32 * 1024 * 1024


def spellings(word=CANARY):
    """How a key that begins so may stand somewhere: as it is, in hex, in base64 at any place."""
    raw = word.encode()
    yield from (raw, raw.hex().encode(), b"canary-")
    for shift in range(3):
        whole = base64.b64encode(b"x" * shift + raw)
        yield whole[4 if shift else 0 : len(whole) - 4]


FOUND = re.compile(b"|".join(re.escape(one) for one in spellings()))


def in_text(text):
    """The first canary of a text with what stands around it; empty if there is none."""
    return _shown(text.encode("utf-8", "replace"))


def in_folder(folder):
    """The same of the files in a folder: path and text."""
    left = MOST_BYTES
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in WRITTEN_BY_TESTS or path.is_symlink() or not path.is_file():
            continue
        size = path.stat().st_size
        if size <= left and (shown := _shown(path.read_bytes())):
            return f"{path.name}: {shown}"
        left -= min(left, size)
    return ""


def _shown(data):
    found = FOUND.search(data)
    return data[max(0, found.start() - 60) : found.end() + 30].decode("utf-8", "replace") if found else ""
