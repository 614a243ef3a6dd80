"""The operator's file: every mistake at once, at its line, with the nearest name; a key is never repeated."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.config import BaseUrl, Deployment, Listen, Quota, load, parse
from swarmgate.config.problems import FileError
from swarmgate.core.compiler import Unit

CANARY = "sk-canary-55"
GOOD = """\
listen = "127.0.0.1:9000"

[targets.openai]
base_url = "https://api.openai.com/v1"
keys = { first = "env:KEY" }
limits = ["500 per 60s"]
key_limits = ["200_000 tokens per 1m", "50 concurrent"]

[targets.local]
base_url = "http://[::1]:8000"
keys = { only = "env:KEY" }

[routes]
fast = "openai/gpt-4o-mini"
deep = ["openai/o3", "local/*"]
"""


def problems(text, environment=None):
    with pytest.raises(FileError) as caught:
        parse(text, {"KEY": CANARY} if environment is None else environment)
    return [tuple(problem) for problem in caught.value.problems]


def test_a_good_file():
    config = parse(GOOD, {"KEY": CANARY})
    target = config.targets["openai"]
    assert config.listen == Listen("127.0.0.1", 9_000)
    assert target.base_url == BaseUrl("https", "api.openai.com", 443, "/v1")
    assert target.limits == (Quota(500, Unit.REQUESTS, 60_000),)
    assert target.key_limits == (Quota(200_000, Unit.TOKENS, 60_000), Quota(50, Unit.CONCURRENT, 0))
    assert config.targets["local"].base_url == BaseUrl("http", "::1", 8_000, "")
    assert config.routes["deep"] == (Deployment("openai", "o3"), Deployment("local", "*"))
    assert target.keys["first"].get_secret_value() == CANARY
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    ("good", "bad", "line", "field", "reason"),
    [
        ("listen", "lisen", 1, "lisen", "nearest is 'listen'"),
        ('"127.0.0.1:9000"', '"0.0.0.0:9000"', 1, "listen", "not loopback"),
        ('"127.0.0.1:9000"', '"9000"', 1, "listen", "127.0.0.1:8787"),
        ('base_url = "https', 'base_ur = "https', 4, "targets.openai.base_ur", "nearest is 'base_url'"),
        ("https://api", "ftp://api", 4, "targets.openai.base_url", "https://host"),
        ("https://api", "https://u:p@api", 4, "targets.openai.base_url", "user or a password"),
        ('{ first = "env:KEY" }', "{}", 5, "targets.openai.keys", "must not be empty"),
        ('env:KEY" }\nlimits', 'env:NONE" }\nlimits', 5, "targets.openai.keys.first", "has no NONE"),
        ("500 per 60s", "500 cows per 60s", 6, "targets.openai.limits[0]", "'cows' is no unit"),
        ("500 per 60s", "500", 6, "targets.openai.limits[0]", "concurrent"),
        ("500 per 60s", "500 per 60", 6, "targets.openai.limits[0]", "number and its unit"),
        ("500 per 60s", "0 per 60s", 6, "targets.openai.limits[0]", "at least 1"),
        ("200_000 tokens", "20_000 tokens", 7, "targets.openai.key_limits[0]", "largest_tokens"),
        ('["500 per 60s"]', '["9 per 60s", "8 per 1m"]', 6, "targets.openai.limits", "two limits in requests per 60s"),
        ('["500 per 60s"]', '"500 per 60s"', 6, "targets.openai.limits", 'write ["500 per 60s"]'),
        ("50 concurrent", "50 concurrent per 1s", 7, "targets.openai.key_limits[1]", "no window"),
        ('"openai/gpt', '"openia/gpt', 14, "routes.fast", "nearest is 'openai'"),
        ('"openai/gpt-4o-mini"', '"gpt-4o-mini"', 14, "routes.fast", "target/model"),
        ("[targets.local]", "[target.local]", 9, "target", "nearest is 'targets'"),
        ("fast =", '"f*t" =', 14, "routes.f*t", "in its middle"),
        ('["openai/o3", "local/*"]', "[]", 15, "routes.deep", "empty ladder"),
    ],
)  # fmt: skip
def test_one_mistake_is_one_problem(good, bad, line, field, reason):
    assert good in GOOD
    found = problems(GOOD.replace(good, bad))
    assert (line, field) in [problem[:2] for problem in found]
    assert any(reason in problem[2] for problem in found)


@pytest.mark.parametrize(
    ("windows", "field", "reason"),
    [
        ("{ gpt-4o = 8_192 }", "targets.openai.windows.gpt-4o", "nearest is 'gpt-4o-mini'"),
        ('{ "o3" = 0 }', "targets.openai.windows.o3", "must be at least 1; found 0"),
        ('{ "o3" = "8k" }', "targets.openai.windows.o3", "is no whole number; found '8k'"),
        ("8_192", "targets.openai.windows", "is no table; found 8192"),
    ],
)
def test_a_wrong_window_is_told_at_its_line(windows, field, reason):
    found = problems(GOOD.replace("limits =", f"windows = {windows}\nlimits =", 1))
    assert [(line, where) for line, where, _ in found] == [(6, field)]
    assert reason in found[0][2]


def test_windows_of_models_that_a_route_may_lead_to_are_taken():
    text = GOOD.replace("limits =", 'windows = { "o3" = 9, "*" = 8_192 }\nlimits =', 1)
    config = parse(text + "[targets.local.windows]\nany-that-is-asked-for = 4_096\n", {"KEY": CANARY})
    assert [config.targets["openai"].window(model) for model in ("o3", "gpt-4o-mini")] == [9, 8_192]
    assert [config.targets["local"].window(model) for model in ("any-that-is-asked-for", "o3")] == [4_096, 0]


def test_every_limit_that_cannot_be_kept_is_told():
    text = GOOD.replace('"500 per 60s"', '"0 per 60s", "9 concurrent", "3 tokens per 1s"').replace("200_000", "20_000")
    assert [problem[:2] for problem in problems(text)] == [
        (6, "targets.openai.limits[0]"),
        (6, "targets.openai.limits[2]"),
        (7, "targets.openai.key_limits[0]"),
    ]


@pytest.mark.parametrize("headroom", ["120", "0", '"80"', "80.5", "[80]"])
def test_a_headroom_that_is_none_hides_no_limit_that_cannot_be_kept(headroom):
    text = GOOD.replace("limits =", f"headroom = {headroom}\nlimits =", 1).replace("500 per", "0 per")
    told = [problem[1] for problem in problems(text)]
    assert told == ["targets.openai.headroom", "targets.openai.limits[0]"]


def test_all_mistakes_are_told_at_once():
    text = GOOD.replace("listen", "lisen").replace("500 per", "many per").replace('"local/*"', '"remote/*"')
    assert [problem[:2] for problem in problems(text)] == [
        (1, "lisen"),
        (6, "targets.openai.limits[0]"),
        (15, "routes.deep"),
    ]


@pytest.mark.parametrize(
    "keys",
    [
        f'{{ first = "{CANARY}" }}',
        f'{{ first = "env:{CANARY}" }}',
        f'["{CANARY}"]',
        f'"{CANARY}"',
        f'{{ first = ["{CANARY}"] }}',
        f'{{ first = {{ value = "{CANARY}" }} }}',
    ],
)
def test_a_key_that_was_written_into_the_file_is_refused_and_not_repeated(keys):
    with pytest.raises(FileError) as caught:
        parse(GOOD.replace('{ first = "env:KEY" }', keys), {"KEY": "sk-x"})
    assert CANARY not in str(caught.value)


def test_a_key_in_a_file_of_its_own(tmp_path):
    (tmp_path / "key").write_text(f"{CANARY}\n")
    config = parse(GOOD.replace("env:KEY", f"file:{tmp_path}/key"), {})
    assert config.targets["openai"].keys["first"].get_secret_value() == CANARY
    (tmp_path / "key").write_text("two words")
    found = problems(GOOD.replace("env:KEY", f"file:{tmp_path}/key"), {})
    assert "does not hold one key" in found[0][2]
    assert "two words" not in str(found)


def test_several_targets_need_routes():
    text = GOOD.partition("[routes]")[0]
    assert problems(text)[0][1:] == ("routes", "is missing: with several targets each model needs a ladder")


@pytest.mark.parametrize("targets", ["", "[targets]\n"])
def test_routes_without_any_target_are_a_mistake_of_each_route(targets):
    told = problems(f'{targets}[routes]\n"*" = ["x/y"]\n"m" = "z/y"\n')
    first = 2 + bool(targets)
    assert told == [
        (first, "routes.*", "'x' is no target; there is none: write [targets.x]"),
        (first + 1, "routes.m", "'z' is no target; there is none: write [targets.z]"),
    ]


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "c.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(FileError, match="not UTF-8"):
        load(file, {})
    file.write_text("a = = 1")
    with pytest.raises(FileError, match="not TOML"):
        load(file, {})


@pytest.mark.parametrize("rest", ["", "\n", "\n\n"])
@pytest.mark.parametrize("end", ["limits = [", '"never closed', "[routes", "listen"])
def test_a_text_that_breaks_off_is_told_at_its_last_line(end, rest):
    text = f"{GOOD}{end}{rest}"
    assert [where[:2] for where in problems(text)] == [(len(GOOD.splitlines()) + 1, "file")]


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=2)
tables = st.recursive(leaves, lambda inner: st.dictionaries(st.text(max_size=9), inner, max_size=3), max_leaves=9)


@given(st.text(max_size=100) | st.dictionaries(st.sampled_from(["listen", "targets", "routes"]), tables).map(repr))
def test_any_text_is_a_configuration_or_problems(text):
    with contextlib.suppress(FileError):
        assert parse(text, {}).listen


@given(st.sampled_from([line for line in GOOD.splitlines() if line]))
def test_a_lost_line_is_never_another_configuration_in_silence(line):
    text = GOOD.replace(f"{line}\n", "")
    with contextlib.suppress(FileError):
        assert parse(text, {"KEY": CANARY}) != parse(GOOD, {"KEY": CANARY})


def test_input_and_output_may_be_limited_apart():
    apart = '["400_000 input tokens per 60s", "90_000 output_tokens per 1m"]'
    text = GOOD.replace('["200_000 tokens per 1m", "50 concurrent"]', apart)
    assert parse(text + "\n", {"KEY": CANARY}).targets["openai"].key_limits == (
        Quota(400_000, Unit.INPUT_TOKENS, 60_000),
        Quota(90_000, Unit.OUTPUT_TOKENS, 60_000),
    )
    (told,) = problems(text.replace("90_000 output", "8_000 output"))
    assert told[1] == "targets.openai.key_limits[1]"
    assert "largest_output says how large the largest is" in told[2]
    (told,) = problems(text.replace("400_000 input", "4_000 input"))
    assert "largest_tokens says how large the largest is" in told[2]
    (told,) = problems(text.replace("400_000 input tokens", "400_000 inputs"))
    assert "nearest is 'input_tokens'" in told[2]


@pytest.mark.parametrize("table", ["cache", "store", "router_settings"])
def test_llm_gateways_33_nothing_is_switched_off_by_a_table_that_nobody_reads(table):
    (found,) = problems(GOOD + f'[{table}]\ntype = "redis-semantic"\n')
    assert found[1] == table
    assert "is unknown" in found[2]
