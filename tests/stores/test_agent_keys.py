import sqlite3

import pytest

from swarmgate.core.errors import BadInput
from swarmgate.core.scope import SHOWS_KEY, Scope, key_hash
from swarmgate.stores.sql.agent_keys import FILE, AgentKeys

NOW_MS = 1_800_000_000_000
WANTED = Scope("", "lab", ("openai",), ("gpt-*",))


@pytest.fixture
def keys(tmp_path):
    opened = AgentKeys.opened(tmp_path)
    yield opened
    opened.close()


def test_sc_05_a_key_is_in_force_by_its_hash_and_stands_nowhere(keys, tmp_path):
    key = keys.create("reader", WANTED, NOW_MS)
    (scope,) = keys.in_force(NOW_MS).values()
    assert keys.in_force(NOW_MS)[key_hash(key, keys.pepper)] == scope
    assert (scope.team, scope.targets, scope.models) == ("lab", ("openai",), ("gpt-*",))
    assert key.split("_")[1] == scope.id
    assert SHOWS_KEY.match(key.encode())
    assert key.split("_", 2)[2].encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert "hash" not in keys.listed()[0]
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_two_keys_are_never_alike(keys):
    made = {keys.create("reader", WANTED, NOW_MS) for _ in range(50)}
    assert len(made) == 50
    assert len(keys.in_force(NOW_MS)) == 50


def test_a_rotated_key_overlaps_with_its_successor(keys):
    old = keys.create("reader", WANTED, NOW_MS)
    new = keys.rotate(old.split("_")[1], 60_000, NOW_MS)
    both = {key_hash(key, keys.pepper) for key in (old, new)}
    assert set(keys.in_force(NOW_MS + 59_999)) == both
    assert set(keys.in_force(NOW_MS + 60_000)) == {key_hash(new, keys.pepper)}
    assert keys.in_force(NOW_MS)[key_hash(new, keys.pepper)].models == ("gpt-*",)


def test_lg_11_a_successor_has_the_caps_of_its_line(keys):
    capped, plain = WANTED._replace(limits=("5 USD per 86400s",)), keys.create("plain", WANTED, NOW_MS)
    old = keys.create("reader", capped, NOW_MS)
    new = keys.rotate(keys.rotate(old.split("_")[1], 0, NOW_MS).split("_")[1], 0, NOW_MS)
    scopes = keys.in_force(NOW_MS)
    heir = scopes[key_hash(new, keys.pepper)]
    assert (heir.limits, heir.capped_as) == (capped.limits, old.split("_")[1])
    assert heir.id == new.split("_")[1]
    assert scopes[key_hash(plain, keys.pepper)].capped_as == ""
    assert keys.listed()[-1]["limits"] == ["5 USD per 86400s"]


def test_a_file_of_the_first_schema_is_brought_to_this_one(tmp_path):
    columns = "id, hash, name, team, targets, models"
    with sqlite3.connect(tmp_path / FILE) as link:
        made = ", made_ms BIGINT, expires_ms BIGINT DEFAULT 0, revoked_ms BIGINT DEFAULT 0"
        link.execute(f"CREATE TABLE keys ({columns.replace(',', ' VARCHAR,')} VARCHAR{made})")
        link.execute("CREATE TABLE pepper (value VARCHAR PRIMARY KEY)")
        link.execute("INSERT INTO pepper VALUES ('aa')")
        values = ("a1", key_hash("sgk_a1_x", b"\xaa"), "reader", "lab", '["*"]', '["*"]')
        link.execute(f"INSERT INTO keys ({columns}, made_ms) VALUES (?, ?, ?, ?, ?, ?, 1)", values)
        link.execute("PRAGMA user_version=1")
    link.close()
    for _ in range(2):
        opened = AgentKeys.opened(tmp_path)
        assert opened.in_force(NOW_MS)[key_hash("sgk_a1_x", b"\xaa")].team == "lab"
        assert opened.listed()[0]["limits"] == []
        opened.close()


def test_a_revoked_key_is_out_and_stays_listed(keys):
    key = keys.create("reader", WANTED, NOW_MS)
    keys.revoke(key.split("_")[1], NOW_MS + 1)
    assert keys.in_force(NOW_MS) == {}
    keys.revoke(key.split("_")[1], NOW_MS + 9)
    assert [row["revoked_ms"] for row in keys.listed()] == [NOW_MS + 1]
    with pytest.raises(BadInput, match="no longer good"):
        keys.rotate(key.split("_")[1], 0, NOW_MS + 2)


def test_the_pepper_outlives_a_restart(keys, tmp_path):
    key = keys.create("reader", WANTED, NOW_MS)
    again = AgentKeys.opened(tmp_path)
    assert key_hash(key, again.pepper) in again.in_force(NOW_MS)
    again.close()


@pytest.mark.parametrize(
    ("act", "field"),
    [
        (lambda keys: keys.create("", WANTED, NOW_MS), "name"),
        (lambda keys: keys.create("x\x1b[2J", WANTED, NOW_MS), "name"),
        (lambda keys: keys.create("x", WANTED._replace(expires_ms=1), NOW_MS), "expires_in"),
        (lambda keys: keys.revoke("' OR 1=1 --", NOW_MS), "id"),
        (lambda keys: keys.rotate("none", 0, NOW_MS), "id"),
    ],
)
def test_bad_input_names_its_field_and_changes_nothing(keys, act, field):
    with pytest.raises(BadInput) as caught:
        act(keys)
    assert caught.value.field == field
    assert keys.listed() == []
