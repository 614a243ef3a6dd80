"""
The paths below /swarmgate/v1/: each read is one function from a query to what is told, as JSON.

They stand outside every budget and start no call. What is asked wrongly is answered with the field that is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from swarmgate.core.errors import BadInput
from swarmgate.core.limits import EXACT
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import NOBODY, Scope
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.front import Listener
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead

PREFIX = b"/swarmgate/v1/"
LONGEST_QUERY = 2_048
_AGENT = b"x-swarmgate-agent"
_FRESH = (b"cache-control", b"no-store")

Query = Mapping[str, str]
Read = Callable[[Query, Scope], object]


class Began(Protocol):
    """What answers later, or listens to a body."""

    def begin(self, end: ClientEnd, head: RequestHead, query: Query, viewer: Scope) -> Listener | None:
        """A request begins; None if it was answered at once."""


class Views:
    """
    The surface of all views.

    `reads` answer GET by name, `items` by name and what follows it (`calls/ID`), `others` have their own method. All of
    them are told who looks: `scope_of` reads it off the request's fields.
    """

    def __init__(
        self,
        scope_of: Callable[[Mapping[bytes, bytes]], Scope | None],
        reads: Mapping[str, Read],
        items: Mapping[str, Callable[[str, Scope], object | None]],
        others: Mapping[tuple[bytes, str], Began],
    ) -> None:
        self._scope_of = scope_of
        self._reads = reads
        self._items = items
        self._others = others

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, _said: dict[str, str] | None) -> Listener | None:
        """A request begins; None if it was answered at once."""
        name, _, asked = path.removeprefix(PREFIX).partition(b"?")
        viewer = self._scope_of(head.fields) or NOBODY
        try:
            query = _query(asked)
            other = self._others.get((head.method, name.decode()))
            if other is not None:
                return other.begin(end, head, query, viewer)
            reply = self._answer(head.method, name.decode(), query, viewer)
        except (BadInput, UnicodeDecodeError) as bad:
            reply = answers.refusal(Reason.CALLER_BAD_REQUEST, f"{bad}.", getattr(bad, "field", "path"))
        end.respond(*reply)
        return None

    def _answer(self, method: bytes, name: str, query: Query, viewer: Scope) -> Reply:
        methods = [b"GET"] if self._is_read(name) else [how for how, other in self._others if other == name]
        if not methods:
            return answers.refusal(Reason.CALLER_UNKNOWN_PATH, f"Served here: {', '.join(self.names)}.")
        if method not in {b"GET", b"HEAD"} or not self._is_read(name):
            return answers.refusal(Reason.CALLER_METHOD, f"{name} takes {b', '.join(methods).decode()}.")
        if name in self._reads:
            return told(self._reads[name](query, viewer))
        kind, _, item = name.partition("/")
        found = self._items[kind](unquote(item), viewer)
        return answers.refusal(Reason.CALLER_UNKNOWN_CALL, param="id") if found is None else told(found)

    def _is_read(self, name: str) -> bool:
        kind, slash, item = name.partition("/")
        return name in self._reads or bool(slash and item and kind in self._items)

    @property
    def names(self) -> list[str]:
        """Every path below the prefix."""
        return sorted({*self._reads, *[f"{kind}/ID" for kind in self._items], *[name for _, name in self._others]})


def told(found: object, status: int = 200) -> Reply:
    """Anything as JSON that no cache keeps."""
    return Reply(status, [answers.JSON, _FRESH, answers.named()], msgspec.json.encode(found))


def _query(asked: bytes) -> dict[str, str]:
    if len(asked) > LONGEST_QUERY:
        raise BadInput("query", f"is longer than {LONGEST_QUERY} bytes")
    pairs = parse_qsl(asked.decode("ascii"), keep_blank_values=True)
    query = dict(pairs)
    if len(query) != len(pairs):
        raise BadInput("query", "has a word twice")
    return query


def whose_is(head: RequestHead, viewer: Scope) -> bytes:
    """Who asks, where nobody may ask for all there is: its key, or the name that it says."""
    return viewer.id.encode() or head.fields.get(_AGENT, b"")


def words(query: Query, *known: str) -> list[str]:
    """The values of the known words, empty where unsaid. Errors: `BadInput` names an unknown one."""
    for word in query:
        if word not in known:
            raise BadInput(
                word, f"is unknown; known: {', '.join(known)}" if known else "is unknown; nothing is asked here"
            )
    return [query.get(word, "") for word in known]


def number(field: str, text: str, least: int, most: int, usual: int) -> int:
    """A whole number in a query. Errors: `BadInput`."""
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) < 16 and least <= int(text) <= most):
        raise BadInput(field, f"must be a whole number from {least} to {most}")
    return int(text)


def relative(at_ms: int | None, now_ms: int) -> int | None:
    """An instant as others can use it: ms from now, never below 0; None = nobody knows."""
    return None if at_ms is None or at_ms >= EXACT else max(0, at_ms - now_ms)
