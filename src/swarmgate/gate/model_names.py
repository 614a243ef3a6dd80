"""
`GET /v1/models`: the names that callers may say, in the form of the SDK that asks.

The names are the gate's own aliases, not the providers' lists: what is shown is what a route serves. Nothing is metered
and nothing sent.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import msgspec

from swarmgate.core.ladders import Ladders
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import Scope
from swarmgate.gate import answers
from swarmgate.gate.answers import JSON, Reply
from swarmgate.gate.shapes import ANTHROPIC, Shape, shape_of
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead

PATH: Final = b"/v1/models"
ONE: Final = b"/v1/models/"
_METHODS: Final = frozenset({b"GET", b"HEAD"})


def may_say(ladders: Ladders, scope: Scope | None, name: str) -> bool:
    """Whether a route serves this name to whoever has the key of that scope (None = no key)."""
    rungs = ladders.by_model.get(name) or ladders.other(name) or ()
    if scope is None:
        return bool(rungs)
    return scope.allows_model(name) and any(scope.allows(rung.target) for rung in rungs)


class ModelNames:
    """The surface; `scope_of` a request's key says which models are told; `since_s` is when the gate began to serve them, in seconds of the wall clock."""

    def __init__(
        self, ladders: Ladders, since_s: int, scope_of: Callable[[Mapping[bytes, bytes]], Scope | None]
    ) -> None:
        self._scope_of = scope_of
        self._ladders = ladders
        self._since_s = since_s

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, _said: dict[str, str] | None) -> None:
        """Answer at once."""
        path = path.partition(b"?")[0]
        shape = shape_of(path, head.fields)
        if head.method not in _METHODS:
            end.respond(*answers.refusal(Reason.CALLER_METHOD, "Models are read with GET.", shape=shape))
        elif path == PATH:
            end.respond(200, [JSON, answers.named()], msgspec.json.encode(self._list(self._names(head), shape)))
        else:
            name = unquote(path[len(ONE) :].decode("ascii"), errors="replace")
            end.respond(*self._one(name, self._names(head, name), shape))

    def _names(self, head: RequestHead, *more: str) -> list[str]:
        """The names that the caller may say: of routes, and of `more` that some route serves."""
        found, scope = dict.fromkeys((*self._ladders.by_model, *more)), self._scope_of(head.fields)
        return [name for name in found if may_say(self._ladders, scope, name)]

    def _list(self, ids: list[str], shape: Shape) -> dict[str, object]:
        models = [self._model(name, shape) for name in ids]
        if shape is not ANTHROPIC:
            return {"object": "list", "data": models}
        first, last = (ids[0], ids[-1]) if ids else (None, None)
        return {"data": models, "has_more": False, "first_id": first, "last_id": last}

    def _one(self, name: str, known: list[str], shape: Shape) -> Reply:
        if name not in known:
            nearest = answers.nearest_models(name, [one for one in self._ladders.nearest(name) if one in known])
            return answers.refusal(Reason.CALLER_UNKNOWN_MODEL, nearest, "model", shape)
        return Reply(200, [JSON, answers.named()], msgspec.json.encode(self._model(name, shape)))

    def _model(self, name: str, shape: Shape) -> dict[str, object]:
        if shape is ANTHROPIC:
            since = datetime.fromtimestamp(self._since_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return {"type": "model", "id": name, "display_name": name, "created_at": since}
        rungs = self._ladders.by_model.get(name) or self._ladders.other(name) or ()
        return {"id": name, "object": "model", "created": self._since_s, "owned_by": rungs[0].target if rungs else ""}
