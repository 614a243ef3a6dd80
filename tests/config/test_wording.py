"""Mistakes are told in words of the file, all of them at once, also those that others would hide."""

import pytest

from swarmgate.config import parse
from swarmgate.config.problems import FileError
from swarmgate.config.wording import plain

TARGET = '[targets.up]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = { a = "env:KEY" }\n'


def told(text):
    with pytest.raises(FileError) as caught:
        parse(text, {"KEY": "sk"}, "f")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("connections = 'x'", "f:1: connections: is no whole number; found 'x'"),
        ("connections = '500'", "f:1: connections: is no whole number; found '500'"),
        ("[teams.x]\nagents = ['a']\nreserve = true", "f:3: teams.x.reserve: is no whole number; found True"),
        ("[records]\nanswers = 1", "f:2: records.answers: is neither true nor false; found 1"),
        ("connections = 1.5", "f:1: connections: is no whole number; found 1.5"),
        ("connections = 0", "f:1: connections: must be at least 1; found 0"),
        ("connections = 1_000_001", "f:1: connections: must be at most 1000000; found 1000001"),
        ("routes = []", "f:1: routes: is no table; found []"),
        ("records = 5", "f:1: records: is no table; found 5"),
        ("[records]\nanswers = 'x'", "f:2: records.answers: is neither true nor false; found 'x'"),
        ("[tls]\ntarget_ca = 5", "f:2: tls.target_ca: is no path of a file; found 5"),
        ("[teams.x]\nagents = []", "f:2: teams.x.agents: must not be empty; found []"),
        ("[teams.x]\nagents = 'a'", "f:2: teams.x.agents: is no list; found 'a'"),
        ("[policies.x]\nhosts = [1]", "f:2: policies.x.hosts[0]: is no text; found 1"),
        ("[agents]\nlimits = '5 per 1s'", 'f:2: agents.limits: is no list; write ["5 per 1s"]'),
        ("[agents]\n[agents]", "f:2: file: is not TOML: Cannot declare [agents] twice"),
        ("[teams.a]\n[teams.a]", "f:2: file: is not TOML: Cannot declare [teams.a] twice"),
        ("[a", "f:1: file: is not TOML: Expected ']' at the end of a table declaration"),
        (
            "[teams.'Bio Logy']\nagents = ['a']",
            "f:1: teams.\"Bio Logy\": is no name; write small letters and digits, and . _ - between them; found 'Bio Logy'",
        ),
    ],
)
def test_a_mistake_in_words_of_the_file(text, words):
    assert told(text) == [words]


def test_a_key_s_wrong_name_is_told_and_not_what_stands_there():
    (words,) = told(TARGET.replace("a =", '"A b" ='))
    assert words.endswith("is no name; write small letters and digits, and . _ - between them")


def test_a_wrong_rung_is_named():
    (words,) = told(TARGET + '[routes]\nm = ["up/m", "small"]\n')
    assert words.startswith("f:5: routes.m: 'small' is no rung; write")


def test_a_limit_that_cannot_be_kept_is_told_beside_other_mistakes_of_its_target():
    text = TARGET + 'headrom = 5\nkey_limits = ["5 per 1s", "9 tokens per 1s", "x"]\nlimits = ["7 tokens per 1s"]\n'
    assert [line.partition(": ")[0] for line in told(text)] == ["f:4", "f:5", "f:5", "f:6"]
    assert "9 tokens per 1s: one call needs 16384" in told(text)[1]
    assert len(told(TARGET + 'limits = ["7 tokens per 1s"]\n')) == 1


def test_a_file_of_a_key_that_is_not_there(tmp_path):
    missing, binary = tmp_path / "missing", tmp_path / "binary"
    binary.write_bytes(b"\xff")
    assert told(TARGET.replace("env:KEY", f"file:{missing}"))[0].endswith("cannot be read: No such file or directory")
    assert told(TARGET.replace("env:KEY", f"file:{binary}"))[0].endswith("holds no text")


def test_what_is_not_known_here_keeps_its_words():
    assert plain("url_scheme", {}, "URL scheme should be x") == "URL scheme should be x"
    assert plain("string_pattern_mismatch", {"pattern": "^[ -~]*$"}, "") == "has characters that cannot stand there"
