"""
One connection to the server that has our slot, and one question on it at a time.

A reply can never be another question's: nobody but the store's own task reads here, and a question that was not answered
whole in time costs the connection (reliability ST-11). The connection belongs to one server process, whose run id it
knows: a restart is a new connection, and so a new birth (design 4: Cold start). A deployment is one hash slot, so a
cluster needs no map: the node that has the slot is where MOVED points.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio.connection import Connection, parse_url
from redis.exceptions import MovedError, NoScriptError, RedisError

from swarmgate.core.reasons import Reason
from swarmgate.stores.valkey.trouble import StoreTrouble, trouble_of

FILES = ("book.lua", "leases.lua", "save.lua", "passage.lua", "line.lua", "denial.lua", "kernel.lua")
OLDEST = 7  # Redis; Valkey 8 and later call themselves 7.2
HOPS = 3  # nodes followed before a cluster that moves is given up for now


_T = TypeVar("_T")


def script() -> str:
    """The kernel's text: its files in order, one chunk."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in FILES)


class Link:
    """
    A connection to one of `servers` (URLs: redis://, rediss://, unix://), made by `connect`; any trouble costs it.

    Errors of every method: `StoreTrouble`.
    """

    __slots__ = ("_asked", "_at", "_connection", "_proven", "_servers", "_sha", "_text", "run")

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = [dict(parse_url(url)) for url in servers]
        self._at = 0
        self._proven = False
        self._text = script()
        self._sha = sha1(self._text.encode(), usedforsecurity=False).hexdigest()
        self._connection: Any = None
        self._asked: tuple[Any, ...] = ()
        self.run = ""

    async def connect(self, key: str, within_s: float) -> None:
        """Reach a server that is fit and has `key`; unless it answers the script, the next of the list is next."""
        place = self._servers[self._at % len(self._servers)]
        self._at += 1
        self._proven = False
        await self._within(within_s, self._connect(place, key))

    async def start(self, keys: list[str], argument: bytes, within_s: float) -> None:
        """Send one call of the script; its `answer` comes before the next `start`."""
        self._asked = (len(keys), *keys, argument)
        await self._within(within_s, self._connection.send_command("EVALSHA", self._sha, *self._asked))

    async def answer(self, within_s: float) -> bytes:
        """What the script says; a server that does not know it yet is given it, here and nowhere else."""
        answer = await self._within(within_s, self._answer())
        if not self._proven:
            self._proven = True
            self._at -= 1
        return answer

    async def check(self, key: str, within_s: float) -> None:
        """A sign of life."""
        await self._within(within_s, self._ask("EXISTS", key))

    async def drop(self) -> None:
        """Close the connection, whatever is on its way."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _connect(self, place: dict[str, Any], key: str) -> None:
        for _ in range(HOPS):
            await self.drop()
            options = {**place, "protocol": 2, "socket_timeout": None}
            self._connection = options.pop("connection_class", Connection)(**options)
            await self._connection.connect()
            self.run = _fit(await self._ask("INFO", "server", "memory", "replication"))
            try:
                await self._ask("EXISTS", key)
            except MovedError as moved:
                place = _moved(place, moved)
            else:
                return
        raise StoreTrouble(Reason.GATE_STORE_MOVED, f"the slot of {key} is still moving")

    async def _answer(self) -> bytes:
        try:
            answer = await self._connection.read_response()
        except NoScriptError:
            answer = await self._ask("EVAL", self._text, *self._asked)
        if not isinstance(answer, bytes):
            raise StoreTrouble(Reason.GATE_STORE_BROKEN, f"the script answered {answer!r:.80}")
        return answer

    async def _ask(self, *command: Any) -> Any:
        await self._connection.send_command(*command)
        return await self._connection.read_response()

    async def _within(self, seconds: float, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except (RedisError, OSError) as error:
            await self.drop()
            raise StoreTrouble(trouble_of(error), error) from error
        except BaseException:
            await self.drop()
            raise


def _moved(place: dict[str, Any], moved: MovedError) -> dict[str, Any]:
    """Another node, reached with the same credentials; one without a host is the same host."""
    other = {**place, "host": moved.host or place.get("host", "localhost"), "port": moved.port}
    if other.pop("path", None) is not None:
        del other["connection_class"]  # of a unix socket
    return other


def _fit(info: object) -> str:
    """The server's run id, if budgets are safe there."""
    lines = info.decode(errors="replace").splitlines() if isinstance(info, bytes) else ()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    if not told.keys() >= {"redis_version", "maxmemory", "maxmemory_policy", "role", "run_id"}:
        raise StoreTrouble(
            Reason.GATE_STORE_BROKEN, f"INFO does not say what a server must say of itself: {info!r:.80}"
        )
    major = told["redis_version"].split(".")[0]
    if not major.isdecimal() or int(major) < OLDEST:
        raise StoreTrouble(
            Reason.GATE_STORE_UNFIT, f"Redis {told['redis_version']} is too old: 7 or Valkey 8 is needed"
        )
    if told["maxmemory"] != "0" and told["maxmemory_policy"] != "noeviction":
        raise StoreTrouble(
            Reason.GATE_STORE_UNFIT, f"maxmemory-policy {told['maxmemory_policy']} may evict budgets: noeviction"
        )
    if told["role"] != "master":
        raise StoreTrouble(Reason.GATE_STORE_READ_ONLY, "this server is a replica")
    return told["run_id"]
