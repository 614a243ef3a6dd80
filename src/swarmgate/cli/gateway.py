"""Asking a running gate over its data port, from the command line: one request, or events until they end."""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

import typer

from swarmgate.cli.exits import Exit

USUAL = "http://127.0.0.1:8787"
VIEWS = "/swarmgate/v1/"
ANSWER_S = 10.0
SILENCE_S = 40.0  # events have a comment every 10 s
GATE_HELP = f"The gate's data port; SWARMGATE_URL, else {USUAL}. SWARMGATE_KEY is an agent key, where it asks for one."


def ask(gate: str, path: str, /, **query: str) -> Any:
    """What the gate answers below /swarmgate/v1/. Ends the program where there is no answer, or no good one."""
    with _answer(gate, path, query, ANSWER_S) as response:
        return json.loads(response.read())


def budgets_of(gate: str, url: str, method: str) -> tuple[list[dict[str, Any]], str]:
    """The budgets that a request takes from, and why it would be refused, empty if it would not. Ends the program as `ask` does."""
    with _answer(gate, "budgets", {"url": url, "method": method}, ANSWER_S, also=400) as response:
        said = json.loads(response.read())
    refused = str(said.get("error", {}).get("message", ""))
    return said.get("budgets", []), refused.partition("url: ")[2] or refused


def events(gate: str, path: str) -> Iterator[dict[str, Any]]:
    """The data of server-sent events until the gate ends them."""
    with _answer(gate, path, {}, SILENCE_S) as response:
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


@contextmanager
def _answer(
    gate: str, path: str, query: dict[str, str], within_s: float, also: int = 200
) -> Iterator[http.client.HTTPResponse]:
    link = connection(gate or os.environ.get("SWARMGATE_URL", "") or USUAL, within_s)
    said = {name: value for name, value in query.items() if value}
    key = os.environ.get("SWARMGATE_KEY", "")
    try:
        link.request(
            "GET",
            VIEWS + path + (f"?{urlencode(said)}" if said else ""),
            headers={"x-swarmgate-key": key} if key else {},
        )
        response = link.getresponse()
        if response.status not in {200, also}:
            raise _stop(Exit.USAGE, _reason(response.read()))
        yield response
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _stop(Exit.UNREACHABLE, f"no gate answers at {link.host}:{link.port}: {reason}") from None
    finally:
        link.close()


def connection(gate: str, within_s: float) -> http.client.HTTPConnection:
    """A connection to a gate's data port, not yet open. Ends the program where it is no URL of one."""
    try:
        url = urlsplit(gate)
        if url.scheme == "https" and url.hostname:  # SSL_CERT_FILE names an authority of one's own
            return http.client.HTTPSConnection(url.hostname, url.port or 443, timeout=within_s)
        if url.scheme == "http" and url.hostname:
            return http.client.HTTPConnection(url.hostname, url.port or 80, timeout=within_s)
    except ValueError:
        pass  # a port that is none
    raise _stop(Exit.USAGE, f"--gate: is no URL of a gate; write {USUAL}")


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "the answer is not one of a gate"


def _stop(code: Exit, text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(code)
