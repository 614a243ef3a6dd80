"""What an operator may say of a new agent key."""

import asyncio
from contextlib import closing

import pytest

from swarmgate.control.agent_keys import KeyOffice
from swarmgate.core.errors import BadInput
from swarmgate.stores.sql.agent_keys import AgentKeys


def create(folder, targets_known=(), **said):
    async def tell(_order, _said):
        return None

    with closing(AgentKeys.opened(folder)) as keys:
        return asyncio.run(KeyOffice(keys, tell, lambda: targets_known).create({"name": "n", **said}))["key"]


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
    ("word", "near"), [("openi", "openai"), ("antropic", "anthropic"), ("nope", "openai"), ("zzz", "anthropic")]
)
def test_a_word_that_is_no_target_is_refused_with_the_nearest(tmp_path, word, near):
    with pytest.raises(BadInput) as refused:
        create(tmp_path, ("openai", "anthropic"), targets=["openai", word])
    assert refused.value.field == "targets"
    assert word in refused.value.reason
    assert f"nearest is {near}" in refused.value.reason


def test_before_the_first_start_nobody_knows_the_targets(tmp_path):
    assert create(tmp_path, (), targets=["nope"])


def test_az_13_the_gate_is_told_who_changed_which_key(tmp_path):
    told = []

    async def tell(_order, said):
        told.append(said["changed"])

    async def play():
        with closing(AgentKeys.opened(tmp_path)) as keys:
            office = KeyOffice(keys, tell)
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
