"""TI-04: what a provider keeps for an account is read by no other team: only where one team alone may call the target."""

import pytest
from stage import UNARY, whole
from wires import Bench

from swarmgate.core.scope import Scope, key_hash

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
"""
RED, RED2, BLUE, NONE = Scope("1", "red"), Scope("2", "red"), Scope("3", "blue"), Scope("4")
ELSEWHERE = Scope("5", "blue", targets=("other",))


def status(scopes, *, required=True, method="GET", path="/v1/files", key="sgk_0"):
    """What the first of these keys gets; 200 = it was sent, and answered."""
    bench = Bench(TEXT)
    keeper = bench.gate.ask_for_keys(required=required)
    keeper.replace(b"p", {key_hash(f"sgk_{at}", b"p"): scope for at, scope in enumerate(scopes)})
    line = f"x-swarmgate-key: {key}\r\n" if key else ""
    bench.client.data_received(f"{method} {path} HTTP/1.1\r\nhost: g\r\n{line}content-length: 0\r\n\r\n".encode())
    while bench.dialler.dials:
        bench.dialler.succeed()
        bench.dialler.opened[-1][0].data_received(whole(UNARY))
    written = b"".join(bench.wire.written)
    assert not bench.bugs
    assert (b"policy_shared_account" in written) == (int(written.split()[1]) == 403)
    return int(written.split()[1])


@pytest.mark.parametrize(
    ("scopes", "required", "expected"),
    [
        ((RED,), True, 200),
        ((RED, RED2), True, 200),
        ((RED, ELSEWHERE), True, 200),
        ((RED, BLUE), True, 403),
        ((RED, NONE), True, 403),
        ((NONE, RED), True, 403),
        ((NONE,), True, 200),
        ((RED,), False, 403),  # whoever has no key may call it, too
        ((NONE,), False, 200),
    ],
)
def test_ti_04_files_are_read_where_one_team_alone_calls_the_target(scopes, required, expected):
    assert status(scopes, required=required) == expected


def test_ti_04_who_has_no_key_reads_no_teams_files_either():
    assert status((), required=False, key="") == 200
    assert status((RED,), required=False, key="") == 403


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/images/generations", 200),
        ("POST", "/v1/audio/speech", 200),
        ("POST", "/v1/moderations", 200),
        ("POST", "/v1/files", 403),
        ("DELETE", "/v1/files/file-1", 403),
        ("GET", "/v1/batches", 403),
        ("POST", "/v1/batches/b1/cancel", 403),
        ("GET", "/v1/responses/resp_1", 403),
        ("GET", "/v1/chat/completions/c1", 403),
        ("GET", "/v1/messages/batches", 403),
        ("GET", "/v1/images/../files", 403),
        ("POST", "/v1/images/%252e%252e/files", 403),
        ("GET", "/v1/images/generations", 403),
        ("POST", "/v1/unheard/of", 403),
    ],
)
def test_ti_04_what_is_answered_and_forgotten_goes_and_what_is_kept_does_not(method, path, expected):
    assert status((RED, BLUE), method=method, path=path) == expected
