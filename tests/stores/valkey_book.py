"""A deployment's state in Valkey read back as a book, and the script seen as a decider: what the twins compare."""

import msgspec

from swarmgate.core.answers import BlockKind
from swarmgate.core.book import Book, BudgetCell, Lease
from swarmgate.core.limits import Limits, Tier
from swarmgate.core.line import join
from swarmgate.stores.valkey import wire
from swarmgate.stores.valkey.client import script
from swarmgate.stores.valkey.replies import decode


def book_of(client, deployment):
    tag = f"{{sg:{deployment}}}"
    keys = sorted(key.decode() for key in client.keys(tag + "*"))
    pipe = client.pipeline(transaction=False)
    for key in keys:
        if _kind(tag, key) in "hq":
            pipe.zrange(key, 0, -1, withscores=True)
        else:
            pipe.hgetall(key)
    told = dict(zip(keys, pipe.execute(), strict=True))
    if tag not in told:
        return None
    meta = _pairs(told[tag])
    book = Book(int(meta["birth_ms"]))
    book.now_ms, book.offset_ms = int(meta["now_ms"]), int(meta["offset_ms"])
    book.clock_steps, book.sequence = int(meta["clock_steps"]), int(meta["sequence"])
    for key in keys:
        name = key[len(tag) + 2 :]
        if _kind(tag, key) == "b":
            book.cells[name] = _cell(book, name, _pairs(told[key]), told.get(f"{tag}h:{name}", ()))
        elif _kind(tag, key) == "q":
            _stand(book.line(name), told[f"{tag}t:{name}"], told[key])
    return book


def _kind(tag, key):
    return key[len(tag) : len(tag) + 1] or "meta"


def _cell(book, name, told, leases):
    limits = msgspec.json.decode(told["limits"], type=Limits)
    cell = BudgetCell(name, limits, book.line(limits.line or name), int(told["at_ms"]))
    cell.level, cell.pending, cell.due_ms = int(told["level"]), int(told["pending"]), int(told["due_ms"])
    cell.promised_ms = int(told["promised_ms"])
    for lease, expires_ms in leases:
        amount = int(told.pop("=" + lease.decode()))
        held = cell.leases[lease.decode()] = Lease()
        held.amount, held.expires_ms, held.firm = abs(amount), int(expires_ms), amount < 0
    assert not [field for field in told if field.startswith("=")], "an amount without its expiry"
    assert int(told["firm"]) == sum(held.firm for held in cell.leases.values())
    if "slices" in told:
        flat = [int(one) for one in told["slices"].split()]
        cell.slices = dict(zip(flat[::2], flat[1::2], strict=True))
    return cell


def _stand(line, told, order):
    told.pop(b"")
    for ticket, score in order:
        entry = join(line, ticket.decode(), int(score))
        entry.ready_ms, entry.due_ms, entry.expires_ms, kind, *need, entry.at, tier = msgspec.msgpack.decode(
            told.pop(ticket)
        )
        entry.kind, entry.need, entry.tier = BlockKind(kind), tuple(need), Tier(tier)
    assert not told, "an entry without its place"


def _pairs(told):
    return {key.decode(): value.decode() for key, value in told.items()}


class ScriptDecider:
    """The script itself, without the store around it: explicit instants, one call per batch."""

    def __init__(self, client, lines, deployment="twins", run="r1"):
        self.client, self.lines, self.deployment, self.run = client, lines, deployment, run
        self.sha = client.script_load(script())
        self.lose()

    def decide(self, operations, now_ms):
        replies = []
        for start in range(0, len(operations), 64):
            batch = wire.Batch(self.lines)
            for operation in operations[start : start + 64]:
                batch.add(operation)
            keys = batch.keys(self.deployment)
            told = self.client.evalsha(self.sha, len(keys), *keys, batch.argument(self.run, now_ms))
            replies += decode(batch, told).replies
        return replies

    def lose(self):
        keys = self.client.keys(f"{{sg:{self.deployment}}}*")
        if keys:
            self.client.delete(*keys)
