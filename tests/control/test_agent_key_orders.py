"""What an operator may say of a new agent key."""

import asyncio
from contextlib import closing

import pytest

from swarmgate.control.agent_keys import KeyOffice
from swarmgate.control.link import LinkLost
from swarmgate.core.errors import BadInput
from swarmgate.core.scope import NOBODY
from swarmgate.stores.journal.audit import FILE, Audit
from swarmgate.stores.sql.agent_keys import AgentKeys


def create(folder, targets_known=(), **said):
    async def tell(_order, _said):
        return None

    with closing(AgentKeys.opened(folder)) as keys:
        return asyncio.run(KeyOffice(keys, Audit(folder), tell, lambda: targets_known).create({"name": "n", **said}))[
            "key"
        ]


def test_a_team_has_a_name_like_the_configurations(tmp_path):
    assert create(tmp_path, team="red-2.lab").startswith("sgk_")


@pytest.mark.parametrize("team", ["red a", "a: b", "Red", "é", "x" * 41, "\x1b[31m", "-a", 3])
def test_a_team_that_would_read_as_part_of_another_name_is_refused(tmp_path, team):
    with pytest.raises(BadInput) as refused:
        create(tmp_path, team=team)
    assert refused.value.field == "team"


@pytest.mark.parametrize(
    "targets", [["openai"], ["*"], ["open*"], ["api.x.org"], ["*.arxiv.org", "localhost"], ["::1"], []]
)
def test_targets_hosts_and_patterns_are_taken(tmp_path, targets):
    assert create(tmp_path, ("openai", "anthropic"), targets=targets)


@pytest.mark.parametrize(
    ("word", "near"),
    [("openi", "nearest is 'openai'"), ("antropic", "nearest is 'anthropic'"), ("zzz", "one of anthropic, openai")],
)
def test_a_word_that_is_no_target_is_refused_with_the_nearest(tmp_path, word, near):
    with pytest.raises(BadInput) as refused:
        create(tmp_path, ("openai", "anthropic"), targets=["openai", word])
    assert refused.value.field == "targets"
    assert word in refused.value.reason
    assert near in refused.value.reason


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ("5 USD per 1d", "limits"),
        (["5 USD"], "limits"),
        (["5 USD per 1d", "6 USD per 1d"], "limits"),
        ([["5 USD per 1d"]], "limits"),
        (["1 per 1s"] * 9, "limits"),
        (["0 concurrent"], "limits"),
    ],
)
def test_caps_that_cannot_be_kept_are_refused(tmp_path, limits, field):
    with pytest.raises(BadInput) as refused:
        create(tmp_path, limits=limits)
    assert refused.value.field == field


def test_caps_stand_as_their_budgets_are_named(tmp_path):
    create(tmp_path, limits=["5.50 USD per 1d", "20 per 1m", "4 concurrent", "9_000 tokens per 1h"])
    with closing(AgentKeys.opened(tmp_path)) as keys:
        (row,) = keys.listed()
    assert row["limits"] == ["5.5 USD per 86400s", "20 requests per 60s", "4 concurrent", "9000 tokens per 3600s"]


def test_before_the_first_start_nobody_knows_the_targets(tmp_path):
    assert create(tmp_path, (), targets=["nope"])


def test_az_13_the_gate_is_told_who_changed_which_key(tmp_path):
    told = []

    async def tell(_order, said):
        told.append(said["changed"])

    async def play():
        with closing(AgentKeys.opened(tmp_path)) as keys:
            office = KeyOffice(keys, Audit(tmp_path), tell)
            key = (await office.create({"name": "n", "author": "ann"}))["key"]
            identity = key.split("_")[1]
            await office.rotate(identity, {"author": "bob"})
            await office.revoke(identity, {})
            with pytest.raises(BadInput, match="author"):
                await office.revoke(identity, {"author": "x" * 100})
        return key, identity

    key, identity = asyncio.run(play())
    assert [(one["what"], one["author"]) for one in told] == [
        ("created", "ann"),
        ("rotated", "bob"),
        ("created", "bob"),
        ("revoked", "the holder of the token"),
    ]
    assert [told[at]["key"] == identity for at in range(4)] == [True, True, False, True]
    assert key not in str(told)
    chain = Audit(tmp_path).read()
    assert not chain.verdict()
    whats = [change.what.removeprefix("agent key ") for change in chain.changes]
    assert list(zip(whats, [change.who for change in chain.changes], strict=True)) == [
        (one["what"], one["author"]) for one in told
    ]
    revoked = chain.changes[-1]
    assert (revoked.subject, "revoked_ms" in revoked.old, "revoked_ms" in revoked.new) == (identity, False, True)
    assert key not in (tmp_path / FILE).read_text()
    assert "hash" not in chain.changes[0].new


def test_az_13_what_the_gate_cannot_be_told_stands_in_the_audit_all_the_same(tmp_path):
    async def tell(_order, _said):
        raise LinkLost("no answer within 5 s")

    with closing(AgentKeys.opened(tmp_path)) as keys, pytest.raises(LinkLost):
        asyncio.run(KeyOffice(keys, Audit(tmp_path), tell).create({"name": "n"}))
    (change,) = Audit(tmp_path).read().changes
    assert (change.what, change.new["name"]) == ("agent key created", "n")


def test_sc_06_a_table_that_was_read_before_a_revocation_does_not_undo_it(tmp_path):
    """Two processes change keys at once: what the gate hears last is what stands in the file."""
    heard = []
    with closing(AgentKeys.opened(tmp_path)) as keys, closing(AgentKeys.opened(tmp_path)) as others:
        leaked = keys.create("leaked", NOBODY, 1).split("_")[1]

        async def tell(_order, said):
            if not heard:
                others.revoke(leaked, 2)  # and its table, without that key, was heard just before
            heard.append({scope[0] for scope in said["scopes"].values()})

        asyncio.run(KeyOffice(keys, Audit(tmp_path), tell).create({"name": "n"}))
    assert leaked in heard[0]
    assert leaked not in heard[-1]
