"""The operator port: nothing without the token, nothing for other sites, and every route described."""

import asyncio
import json
from pathlib import Path

import pytest

from swarmgate.control import operator
from swarmgate.control.checks import PUBLIC
from swarmgate.control.evidence_routes import MOST_BODY_BYTES
from swarmgate.control.evidence_routes import ROUTES as EVIDENCE
from swarmgate.control.link import LinkLost
from swarmgate.core.errors import BadInput

TOKEN = "t" * 43
HOST = "127.0.0.1:8788"
GOOD = {"host": HOST, "authorization": f"Bearer {TOKEN}"}


class Office:
    """Agents' keys, as the routes know them."""

    def listed(self):
        return []

    async def create(self, said):
        return {"key": "sgk_1"}

    async def rotate(self, identity, said):
        return {"key": "sgk_2"}

    async def revoke(self, identity, said):
        return {"revoked": identity}


class Desk:
    """What the routes are answered from; `state` is a folder without anything in it."""

    keys = Office()
    state = Path("/nowhere/at/all")

    def __init__(self):
        self.wrong = {}
        self.orders = []
        self.guesses = []
        self.threads = asyncio.Semaphore(1)

    async def order(self, name, said):
        self.orders.append((name, said))
        if said.get("budget") == "gone":
            raise LinkLost("there is no data process")
        if said.get("budget") == "none":
            raise BadInput("budget", "is no budget")
        return {"budgets": []} if name == "snapshot" else {"done": name}

    def scrape(self):
        return b"# TYPE x gauge"

    def alerts(self):
        return {"firing": [], "notices": []}

    def guessed(self, source, guess):
        self.guesses.append((source, guess))

    def readiness(self):
        return self.wrong


def ask(method, path, headers=None, body=b"", desk=None):
    """One request to the application: its status and its JSON."""
    app = operator.application(desk or Desk(), TOKEN, frozenset({HOST}))
    sent = []
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode("latin-1")) for name, value in (GOOD if headers is None else headers).items()
        ],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8788),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    said = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(said) if said.startswith((b"{", b"[")) else said


routes = pytest.mark.parametrize(("path", "method"), [route[:2] for route in operator.ROUTES])


@routes
@pytest.mark.parametrize("told", [None, "", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xff"])
def test_az_02_every_route_refuses_without_the_token(path, method, told):
    desk = Desk()
    headers = {"host": HOST} | ({"authorization": told} if told is not None else {})
    status, said = ask(method, path, headers, b"{}", desk)
    assert status == 401
    assert TOKEN not in json.dumps(said)
    assert not desk.orders
    assert not PUBLIC


@routes
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "", "evil.example:8788"])
def test_az_05_a_name_that_was_bound_to_this_address_is_refused(path, method, host):
    assert ask(method, path, GOOD | {"host": host})[0] == 421


@routes
def test_az_04_pages_of_other_sites_are_refused(path, method):
    for origin in ("https://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:1"):
        assert ask(method, path, GOOD | {"origin": origin})[0] == 403


@routes
def test_with_the_token_every_route_answers(path, method):
    is_on_file = path in {route[0] for route in EVIDENCE} - {"/prometheus/rules", "/dead", "/audit"}
    path = path.replace("{name}", "pause")
    headers = GOOD | {"content-type": "application/json", "origin": f"http://{HOST}"}
    assert ask(method, path, headers, b"{}")[0] in ({400, 404} if is_on_file else {200})  # the folder is empty
    assert ask("DELETE", path, headers)[0] == 405


@routes
def test_az_04_reading_changes_nothing_and_no_other_method_is_known(path, method):
    """A link, a picture or a form of a page can only GET and POST; what changes something is POST, and asks for JSON."""
    desk, known = Desk(), {one for template, one, _ in operator.ROUTES if template == path} | {"HEAD"}
    path = path.replace("{name}", "pause").replace("{id}", "a1")
    for other in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"} - known:
        assert ask(other, path, GOOD, b"{}", desk)[0] == 405, other
    if method == "GET":
        for one in ("GET", "HEAD"):
            ask(one, path, GOOD, desk=desk)
    assert {name for name, _ in desk.orders} <= {"state", "snapshot", "calls"}


def test_paths_that_are_none_need_the_token_too():
    assert ask("GET", "/nothing", {"host": HOST})[0] == 401
    assert ask("GET", "/nothing")[0] == 404


def test_live_and_ready():
    desk = Desk()
    assert ask("GET", "/health/live", desk=desk)[1]["live"] is True
    assert ask("GET", "/health/ready", desk=desk) == (200, {"ready": True, "wrong": {}})
    desk.wrong = {"journal": "No space left on device"}
    status, said = ask("GET", "/health/ready", desk=desk)
    assert status == 503
    assert said["wrong"] == desk.wrong


def test_orders_go_over_the_link_as_json():
    desk = Desk()
    headers = GOOD | {"content-type": "application/json"}
    said = {"budget": "up: 4 per 60s", "author": "ann", "reason": "they asked"}
    assert ask("POST", "/orders/pause", headers, json.dumps(said).encode(), desk) == (200, {"done": "pause"})
    assert desk.orders == [("pause", said)]
    for body, status in ((b"[]", 400), (b"{", 400), (b'{"budget":"none"}', 400), (b'{"budget":"gone"}', 503)):
        assert ask("POST", "/orders/pause", headers, body)[0] == status
    assert ask("POST", "/orders/pause", headers, b'{"a":' * 2_000 + b"1" + b"}" * 2_000)[0] == 400
    assert ask("POST", "/orders/explode", headers, b"{}")[0] == 400
    assert ask("POST", "/orders/pause", GOOD, b"{}")[0] == 400  # what a form of another site could send
    assert ask("POST", "/orders/pause", headers, b" " * (MOST_BODY_BYTES + 1))[0] == 400
    assert ask("GET", "/calls?state=queued", desk=desk)[0] == 200
    assert desk.orders[-1] == ("calls", {"state": "queued"})


def test_a_key_is_revoked_without_many_words():
    assert ask("POST", "/keys/3f9c2a71d0/revoke", GOOD) == (200, {"revoked": "3f9c2a71d0"})
    assert ask("POST", "/keys/3f9c2a71d0/revoke", GOOD, b"author=me")[0] == 400


def test_the_description_has_every_route():
    status, said = ask("GET", "/openapi.json")
    assert status == 200
    told = {(path, method.upper()) for path, methods in said["paths"].items() for method in methods}
    assert told == {(path, method) for path, method, _ in operator.ROUTES}
    assert all(one["summary"] for methods in said["paths"].values() for one in methods.values())
