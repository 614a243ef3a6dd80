"""The search for canaries can fail: on a terminal, in a log line nobody asked for, in a file, in any spelling."""

import base64
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

import canaries

KEY = canaries.CANARY + "0f3c"
LONG = canaries.named(Path(__file__).parent)[0]
TESTS = {
    "prints": "def test_one(): print('Bearer ' + KEY)",
    "logs": "import logging\ndef test_one(): logging.getLogger('deep.inside').debug('key %s', KEY)",
    "keeps": "def test_one(tmp_path): (tmp_path / 'calls.log').write_text('x' * 999 + KEY)",
    "in a fixture": "import pytest\n@pytest.fixture\ndef f():\n    yield 1\n    print(KEY)\ndef test_one(f): pass",
    "quiet": "def test_one(tmp_path): (tmp_path / 'gate.toml').write_text('key = ' + KEY)",
}


@pytest.mark.parametrize(("name", "text"), TESTS.items(), ids=TESTS)
def test_whoever_leaves_a_canary_fails(tmp_path, name, text):
    here = Path(__file__).parent
    for file in ("conftest.py", "canaries.py", "struck.py"):
        shutil.copy(here / file, tmp_path)
    (tmp_path / "test_it.py").write_text(f"KEY = 'sk-' + 'canary-0f3c'\n{text}\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == (0 if name == "quiet" else 1), done.stdout
    assert ("SC-01" in done.stdout) == (name != "quiet")


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("key", [KEY, canaries.CANARY + LONG, LONG])
def test_every_spelling_is_found(at, key):
    raw = b"x" * at + key.encode()
    words = [raw, base64.b64encode(raw), base64.urlsafe_b64encode(raw), raw.hex().encode(), raw.hex().upper().encode()]
    words += ["".join(f"%{byte:02X}" for byte in raw).encode(), f"api_key={quote(raw)}".encode()]
    assert all(canaries.in_text(word.decode()) for word in words)
    assert not canaries.in_text("canaries are birds; base64 of nothing: c2st")


def test_eight_letters_of_a_key_that_tests_use_are_found_and_seven_are_not():
    assert all(canaries.in_text(f"sk-...{LONG[at : at + 8]}") for at in range(len(LONG) - 7))
    assert not canaries.in_text(f"sk-...{LONG[-7:]}")
