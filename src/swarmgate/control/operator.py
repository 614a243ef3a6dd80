"""
The operator port: who may ask, and what there is to ask, as one table of routes.

Every route needs the token; none is public. The Host must be this port's own name and an Origin, if there is one, its own
origin: a page in the operator's browser may neither rebind a name nor post here (reliability AZ-02, AZ-04, AZ-05). What is to be done to the
running gate goes as an order over the link.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from swarmgate import __version__
from swarmgate.control.agent_keys import KeyOffice
from swarmgate.control.evidence_routes import ROUTES as EVIDENCE
from swarmgate.control.evidence_routes import body, unknown
from swarmgate.control.link import LinkLost, Said
from swarmgate.control.token import is_same
from swarmgate.core.errors import BadInput

PUBLIC: Final[frozenset[str]] = frozenset()
ORDERS: Final = ("pause", "resume", "limit")  # of the data process that an operator may give

Answer = Callable[["Desk", Request], Awaitable[Response]]


class Desk(Protocol):
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


async def live(_desk: Desk, _request: Request) -> Response:
    """This process answers."""
    return JSONResponse({"live": True, "version": __version__})


async def ready(desk: Desk, _request: Request) -> Response:
    """The gate takes calls, and its journal reaches the ledger; otherwise 503, and why not."""
    wrong = desk.readiness()
    return JSONResponse({"ready": not wrong, "wrong": dict(wrong)}, 503 if wrong else 200)


async def state(desk: Desk, _request: Request) -> Response:
    """The run, open calls, connections, journal."""
    return JSONResponse(await desk.order("state", {}))


async def budgets(desk: Desk, _request: Request) -> Response:
    """Every budget: limit, revision, what remains per class, who waits."""
    return JSONResponse((await desk.order("snapshot", {}))["budgets"])


async def calls(desk: Desk, request: Request) -> Response:
    """Open calls, oldest first; `?state=queued|running|backoff`."""
    wanted = request.query_params.get("state")
    return JSONResponse(await desk.order("calls", {"state": wanted} if wanted else {}))


async def metrics(desk: Desk, _request: Request) -> Response:
    """Everything that Prometheus scrapes."""
    return Response(await asyncio.to_thread(desk.scrape), media_type="text/plain; version=0.0.4; charset=utf-8")


async def alerts(desk: Desk, _request: Request) -> Response:
    """Alerts that hold, and those that began or ended lately."""
    return JSONResponse(await asyncio.to_thread(desk.alerts))


async def keys(desk: Desk, _request: Request) -> Response:
    """Every agent key that was ever made, without its secret."""
    return JSONResponse(desk.keys.listed())


async def create_key(desk: Desk, request: Request) -> Response:
    """A new agent key: name, and as wanted team, targets, models, expires_in. It is told this once."""
    return JSONResponse(await desk.keys.create(await body(request)))


async def rotate_key(desk: Desk, request: Request) -> Response:
    """A successor with the same scope; the old key is good for `overlap` more (an hour)."""
    return JSONResponse(await desk.keys.rotate(request.path_params["id"], await body(request)))


async def revoke_key(desk: Desk, request: Request) -> Response:
    """Refused from now on."""
    return JSONResponse(await desk.keys.revoke(request.path_params["id"], await body(request)))


async def order(desk: Desk, request: Request) -> Response:
    """Change the running gate: pause, resume, limit; a JSON object that names a budget or a target, author and reason."""
    name = request.path_params["name"]
    if name not in ORDERS:
        raise BadInput("order", f"is none of {', '.join(ORDERS)}")
    return JSONResponse(await desk.order(name, await body(request)))


async def openapi(_desk: Desk, _request: Request) -> Response:
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


def application(desk: Desk, token: str, hosts: frozenset[str]) -> ASGIApp:
    """The port's application; `hosts` are the values of Host that mean it."""
    routes = [Route(path, _answering(desk, answer), methods=[method]) for path, method, answer in ROUTES]
    return Checked(Starlette(routes=routes, exception_handlers={BadInput: _bad, LinkLost: _lost}), token, hosts)


class Checked:
    """Before every route: Host, Origin, token, and a body that no foreign page can send."""

    def __init__(self, inner: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._inner = inner
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers, scope)
        await (self._inner if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, headers: Mapping[str, str], scope: Scope) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return _error(421, "host", "is not this port")
        origin = headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self._hosts:
            return _error(403, "origin", "is another site")
        scheme, _, told = headers.get("authorization", "").partition(" ")
        if scope["path"] not in PUBLIC and (scheme.lower() != "bearer" or not is_same(told.strip(), self._token)):
            return _error(401, "authorization", "is not `Bearer` and the token of this gate's state folder")
        return None


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


def _answering(desk: Desk, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await answer(desk, request)

    return endpoint


def _error(status: int, field: str, reason: str) -> Response:
    return JSONResponse({"error": {"field": field, "reason": reason}}, status)


def _bad(_request: Request, error: Exception) -> Response:
    assert isinstance(error, BadInput)
    return unknown() if error.field == "id" else _error(400, error.field, error.reason)


def _lost(_request: Request, error: Exception) -> Response:
    return _error(503, "gate", str(error))
