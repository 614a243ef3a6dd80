"""Whoever asks gets his own answer (TI-01): two teams on shared upstream connections, while callers leave, hurry and are cut off."""

import asyncio
import contextlib
import json
import re
import socket
import struct
from random import Random

from stage import DONE, LAST, STREAM_HEAD, framed, stage, token, whole

from swarmgate.core.scope import Scope, key_hash

AGENTS = 40
TURNS = 10
WAYS = ("wait", "wait", "leave", "reset", "twice", "hurry")
MARKER = re.compile(rb"(?:red|blue)-[0-9]+-[0-9]+-[0-9a-f]{16,}")
LAST_ONE = "connection: close\r\n"
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: a close is a reset
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
"""
KEYS = {"red": "sgk_red", "blue": "sgk_blue"}


async def echo(stand_in, hit, writer):
    """The marker of the request, whole or piece by piece; now and then the connection breaks instead."""
    marker = hit.said["messages"][0]["content"]
    chance = Random(f"{marker}{len(stand_in.hits)}")
    await asyncio.sleep(chance.random() / 50)
    if chance.random() < 0.03:
        writer.close()
        return
    if not hit.said.get("stream"):
        writer.write(whole({"choices": [{"message": {"role": "assistant", "content": marker}}]}))
        return
    writer.write(STREAM_HEAD)
    for at in range(0, len(marker), 4):
        writer.write(framed(token(marker[at : at + 4])))
        await writer.drain()
        await asyncio.sleep(0)
        if chance.random() < 0.02:
            writer.close()
            return
    writer.write(framed(DONE) + LAST)


def request(marker, key, *, stream, more=""):
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": marker}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\nx-swarmgate-agent: a\r\n"
    return f"{head}{more}content-length: {len(body)}\r\n\r\n".encode() + body


def text_of(raw):
    """The content of what came back, whole or in events, as far as it came."""
    _, _, rest = raw.partition(b"\r\n\r\n")
    lines = (line.removeprefix(b"data: ") for line in rest.replace(b"\r\n", b"\n").split(b"\n"))
    choices = [choice for line in lines if line.startswith(b'{"') for choice in said_in(line)]
    return "".join((choice.get("delta") or choice["message"]).get("content", "") for choice in choices)


def said_in(line):
    """The choices of an event or an answer; none in one that was cut off."""
    try:
        return json.loads(line).get("choices", ())
    except ValueError:
        return ()


async def agent(port, number, seen):
    """Ask again and again: patiently, leaving in the middle, by a reset too, asking twice at once, or with too little time."""
    chance = Random(number)
    team = "red" if number % 2 else "blue"
    for turn in range(TURNS):
        marker = f"{team}-{number}-{turn}-" + f"{chance.getrandbits(64):016x}" * 3
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            way = chance.choice(WAYS)
            more = {"hurry": f"x-swarmgate-timeout: 9ms\r\n{LAST_ONE}", "twice": ""}.get(way, LAST_ONE)
            writer.write(request(marker, KEYS[team], stream=chance.random() < 0.5, more=more))
            if way == "twice":
                writer.write(request(f"{marker}+", KEYS[team], stream=False, more=LAST_ONE))
            raw = b""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(chance.random() / 25 if way in {"leave", "reset"} else None):
                    while piece := await reader.read(65_536):
                        raw += piece
            if way == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                writer.transport.abort()
            seen.append((marker, raw))


def test_ti_01_everybody_gets_his_own_answer_and_nobody_elses():
    async def play():
        seen = []
        async with stage(echo, text=TEXT) as on:
            keeper = on.gate.ask_for_keys(required=True)
            scopes = {key_hash(key, b"p"): Scope(team, team) for team, key in KEYS.items()}
            keeper.replace(b"p", scopes)
            await asyncio.gather(*(agent(on.port, number, seen) for number in range(AGENTS)))
        return seen, on.stand_in.connections, len(on.stand_in.hits)

    seen, connections, hits = asyncio.run(play())
    assert len(seen) == AGENTS * TURNS
    assert connections < hits  # they do share connections
    answered = 0
    for marker, raw in seen:
        text = text_of(raw)
        assert f"{marker}{marker}+".startswith(text) or f"{marker}+".startswith(text), (marker, text)
        assert set(MARKER.findall(raw)) <= {marker.encode()}
        answered += text.startswith(marker)
    assert answered > len(seen) // 4
