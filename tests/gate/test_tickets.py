"""A deferred place over HTTP: it comes back with its ticket, and not without (design 2: P6)."""

import json

from wires import Bench

from swarmgate.core.book import first_score

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
key_limits = ["10 per 1s"]
"""


def deferred(bench, ticket=""):
    """The deferral of a call that may not wait, with the ticket it brought."""
    body = b'{"model":"m","messages":[]}'
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-wait: 0s\r\n"
    head += f"x-swarmgate-ticket: {ticket}\r\n" if ticket else ""
    bench.client.data_received(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
    if bench.dialler.dials:
        bench.dialler.succeed()
    answer = bench.wire.written[-1]
    assert b" 429 " in answer.split(b"\r\n")[0]
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["deferral"]


def score_of(ticket):
    return int(ticket.split(".")[1], 16)


def test_a_repeat_keeps_its_place_with_its_ticket_and_loses_it_without():
    bench = Bench(TEXT)  # a new gate must assume that its budgets are used up
    first = deferred(bench)
    bench.pass_time(1)
    again = deferred(bench, first["ticket"])
    stranger = deferred(bench)
    forged = deferred(bench, "0" * 24 + first["ticket"][24:])
    assert score_of(again["ticket"]) == score_of(first["ticket"]) < first_score(1)
    assert score_of(stranger["ticket"]) > score_of(first["ticket"])
    assert score_of(forged["ticket"]) > score_of(stranger["ticket"])
