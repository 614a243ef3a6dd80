"""
Routes of the operator port for what is on file: revisions, reports, costs, calls that ended, dead letters.

Blocking work is done in threads, few at a time, so that the importer and the other routes go on. Who asks by an id that is
none gets a 404 that tells nothing else.
"""

import asyncio
import http.client
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from swarmgate.control import answers
from swarmgate.control.checks import error
from swarmgate.control.link import Said
from swarmgate.control.page import page
from swarmgate.control.replay import ANSWER_S, NoAnswer, replay
from swarmgate.core.errors import BadInput
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import Shelf

AT_ONCE: Final = 2
SOMEBODY: Final = "the holder of the token"  # of whom nothing else is known
MOST_BODY_BYTES: Final = 1024 * 1024
_RULES: Final = "prometheus_rules.yml"
_USUAL_SPAN: Final = {"from": "1h", "to": "now"}
Result = TypeVar("Result")


class EvidenceDesk(Protocol):
    """What these routes are answered from."""

    state: Path
    threads: asyncio.Semaphore

    async def order(self, name: str, said: Said) -> Any:
        """What the data process answers. Errors: `BadInput`, `LinkLost`."""
        ...


async def revisions(desk: EvidenceDesk, request: Request) -> Response:
    """Revisions of limits with author and reason, newest first; `?target=`."""
    (target,) = _asked(request, target="")
    return JSONResponse(await _in_thread(desk, answers.revisions, desk.state, target))


async def report(desk: EvidenceDesk, request: Request) -> Response:
    """A target's post-mortem; `?target=HOST&from=2h&to=now`, `&as=html` for the page."""
    target, from_, to, form = _asked(request, target="", **_USUAL_SPAN, **{"as": "json"})
    if form not in {"json", "html"}:
        raise BadInput("as", "is none of json, html")
    told = await _in_thread(desk, answers.story, desk.state, target, answers.span_of(from_, to))
    return HTMLResponse(await _in_thread(desk, page, told)) if form == "html" else JSONResponse(answers.report(told))


async def costs(desk: EvidenceDesk, request: Request) -> Response:
    """Use and cost; `?by=team&from=24h&to=now`, by context: latency and cost per length of prompt."""
    by, from_, to = _asked(request, by="team", **(_USUAL_SPAN | {"from": "24h"}))
    return JSONResponse(await _in_thread(desk, answers.costs, desk.state, by, answers.span_of(from_, to)))


async def life(desk: EvidenceDesk, request: Request) -> Response:
    """A call's whole life: who asked, every attempt with its limits, deferrals, its end."""
    found = await _in_thread(desk, answers.life, desk.state, request.path_params["id"])
    return JSONResponse(found) if found is not None else unknown()


async def letters(desk: EvidenceDesk, _request: Request) -> Response:
    """Dead letters, oldest first, without their bodies."""
    found = await _in_thread(desk, Shelf(desk.state).letters)
    return JSONResponse([{**_plain(one), "body": None} for one in found])


async def letter(desk: EvidenceDesk, request: Request) -> Response:
    """One dead letter with its request."""
    return JSONResponse(_plain(await _in_thread(desk, Shelf(desk.state).letter, request.path_params["id"])))


async def replay_letter(desk: EvidenceDesk, request: Request) -> Response:
    """Send it again through the gate, once per `replay_id` ("first"); `key` is the agent key, where one is asked for."""
    said = await body(request)
    replay_id, key = said.get("replay_id", "first"), said.get("key", "")
    if not isinstance(replay_id, str) or not isinstance(key, str):
        raise BadInput("replay_id", "must be text, and so must key")
    shelf = Shelf(desk.state)
    found = await _in_thread(desk, shelf.letter, request.path_params["id"])
    if found.body is None:
        raise BadInput("body", f"is not there: {found.without_body}")
    state = await desk.order("state", {})
    if state["tls"]:  # whose name its certificate bears is not known here; nothing is claimed yet
        raise BadInput(
            "replay", f"cannot be sent from here over TLS; use `swarmgate dead replay {found.id} --gate https://...`"
        )
    host, port = state["address"]
    link = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        note = partial(_note_letter, desk.state, f"replayed as {replay_id}", found.id)
        told = await _in_thread(desk, replay, shelf, found, replay_id, link, key, note)
    except NoAnswer as lost:
        return error(502, "gate", str(lost))
    except OSError as unreached:
        return error(502, "gate", f"cannot be reached: {unreached}")
    return JSONResponse(told._asdict())


async def drop_letter(desk: EvidenceDesk, request: Request) -> Response:
    """Forget a dead letter."""
    identity = request.path_params["id"]
    await _in_thread(desk, Shelf(desk.state).drop, identity)
    await _in_thread(desk, _note_letter, desk.state, "dropped", identity)
    return JSONResponse({"dropped": identity})


async def audit(desk: EvidenceDesk, request: Request) -> Response:
    """Who changed what, and whether the record stands as it was written; `?since=HASH` must still be in it."""
    (since,) = _asked(request, since="")
    chain = await _in_thread(desk, Audit(desk.state).read)
    return JSONResponse(chain.told(since))


async def rules(_desk: EvidenceDesk, _request: Request) -> Response:
    """The alerts as rules for a Prometheus that scrapes /metrics."""
    return PlainTextResponse(resources.files("swarmgate.telemetry").joinpath(_RULES).read_text("utf-8"))


ROUTES: Final[list[tuple[str, str, Callable[[Any, Request], Awaitable[Response]]]]] = [
    ("/revisions", "GET", revisions),
    ("/report", "GET", report),
    ("/costs", "GET", costs),
    ("/calls/{id}", "GET", life),
    ("/dead", "GET", letters),
    ("/dead/{id}", "GET", letter),
    ("/dead/{id}/replay", "POST", replay_letter),
    ("/dead/{id}/drop", "POST", drop_letter),
    ("/audit", "GET", audit),
    ("/prometheus/rules", "GET", rules),
]


def _note_letter(state: Path, what: str, identity: str) -> None:
    Audit(state).add(unix_ms(), SOMEBODY, f"dead letter {what}", identity, old={}, new={})


def unknown() -> Response:
    """There is nothing of that id here."""
    return JSONResponse({"error": {"field": "id", "reason": "is not known here"}}, 404)


async def body(request: Request) -> Said:
    """The JSON object of a request; nothing said is an empty one. Errors: `BadInput`."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_BODY_BYTES:
            raise BadInput("body", f"is longer than {MOST_BODY_BYTES} bytes")
    if not data:
        return {}
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise BadInput("content-type", "must be application/json")
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput("body", f"is no JSON object: {error}") from None


def _asked(request: Request, **usual: str) -> list[str]:
    """The words of a query, each once, as usual where they are not said. Errors: `BadInput`."""
    for name in request.query_params:
        if name not in usual:
            raise BadInput(name, f"is unknown; known: {', '.join(usual)}")
    return [request.query_params.get(name, value) for name, value in usual.items()]


async def _in_thread(desk: EvidenceDesk, act: Callable[..., Result], *said: object) -> Result:
    async with desk.threads:
        return await asyncio.to_thread(act, *said)


def _plain(found: Letter) -> dict[str, Any]:
    text = None if found.body is None else found.body.decode("utf-8", "replace")
    return {**msgspec.structs.asdict(found), "body": text}
