"""Keyed writes as the data process asks for them, where the disk is full."""

import asyncio

import pytest

from swarmgate.control.writes import WriteOrders
from swarmgate.core.errors import BadInput


class Full:
    """A file on a disk without room."""

    def begin(self, *_said):
        raise OSError("database or disk is full")

    end = begin


@pytest.mark.parametrize("order", ["write_begin", "write_end"])
def test_lg_03_a_full_disk_is_an_answer_and_not_a_bug(order):
    said = {"key": "k", "payload": "p", "call": "c", "run": "r", "standing": "free"}
    with pytest.raises(BadInput, match="disk is full"):
        asyncio.run(WriteOrders(Full()).table[order](said))
