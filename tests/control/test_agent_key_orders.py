"""What an operator may say of a new agent key."""

import asyncio
from contextlib import closing

import pytest

from swarmgate.control.agent_keys import KeyOffice
from swarmgate.core.errors import BadInput
from swarmgate.stores.sql.agent_keys import AgentKeys


def create(folder, **said):
    async def tell(_order, _said):
        return None

    with closing(AgentKeys.opened(folder)) as keys:
        return asyncio.run(KeyOffice(keys, tell).create({"name": "n", **said}))["key"]


def test_a_team_has_a_name_like_the_configurations(tmp_path):
    assert create(tmp_path, team="red-2.lab").startswith("sgk_")


@pytest.mark.parametrize("team", ["red a", "a: b", "Red", "é", "x" * 41, "\x1b[31m", "-a", 3])
def test_a_team_that_would_read_as_part_of_another_name_is_refused(tmp_path, team):
    with pytest.raises(BadInput) as refused:
        create(tmp_path, team=team)
    assert refused.value.field == "team"
