"""The number of callers' connections has a cap: one too many is told so at once."""

import json

from wires import Bench, Wire

from swarmgate.gate.service import Door

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
"""


def test_one_connection_too_many_is_told_so():
    gate = Bench(TEXT).gate
    wires = []
    for _ in range(2):
        wires.append(Wire())
        Door(gate.front, gate.sweep, gate.doors, 2).connection_made(wires[-1])
    first, second = wires  # the bench itself has one
    assert (first.written, first.closing) == ([], False)
    head, _, body = b"".join(second.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"connection: close" in head
    assert json.loads(body)["error"]["code"] == "gate_busy"
    assert second.closing
