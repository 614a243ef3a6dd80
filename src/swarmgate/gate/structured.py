"""
The last rung of a ladder may be a small model, if what it answers has the form that the caller asked for (essay A).

So on that rung an answer is held until it is whole, and read against the caller's own JSON schema; one that does not fit
is an error, not an answer. A schema comes from a caller: it fetches nothing, its regular expressions are not run, and it
is given up when reading against it takes long, since a few references to each other can make that last for years.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import Raw

from swarmgate.core.events import Ended
from swarmgate.core.outcome import ROWS, Kind, Outcome
from swarmgate.core.record import Call
from swarmgate.gate.answer_shape import UNKNOWN
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.taps import data_of
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.transport import OK, Attempt
from swarmgate.providers.errors import Failure

MOST_HELD_BYTES: Final = 4 * 1024 * 1024
MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_S: Final = 0.05  # of the loop; a usual answer takes a few ms
MOST_UNIQUE: Final = 100  # items that are compared with each other
_PLACES: Final = ("response_format", "text", "output_format", "output_config")  # chat, Responses, Anthropic's two
_NO_REGEX: dict[str, Any] = dict.fromkeys(("pattern", "patternProperties"), lambda *_: ())
BAD_OUTPUT: Final = Outcome(Kind.BAD_OUTPUT, *ROWS[Kind.BAD_OUTPUT], None)


class TookTooLong(Exception):
    """An answer could not be read against a schema in `MOST_S`."""


def asks_for_form(fields: Mapping[str, Raw]) -> bool:
    """Whether a request's top level may hold a schema for its answer."""
    return not fields.keys().isdisjoint(_PLACES)


def schema_in(fields: Mapping[str, Raw]) -> Mapping[str, object] | None:
    """The JSON schema that the answer must follow; None if none is given, or one that is too long to be used."""
    for place in _PLACES:
        raw = fields.get(place)
        if raw is None or memoryview(raw).nbytes > MOST_SCHEMA_BYTES:
            continue
        said = _decoded(bytes(raw))
        while isinstance(said, dict):  # response_format.json_schema.schema, text.format.schema, output_format.schema
            schema = said.get("schema")
            if isinstance(schema, dict):
                return schema
            said = said.get("json_schema") or said.get("format")
    return None


def fits(schema: Mapping[str, object], text: str) -> bool:
    """Whether a text is JSON that follows a schema; a schema that cannot be used asks for nothing but JSON."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return checker()(schema, value)


@cache
def checker() -> "Checker":
    """The one of this process; what it needs is read at the first question, since few gates are ever asked."""
    return Checker()


class Checker:
    """Tells whether a value follows a schema; one that cannot be used, or not in `MOST_S`, asks for nothing."""

    def __init__(self) -> None:
        from jsonschema import Draft202012Validator  # noqa: PLC0415  see `checker`
        from jsonschema.exceptions import SchemaError, UnknownType  # noqa: PLC0415  see `checker`
        from jsonschema.validators import extend  # noqa: PLC0415  see `checker`
        from referencing import Registry  # noqa: PLC0415  see `checker`
        from referencing.exceptions import Unresolvable  # noqa: PLC0415  see `checker`

        usual = Draft202012Validator.VALIDATORS
        rules = {**usual, **_NO_REGEX, "uniqueItems": _of_few(usual["uniqueItems"])}
        self._validator: Any = extend(Draft202012Validator, {name: self._in_time(rule) for name, rule in rules.items()})
        self._nowhere = Registry[Any]()
        wrong = (SchemaError, UnknownType, Unresolvable, RecursionError, TypeError, ValueError, AttributeError)
        self._unusable = (*wrong, TookTooLong)
        self._until_s = 0.0

    def __call__(self, schema: Mapping[str, object], value: object) -> bool:
        """Whether it does."""
        self._until_s = perf_counter() + MOST_S
        try:
            return bool(self._validator(schema, registry=self._nowhere).is_valid(value))
        except self._unusable:
            return True

    def _in_time(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        def look(*said: Any) -> Any:
            if perf_counter() > self._until_s:
                raise TookTooLong
            return rule(*said)

        return look


def _of_few(unique: Callable[..., Any]) -> Callable[..., Any]:
    """`uniqueItems` compares each with each."""

    def look(validator: Any, wanted: Any, items: Any, schema: Any) -> Any:
        is_long = isinstance(items, list) and len(items) > MOST_UNIQUE
        return () if is_long else unique(validator, wanted, items, schema)

    return look


def text_of(body: bytes, *, is_stream: bool) -> str:
    """What the model said in a whole answer of any of the dialects, joined."""
    if not is_stream:
        return "".join(_said(_decoded(body)))
    events = (_decoded(data_of(event)) for event in body.replace(b"\r\n", b"\n").split(b"\n\n"))
    return "".join(piece for event in events for piece in _told(event))


class CheckedAttempt(Attempt):
    """An attempt whose answer is shown whole, and only if it has the form that `schema` asks for."""

    __slots__ = ("_schema",)

    def __init__(self, exchanges: Exchanges, call: Call, target: ModelTarget, schema: Mapping[str, object]) -> None:
        super().__init__(exchanges, call, target)
        self._schema = schema

    def _look(self, payload: bytes) -> None:
        if self.status >= 400:
            super()._look(payload)
        elif self.held_bytes > MOST_HELD_BYTES:
            self.drop()
            self._exchanges.fire(self.call, Ended(BAD_OUTPUT, UNKNOWN, status=self.status))
        elif self.stream is not None:
            self.stream.feed(payload)

    def _verdict(self, failure: Failure | None) -> Outcome:
        outcome = super()._verdict(failure)
        if outcome is not OK or fits(self._schema, text_of(self.body, is_stream=self.stream is not None)):
            return outcome
        return BAD_OUTPUT


def _said(answer: object) -> Iterator[str]:
    """The texts of an answer that came whole: chat, Responses, Anthropic."""
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            yield text
        case {"output": [*items]}:
            for item in items:
                yield from _said(item)
        case {"content": [*blocks]}:
            yield from (block["text"] for block in blocks if isinstance(block, dict) and "text" in block)


def _told(event: object) -> Iterator[str]:
    """The text of one event of a stream."""
    match event:
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            yield text
        case {"type": "response.output_text.delta", "delta": str(text)}:
            yield text
        case {"type": "content_block_delta", "delta": {"text": str(text)}}:
            yield text


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
