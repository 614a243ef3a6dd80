"""What a call reserves of a limit on tokens: at first a usual answer, then what its kind was seen to need."""

from stage import UNARY, warm, whole
from wires import Bench

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
key_limits = ["900000 tokens per 1s"]
"""
BUDGET = "up/only: tokens per 1s"
ANSWER = whole(UNARY)  # 3 tokens of output


def ask(bench, path=b"chat/completions", task_type=b"literature"):
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    head = b"POST /v1/%b HTTP/1.1\r\nhost: g\r\ncontent-length: %d\r\nx-swarmgate-task-type: %b\r\n\r\n"
    bench.client.data_received(head % (path, len(body), task_type) + body)
    if bench.dialler.dials:
        bench.dialler.succeed()
    cell = bench.gate.store.book.cells[BUDGET]
    reserved = sum(lease.amount for lease in cell.leases.values() if not lease.firm)
    bench.dialler.opened[0][0].data_received(ANSWER)
    return reserved


def test_a_kind_of_call_reserves_what_it_was_seen_to_need():
    bench = Bench(TEXT)
    warm(bench.gate)
    assert ask(bench) == 1_024
    assert 3 <= ask(bench) <= 4
    assert ask(bench, task_type=b"protocol") == 1_024
    assert ask(bench, path=b"embeddings") == 0
    assert bench.ends == ["answered"] * 4
    assert bench.reserved == 0
