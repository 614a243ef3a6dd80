"""
All stand-ins of one process: their ports, the admin port, the witness's file.

`GET /lab/state` tells ports and counts, `POST /lab/trouble` commands trouble (trouble.py). Nothing here is reachable by
agents under test: the admin port is another one.
"""

import asyncio
import os
from errno import EADDRINUSE
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from swarmgate.http1.cork import Cork
from swarmgate.http1.head import RequestHead
from swarmgate.http1.listen import Listening
from swarmgate.http1.sweep import PERIOD_S, Sweep
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.provider import Provider
from swarmgate.lab.standin.site import Exchange, NumberedEnd, Site
from swarmgate.lab.standin.speech import JSON
from swarmgate.lab.standin.trouble import Trouble, Troubles, read_trouble
from swarmgate.lab.standin.web import WEB, Web
from swarmgate.lab.standin.witness_log import WitnessLog


class StandIns:
    """Everything that one process serves: `start`, then `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, plan: StandInPlan, witness: Path | None = None) -> None:
        self._loop = loop
        self._plan = plan
        self._sweep = Sweep(loop, Cork(loop.call_soon))
        self._servers: list[Listening] = []
        self._timer: asyncio.TimerHandle | None = None
        self.log = WitnessLog(witness)
        rng = Random(plan.seed)
        self.troubles = Troubles(rng)
        self.providers = {one.name: Provider(loop, one, self.log, self.troubles, rng) for one in plan.providers}
        self.web = Web(loop, plan, self.log, self.troubles, rng)
        self.ports: dict[str, int] = {}

    async def start(self) -> dict[str, int]:
        """
        Listen everywhere; ports by place (`web-1` ..., `admin`).

        Where the plan says `else_free`, a free port stands in for one that is taken. Errors: `LabError` names the port.
        """
        self._sweep.start()
        for name, provider in self.providers.items():
            await self._listen(name, provider, provider.plan.port)
        for number, port in enumerate(self._plan.web_ports, 1):
            await self._listen(f"{WEB}-{number}", self.web, port)
        await self._listen("admin", _Admin(self._loop, self), self._plan.admin_port)
        self._tick()
        return self.ports

    async def _listen(self, name: str, site: Site, port: int) -> None:
        try:
            server = await site.listen(self._sweep, port)
        except OSError as error:
            if self._plan.else_free and port and error.errno == EADDRINUSE:
                await self._listen(name, site, 0)
                return
            await self.stop()
            why = os.strerror(error.errno) if error.errno else error.strerror
            raise LabError(
                f"port {port}", f"of {name} cannot be had: {why}; name another, or 0 for a free one"
            ) from None
        self._servers.append(server)
        self.ports[name] = server.port

    async def stop(self) -> None:
        """Listen no more; the witness's last rows are written."""
        for server in self._servers:
            server.close()
        if self._timer is not None:
            self._timer.cancel()
        self._sweep.stop()
        self.log.close()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._tick)
        self.log.flush()
        for over in self.troubles.ended(int(self._loop.time() * 1_000)):
            if over.kind == "shrink":
                self._resize(over.place, 100)

    def command(self, said: dict[str, Any]) -> Trouble:
        """Begin a trouble. Errors: `LabError`."""
        trouble = read_trouble(said, frozenset({*self.providers, WEB}), int(self._loop.time() * 1_000))
        self.troubles.begin(trouble)
        if trouble.kind == "shrink":
            self._resize(trouble.place, trouble.amount)
        return trouble

    def _resize(self, place: str, percent: int) -> None:
        scopes = [scope for _, scope in self.web.hosts.values()] if place == WEB else self.providers[place].scopes
        for scope in scopes:
            scope.shrink(percent)

    def state(self) -> dict[str, Any]:
        """What the admin port tells."""
        return {
            "ports": self.ports,
            "arrivals": self.log.arrivals,
            "refusals": self.log.refusals,
            "hosts": len(self.web.hosts),
            "trouble": [trouble._asdict() for trouble in self.troubles.all],
        }


class _Admin(Site):
    """The operator of the stand-ins."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: StandIns) -> None:
        super().__init__(loop)
        self._owner = owner

    def serve(self, end: NumberedEnd, head: RequestHead, exchange: Exchange) -> None:
        """One command."""
        if (head.method, head.target) == (b"GET", b"/lab/state"):
            end.respond(200, [JSON], msgspec.json.encode(self._owner.state()))
        elif (head.method, head.target) == (b"POST", b"/lab/trouble"):
            try:
                trouble = self._owner.command(msgspec.json.decode(exchange.body, type=dict[str, Any]))
            except (LabError, msgspec.DecodeError) as error:
                end.respond(400, [JSON], msgspec.json.encode({"error": str(error)}))
            else:
                end.respond(200, [JSON], msgspec.json.encode(trouble._asdict()))
        else:
            end.respond(404, [JSON], msgspec.json.encode({"error": "there are GET /lab/state and POST /lab/trouble"}))
