"""Callers that leave in the midst of streams: the ledger has what the target made, and says that it is an estimate."""

import asyncio
import contextlib
import json
import re
from random import Random

import pytest
from processes import http, query, up

from eventually import eventually
from swarmgate.control import answers

CALLS = 12  # of each dialect
INPUT, OUTPUT = 2, 8  # USD for a million tokens: as many millionths for one
PRICES = f"""
[prices."up/m"]
input = {INPUT}
output = {OUTPUT}
"""


def chat(_at, text):
    return "", {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}


def message(at, text):
    if not at:
        return "message_start", {
            "type": "message_start",
            "message": {"usage": {"input_tokens": 100, "output_tokens": 1}},
        }
    delta = {"type": "text_delta", "text": text}
    return "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}


def response(at, text):
    if not at:
        return "response.created", {"type": "response.created", "response": {"usage": None}}
    return "response.output_text.delta", {"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}


DIALECTS = {  # how an event is told, and how many tokens of four letters are in each
    "/v1/chat/completions": (chat, 1),
    "/v1/messages": (message, 5),
    "/v1/responses": (response, 1),
}


class Generator:
    """A provider that streams as many tokens as it is asked for, several events in a write, and never says how many."""

    def __init__(self):
        self.made = {}
        self.left = 0
        self._tasks = set()

    async def serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            said = json.loads(await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1])))
            path = re.match(rb"POST (\S+)", head)[1].decode()
            marker, count, at_once = said["messages"][0]["content"].split()[:3]
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            self._generate(writer, path, int(count), int(at_once))
            self.made[marker] = int(count)
            await reader.read()  # until it is left
            self.left += 1

    @staticmethod
    def _generate(writer, path, count, at_once):
        tell, tokens = DIALECTS[path]
        events = [tell(0, "word")] if path != "/v1/chat/completions" else []
        events += [tell(at, "word" * tokens) for at in range(1, count // tokens + 1)]
        for at in range(0, len(events), at_once):
            payload = b"".join(
                (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(said).encode() + b"\n\n"
                for name, said in events[at : at + at_once]
            )
            writer.write(b"%x\r\n%b\r\n" % (len(payload), payload))

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def leave(port, path, marker, count, at_once):
    """One call, which is left once all that its target made has come, though not its end."""
    said = {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": f"{marker} {count} {at_once} {'x' * 380}"}],
    }
    body = json.dumps(said).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: g\r\nx-swarmgate-step: {marker}\r\ncontent-length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(head.encode() + body)
        came = 0
        while came < count:
            came += (await reader.readuntil(b"word")).count(b"word")


async def everybody(gate, generator):
    chance = Random(51)
    for path in DIALECTS:
        name = path.rpartition("/")[2]
        calls = [
            leave(gate.port, path, f"{name}-{number}", 5 * chance.randint(10, 80), chance.choice([1, 3, 8]))
            for number in range(CALLS)
        ]
        await asyncio.gather(*calls)
    await eventually(lambda: generator.left == len(DIALECTS) * CALLS, 20)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What the target made, the ledger's folder, and what `calls/ID` told of one call."""
    folder = tmp_path_factory.mktemp("abandoned") / "state"

    async def play():
        generator = Generator()
        server = await asyncio.start_server(generator.serve, "127.0.0.1", 0)
        async with up(folder, server.sockets[0].getsockname()[1], more=PRICES) as gate:
            await gate.ready()
            await everybody(gate, generator)
            newest = (await http(gate.port, "GET", "/swarmgate/v1/calls?state=ended")).said["calls"][0]["id"]
            told = await http(gate.port, "GET", f"/swarmgate/v1/calls/{newest}")
            assert await gate.end() == 0
        server.close()
        await generator.end()
        return generator.made, told.said

    return folder, *asyncio.run(play())


def test_llm_gateways_51_the_ledger_has_what_the_target_made_within_5_percent(story):
    folder, made, _ = story
    columns = "c.step, a.prompt_tokens, a.output_tokens, a.cost_micro, a.estimated, a.kind"
    found = query(folder, f"SELECT {columns} FROM attempts a JOIN calls c ON c.id = a.call")
    assert {row[4:] for row in found} == {(1, "given_up")}
    told = {call: output for call, _, output, *_ in found}
    assert told.keys() == made.keys()
    for call, tokens in made.items():
        assert told[call] == pytest.approx(tokens, rel=0.05, abs=3), call
    for dialect in ("completions", "messages", "responses"):
        sums = [sum(one[call] for call in made if call.startswith(dialect)) for one in (told, made)]
        assert sums[0] == pytest.approx(sums[1], rel=0.05), dialect
    assert all(90 <= prompt <= 130 for _, prompt, *_ in found)
    assert all(cost == prompt * INPUT + output * OUTPUT for _, prompt, output, cost, *_ in found)


def test_llm_gateways_51_costs_tell_how_much_is_estimated(story):
    folder, made, _ = story
    (row,) = answers.costs(folder, "team", answers.span_of("1h", "now"))
    assert row["output_tokens"] == pytest.approx(sum(made.values()), rel=0.05)
    assert row["estimated_tokens"] == row["prompt_tokens"] + row["output_tokens"]
    assert 0 < row["cost_micro"] == row["estimated_micro"]
    assert row["unpriced"] == 0


def test_llm_gateways_51_a_call_that_was_left_tells_it_at_once(story):
    folder, _, told = story
    columns = "prompt_tokens, output_tokens, cost_micro"
    ((prompt, output, cost),) = query(folder, f"SELECT {columns} FROM attempts WHERE call = '{told['id']}'")
    assert told["usage"] == {"prompt_tokens": prompt, "output_tokens": output, "estimated": True}
    assert told["cost_micro_usd"] == cost
