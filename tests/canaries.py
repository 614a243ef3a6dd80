"""
No secret in what tests leave behind (reliability SC-01): every test's log at DEBUG, output and files are searched for canaries.

Keys in tests are canaries: `sk-canary-...` for providers' keys. A test that uses one and leaves it in a log, on a terminal or in
its folder fails, whatever it was about: the key in any spelling, or eight letters of what follows its beginning.
"""

import base64
import re
from pathlib import Path
from urllib.parse import quote

CANARY = "sk-canary-"
SLICE = 8  # letters of a key that tell too much
WRITTEN_BY_TESTS = {".toml", ".py", ".pyc"}  # configurations, and programs that tests start
MOST_BYTES = 32 * 1024 * 1024


def spellings(secret, slice_letters=0):
    """How a secret may stand somewhere, in hex, percent-encoded and base64 at any place; of it as it is, so many letters do."""
    raw = secret.encode()
    yield from {raw, quote(raw, safe="").encode()}
    yield from (raw[at : at + slice_letters] for at in range(len(raw) - slice_letters + 1) if slice_letters)
    for form in (raw.hex(), "".join(f"%{byte:02x}" for byte in raw)):
        yield from {form.encode(), form.upper().encode()}
    for shift in range(3):
        whole = base64.b64encode(b"x" * shift + raw)
        sure = whole[4 if shift else 0 : len(whole) - 4]
        yield from {sure, sure.replace(b"+", b"-").replace(b"/", b"_")}


def named(folder):
    """What follows the beginning of the keys that tests in a folder use, where it is long: no digest has such letters."""
    found = (re.findall(rf"{CANARY}([0-9a-z]{{{SLICE},}})", path.read_text()) for path in Path(folder).rglob("*.py"))
    return sorted({tail for tails in found for tail in tails})


NEEDLES = (
    b"canary-",
    *spellings(CANARY),
    *(one for tail in named(Path(__file__).parent) for one in spellings(tail, SLICE)),
)


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
    at = next((at for one in NEEDLES if (at := data.find(one)) >= 0), -1)
    return data[max(0, at - 60) : at + 50].decode("utf-8", "replace") if at >= 0 else ""
