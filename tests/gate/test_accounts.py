"""Keys that their provider counts as one: they share its limits and rest together (design 4: Keys; complaint 24)."""

from types import SimpleNamespace

import pytest
from stage import UNARY, warm, whole
from test_front import request
from wires import Bench

from swarmgate.config import parse
from swarmgate.config.problems import FileError
from swarmgate.control.reload import Reload

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { a = "env:KEY", b = "env:KEY", c = "env:KEY" }
key_limits = ["%s"]
accounts = { lab = ["a", "b"] }
"""
MANY, FEW = "9_000 per 1s", "2 per 60s"
LIMITED = whole({"error": {"message": "Rate limit"}}, "429 Too Many Requests", "retry-after: 60\r\n")


def ask(bench, answer=None):
    """One call that does not wait; the keys of its attempts."""
    before = len(bench.wire.written)
    bench.client.data_received(request("/v1/responses", b'{"model":"m"}', "POST", "x-swarmgate-wait: 0s"))
    keys = []
    while bench.gate.pump.open:
        while bench.dialler.dials:
            bench.dialler.succeed()
        (call,) = bench.gate.pump.open
        keys.append(call.route.key)
        end = next(end for end, wire in bench.dialler.opened if wire.written)
        for _, wire in bench.dialler.opened:
            wire.written.clear()
        end.data_received(LIMITED if answer == keys[-1] else whole(UNARY))
    assert len(bench.wire.written) > before
    return keys


def bench(limit, text=TEXT):
    made = Bench(text % limit)
    warm(made.gate)
    return made


def test_they_share_the_limits_of_a_key():
    made = bench(FEW)
    served = [key for _ in range(8) for key in ask(made)]
    assert len(served) == 4  # two of the account, two of the key that stands alone
    assert served.count("c") == 2
    assert {"a", "b"} & set(served)
    assert [name for name in made.gate.published if name.startswith("up/")] == [
        "up/lab: requests per 60s",
        "up/c: requests per 60s",
    ]


def test_without_an_account_each_key_has_its_own():
    made = bench(FEW, TEXT.partition("accounts")[0])
    assert len([key for _ in range(8) for key in ask(made)]) == 6


def test_llm_gateways_24_a_refusal_of_one_key_is_one_of_its_account():
    made = bench(MANY)
    for _ in range(9):
        (first, *others) = ask(made, "a")
        if first == "a":
            break
    assert others == ["c"]  # never its sister
    assert {key for _ in range(9) for key in ask(made)} == {"c"}


def test_a_reload_that_takes_keys_apart_lets_them_rest_apart():
    made = bench(MANY)
    before, after = (parse(text % MANY, {"KEY": "sk-1"}) for text in (TEXT, TEXT.partition("accounts")[0]))
    Reload(before, made.gate, SimpleNamespace(reloaded=lambda *_: None), lambda _said: None).do(lambda: after)
    warm(made.gate)
    for _ in range(9):
        if ask(made, "a")[0] == "a":
            break
    assert "b" in {key for _ in range(9) for key in ask(made)}


@pytest.mark.parametrize(
    ("accounts", "words"),
    [
        ('{ lab = ["a", "d"] }', "5: targets.up.accounts.lab[1]: 'd' is no key; one of a, b, c"),
        ('{ lab = ["a"], two = ["b", "a"] }', "5: targets.up.accounts.two[1]: 'a' stands twice"),
        ('{ c = ["a", "b"] }', "5: targets.up.accounts.c: is the name of a key that stands elsewhere"),
        ("{ lab = [] }", "5: targets.up.accounts.lab"),
    ],
)
def test_accounts_that_cannot_be(accounts, words):
    text = (TEXT % MANY).replace('{ lab = ["a", "b"] }', accounts).lstrip()
    with pytest.raises(FileError) as caught:
        parse(text, {"KEY": "sk"})
    assert words in str(caught.value)
