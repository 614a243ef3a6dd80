"""
The operator port: who may ask, and what there is to ask, as one table of routes.

Every route stands behind the same checks (checks.py); none is public. What is to be done to the running gate goes as an order
over the link.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from swarmgate import __version__
from swarmgate.control.agent_keys import KeyOffice
from swarmgate.control.checks import Checked, error
from swarmgate.control.evidence_routes import ROUTES as EVIDENCE
from swarmgate.control.evidence_routes import body, unknown
from swarmgate.control.link import LinkLost, Said
from swarmgate.core.errors import BadInput
from swarmgate.core.guesses import Guess

ORDERS: Final = ("pause", "resume", "limit")  # of the data process that an operator may give

Answer = Callable[["OperatorDesk", Request], Awaitable[Response]]


class OperatorDesk(Protocol):
    """What the routes are answered from: the control process."""

    keys: KeyOffice
    state: Path
    threads: asyncio.Semaphore

    async def order(self, name: str, said: Said) -> Any:
        """What the data process answers. Errors: `BadInput`, `LinkLost`."""
        ...

    def readiness(self) -> Mapping[str, str]:
        """What keeps the gate from being ready, by part; empty = ready."""
        ...

    def scrape(self) -> bytes:
        """Metrics in Prometheus' format."""
        ...

    def alerts(self) -> Mapping[str, object]:
        """What holds, and what changed lately."""
        ...

    def guessed(self, source: str, guess: Guess) -> None:
        """A wrong token came from an address."""
        ...


async def live(_desk: OperatorDesk, _request: Request) -> Response:
    """This process answers."""
    return JSONResponse({"live": True, "version": __version__})


async def ready(desk: OperatorDesk, _request: Request) -> Response:
    """The gate takes calls, and its journal reaches the ledger; otherwise 503, and why not."""
    wrong = desk.readiness()
    return JSONResponse({"ready": not wrong, "wrong": dict(wrong)}, 503 if wrong else 200)


async def state(desk: OperatorDesk, _request: Request) -> Response:
    """The run, open calls, connections, journal."""
    return JSONResponse(await desk.order("state", {}))


async def budgets(desk: OperatorDesk, _request: Request) -> Response:
    """Every budget: limit, revision, what remains per class, who waits."""
    return JSONResponse((await desk.order("snapshot", {}))["budgets"])


async def calls(desk: OperatorDesk, request: Request) -> Response:
    """Open calls, oldest first; `?state=queued|running|backoff`."""
    wanted = request.query_params.get("state")
    return JSONResponse(await desk.order("calls", {"state": wanted} if wanted else {}))


async def metrics(desk: OperatorDesk, _request: Request) -> Response:
    """Everything that Prometheus scrapes."""
    return Response(await asyncio.to_thread(desk.scrape), media_type="text/plain; version=0.0.4; charset=utf-8")


async def alerts(desk: OperatorDesk, _request: Request) -> Response:
    """Alerts that hold, and those that began or ended lately."""
    return JSONResponse(await asyncio.to_thread(desk.alerts))


async def keys(desk: OperatorDesk, _request: Request) -> Response:
    """Every agent key that was ever made, without its secret."""
    return JSONResponse(desk.keys.listed())


async def create_key(desk: OperatorDesk, request: Request) -> Response:
    """A new agent key: name, and as wanted team, targets, models, limits, expires_in. It is told this once."""
    return JSONResponse(await desk.keys.create(await body(request)))


async def rotate_key(desk: OperatorDesk, request: Request) -> Response:
    """A successor with the same scope; the old key is good for `overlap` more (an hour)."""
    return JSONResponse(await desk.keys.rotate(request.path_params["id"], await body(request)))


async def revoke_key(desk: OperatorDesk, request: Request) -> Response:
    """Refused from now on."""
    return JSONResponse(await desk.keys.revoke(request.path_params["id"], await body(request)))


async def order(desk: OperatorDesk, request: Request) -> Response:
    """Change the running gate: pause, resume, limit; a JSON object that names a budget or a target, author and reason."""
    name = request.path_params["name"]
    if name not in ORDERS:
        raise BadInput("order", f"is none of {', '.join(ORDERS)}")
    return JSONResponse(await desk.order(name, await body(request)))


async def openapi(_desk: OperatorDesk, _request: Request) -> Response:
    """This description."""
    return JSONResponse(described(ROUTES))


# Path, method, answer: one row per thing an operator may ask. Whoever adds one adds it here.
ROUTES: Final[list[tuple[str, str, Answer]]] = [
    ("/health/live", "GET", live),
    ("/health/ready", "GET", ready),
    ("/openapi.json", "GET", openapi),
    ("/state", "GET", state),
    ("/budgets", "GET", budgets),
    ("/calls", "GET", calls),
    ("/metrics", "GET", metrics),
    ("/alerts", "GET", alerts),
    ("/keys", "GET", keys),
    ("/keys", "POST", create_key),
    ("/keys/{id}/rotate", "POST", rotate_key),
    ("/keys/{id}/revoke", "POST", revoke_key),
    ("/orders/{name}", "POST", order),
    *EVIDENCE,
]


def application(desk: OperatorDesk, token: str, hosts: frozenset[str]) -> ASGIApp:
    """The port's application; `hosts` are the values of Host that mean it."""
    routes = [Route(path, _answering(desk, answer), methods=[method]) for path, method, answer in ROUTES]
    app = Starlette(routes=routes, exception_handlers={BadInput: _bad, LinkLost: _lost})
    return Checked(app, token, hosts, desk.guessed)


def described(routes: list[tuple[str, str, Answer]]) -> Said:
    """The routes as an OpenAPI document."""
    paths: dict[str, Said] = {}
    for path, method, answer in routes:
        summary = " ".join((answer.__doc__ or "").split())
        parameters = [
            {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
            for part in path.split("/")
            if part.startswith("{")
        ]
        paths.setdefault(path, {})[method.lower()] = {
            "summary": summary,
            "parameters": parameters,
            "responses": {"200": {"description": "It is so, or was done."}, "401": {"description": "No token."}},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "swarmgate, for operators", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _answering(desk: OperatorDesk, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await answer(desk, request)

    return endpoint


def _bad(_request: Request, bad: Exception) -> Response:
    assert isinstance(bad, BadInput)
    return unknown() if bad.field == "id" else error(400, bad.field, bad.reason)


def _lost(_request: Request, lost: Exception) -> Response:
    return error(503, "gate", str(lost))
