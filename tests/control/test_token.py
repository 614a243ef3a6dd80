"""The operator's token: made once, private whatever was done to its file, and never taken from a foreign one."""

import pytest

from swarmgate.control.token import FILE, is_same, token
from swarmgate.core.errors import BadInput


def test_it_is_made_once_and_kept(tmp_path):
    first = token(tmp_path)
    assert len(first) >= 40
    assert token(tmp_path) == first
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    assert token(tmp_path / "other") != first


def test_a_file_that_others_may_read_is_made_private(tmp_path):
    first = token(tmp_path)
    (tmp_path / FILE).chmod(0o644)
    assert token(tmp_path) == first
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_links_and_rubbish_are_refused(tmp_path):
    (tmp_path / "elsewhere").write_text("x" * 50)
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="cannot be read"):
        token(tmp_path)
    (tmp_path / FILE).unlink()
    for rubbish in (b"", b"short", "ä".encode() * 50, b"\xff" * 50):
        (tmp_path / FILE).write_bytes(rubbish)
        with pytest.raises(BadInput, match="holds no token"):
            token(tmp_path)


def test_comparison():
    assert is_same("abc", "abc")
    assert not is_same("ab\udcff", "abc")
