"""
Who calls, and how they want to be treated: `x-swarmgate-*` headers, the `/as/...` path, `traceparent`, `x-request-id`.

Everything read here stays here: none of it goes upstream (design 5: Identity in). A word that cannot be read is the
caller's error and names its header: a misspelt priority must not silently become another one. Headers win over the path.
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.core.record import Step
from swarmgate.core.scope import KEY_FORM
from swarmgate.gate.hop import HOP
from swarmgate.stores.letters.letter import REPLAY_OF

PREFIX: Final = b"x-swarmgate-"
REQUEST_ID: Final = b"x-request-id"
AS: Final = b"/as/"
RANKS: Final = {"P0": 0, "P1": 1, "P2": 2}
USUAL_RANK: Final = 1
LONGEST_NAME: Final = 40  # of a header, where its likeness to ours is looked for
_STEP: Final = {
    "agent": "agent",
    "task": "task",
    "goal": "goal",
    "step": "step",
    "op": "operation",
    "task-type": "task_type",
}
_KEY: Final = "key"  # the keeper reads it, in a header only: paths stand in every log of a client
_OTHERS: Final = ("priority", "wait", "timeout", "effect", "ticket", _KEY)
NAMES: Final = (*_STEP, *_OTHERS)
# What gates, whoever sends a dead letter again, and the keeper read.
_NOT_OF_CALLERS: Final = frozenset({HOP, REPLAY_OF.encode(), PREFIX + _KEY.encode()})
_WORD: Final = re.compile(rf"(?!.*{KEY_FORM})[!-~]{{1,128}}")
_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Unattributed(BadInput):
    """A call does not say who causes it, where the operator asks (design 2: P12)."""


class Identity(NamedTuple):
    """What a caller said of itself; None = it said nothing about it, durations in ms."""

    step: Step = Step()
    rank: int = USUAL_RANK
    wait_ms: int | None = None
    timeout_ms: int | None = None
    effect: str = ""
    ticket: str = ""
    traceparent: str = ""
    client_request_id: str = ""


UNSAID: Final = Identity()


def split_as(path: bytes) -> tuple[bytes, dict[str, str]]:
    """`/as/agent=a17,priority=P1/v1/x` as its path `/v1/x` and its words. Errors: `BadInput`."""
    words, slash, rest = path[len(AS) :].partition(b"/")
    if not slash:
        raise BadInput("/as/", "is not followed by name=value,... and the path to call")
    return slash + rest, _words(words, "/as/")


def proxy_words(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """
    The same words as the user of a proxy's URL: `http://agent=a17,goal=g3:sgk_...@gate:8787`.

    Whoever can only set HTTPS_PROXY has no other place for them. A user without `=` says nothing. Errors: `BadInput`.
    """
    scheme, _, said = fields.get(b"proxy-authorization", b"").partition(b" ")
    if scheme.lower() != b"basic":
        return {}
    try:
        user = b64decode(said.strip(), validate=True).partition(b":")[0]
    except ValueError:
        return {}  # whether it is needed at all is the keeper's question
    return _words(user, "proxy user") if b"=" in user else {}


def _words(text: bytes, where: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for pair in text.split(b","):
        name, equals, value = pair.partition(b"=")
        key = name.decode("ascii", "replace")
        if not equals:
            raise BadInput(where, "is not name=value, or several with commas between")
        if key in said:
            raise BadInput(f"{where} {key}", "stands twice")
        if key == _KEY:
            raise BadInput(
                f"{where} {key}", f"is no place for a key; it goes into {_header(_KEY)}, or where a proxy's password is"
            )
        said[key] = unquote_to_bytes(value).decode("utf-8", "replace")
    return said


def read_identity(fields: Mapping[bytes, bytes], in_path: Mapping[str, str] | None = None) -> Identity:
    """The identity in a head's `fields` and in the words of its `/as/` path. Errors: `BadInput` names the word."""
    said = dict(in_path or {})
    for field, line in fields.items():
        if field.startswith(PREFIX) and field not in _NOT_OF_CALLERS:
            said[field[len(PREFIX) :].decode("ascii", "replace")] = line.decode("utf-8", "replace")
    for name, value in said.items():
        if name not in NAMES:
            close = get_close_matches(name[:LONGEST_NAME], NAMES, n=1)
            raise BadInput(_header(name), f"is unknown; nearest is {_header(close[0])}" if close else "is unknown")
        if not _WORD.fullmatch(value):
            raise BadInput(_header(name), _why_not(value))
    return Identity(
        Step(**{_STEP[name]: value for name, value in said.items() if name in _STEP}),
        _rank(said["priority"]) if "priority" in said else USUAL_RANK,
        _duration_ms(said, "wait") if "wait" in said else None,
        _duration_ms(said, "timeout") if "timeout" in said else None,
        said.get("effect", ""),
        said.get("ticket", ""),
        _traceparent(fields.get(b"traceparent", b"")),
        _request_id(fields.get(REQUEST_ID, b"")),
    )


def read_timeout_ms(fields: Mapping[bytes, bytes]) -> int | None:
    """What an SDK says that it reads for, in seconds; None if it says nothing, or no such number."""
    said = fields.get(b"x-stainless-read-timeout", b"")
    is_number = said.replace(b".", b"", 1).isdigit() and len(said) < 10
    return int(float(said) * 1_000) if is_number else None


def must_say(step: Step, names: tuple[str, ...]) -> None:
    """Errors: `Unattributed` names the words of `names` that a call left out."""
    missing = [_header(name) for name in names if not getattr(step, _STEP[name])]
    if missing:
        raise Unattributed(missing[0], f"is not said; this gate asks for {', '.join(missing)}")


def _why_not(word: str) -> str:
    """What is wrong with a word; a key would be on record as somebody's name (design 2: P11)."""
    if re.search(KEY_FORM, word):
        return f"has an agent key in it, and would be put on record; a key goes into {_header(_KEY)}"
    return "is not 1 to 128 visible ASCII characters"


def _header(name: str) -> str:
    return f"{PREFIX.decode()}{name}"


def _rank(said: str) -> int:
    if said not in RANKS:
        raise BadInput(_header("priority"), f"{said[:20]!r} is no priority; say P0, P1 or P2")
    return RANKS[said]


def _duration_ms(said: Mapping[str, str], name: str) -> int:
    return parse_duration_ms(said[name], _header(name))


def _request_id(value: bytes) -> str:
    """The caller's own name for its call; proxies make some up, so one that is no word is as if there were none."""
    said = value.decode("utf-8", "replace")
    return said if _WORD.fullmatch(said) else ""


def _traceparent(value: bytes) -> str:
    """A malformed one is as if there were none (W3C Trace Context 4.3)."""
    return value.decode() if _TRACEPARENT.fullmatch(value) else ""
