"""
Who may come in: the keys of agents, looked up by hash, once per request's head.

The table comes from the control process and is replaced whole, so that a key that is revoked there is refused here at the next
request. A key stands where its surface's clients put theirs: `Authorization`, `x-api-key` or `api-key`, `x-swarmgate-key`,
`Proxy-Authorization` (design 5: Identity in). None of it goes upstream.
"""

from base64 import b64decode
from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import Final

from swarmgate.core.guesses import Guesses
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import PREFIX, Scope, key_hash

_PREFIX: Final = PREFIX.encode()
_BARE: Final = (b"x-swarmgate-key", b"x-api-key", b"api-key")
_SCHEMES: Final = (b"authorization", b"proxy-authorization")
MOST_REMEMBERED: Final = 4_096
_ALIAS_BYTES: Final = 16  # as hex half of what providers take
LONGEST_KEY: Final = 128  # bytes; ours have some 60, and what is longer is not even remembered as wrong


class Keeper:
    """
    `refuses` or admits each head; `replace` the table. `required` = nobody comes in without a key.

    `refused` counts who was not let in; `guessed` slows who guesses.
    """

    def __init__(self, now_ms: Callable[[], int], *, required: bool) -> None:
        self.required = required
        self._now_ms = now_ms
        self._pepper = b""
        self._scopes: dict[str, Scope] = {}
        self._by_id: dict[str, Scope] = {}
        self._seen: dict[bytes, Scope | None] = {}
        self._guesses = Guesses()
        self._shared: dict[tuple[str, str], bool] = {}
        self.has_caps = False  # any key has caps of its own
        self.has_teams = False  # callers are of several
        self.refused = 0

    def replace(self, pepper: bytes, scopes: Mapping[str, Scope]) -> None:
        """From now on these keys, by hash, and no others."""
        self._pepper, self._scopes = pepper, dict(scopes)
        self._by_id = {scope.id: scope for scope in scopes.values()}
        self.has_caps = any(scope.capped_as for scope in scopes.values())
        self.has_teams = len({scope.team for scope in scopes.values()} | ({""} if not self.required else set())) > 1
        self._seen.clear()
        self._shared.clear()

    @property
    def ids(self) -> Collection[str]:
        """Of the keys that are known now."""
        return self._by_id.keys()

    def admits(self, scope: Scope) -> bool:
        """Whether who came in with this scope might still; what lasts long asks again, so that a revoked key's streams end."""
        known = self._by_id.get(scope.id)
        return known.lives(self._now_ms()) if known is not None else not scope.id

    def scope(self, fields: Mapping[bytes, bytes]) -> Scope | None:
        """Whose key a head carries; None = it has none that is good."""
        key = presented(fields)
        return self._of(key) if key else None

    def refuses(self, fields: Mapping[bytes, bytes]) -> Reason | None:
        """Why a request may not come in; None if it may. A key that is no good is refused even where none is needed."""
        key = presented(fields)
        if not key and not self.required:
            return None
        if key and self._of(key) is not None:
            return None
        self.refused += 1
        return Reason.CALLER_KEY_REFUSED if key else Reason.CALLER_KEY_MISSING

    def is_shared(self, team: str, target: str) -> bool:
        """Whether a target may be called by others than this team, too; who has no key is of the team without a name."""
        known = self._shared.get((team, target))
        if known is None:
            others = (scope for scope in self._scopes.values() if scope.team != team)
            known = (bool(team) and not self.required) or any(scope.allows(target) for scope in others)
            self._shared[team, target] = known
        return known

    def alias(self, team: str, name: str) -> str:
        """What stands for a team's name of something where other teams have names, too (gate/apart.py)."""
        told = f"{len(team)} {team} {name}".encode("utf-8", "surrogatepass")
        return blake2b(told, digest_size=_ALIAS_BYTES, key=self._pepper, person=b"alias").hexdigest()

    def guessed(self, source: str) -> int:
        """A wrong key came from this address: 0, or ms in which it is told nothing more."""
        return self._guesses.wrong(source, self._now_ms()).wait_ms

    def _of(self, key: bytes) -> Scope | None:
        if key in self._seen:
            scope = self._seen[key]
        elif len(key) > LONGEST_KEY:
            return None
        else:
            scope = self._scopes.get(key_hash(key.decode("latin-1"), self._pepper))
            if len(self._seen) >= MOST_REMEMBERED:
                self._seen.clear()
            self._seen[key] = scope
        if scope is None or not scope.expires_ms:  # most are good for ever: no look at the clock
            return scope
        return scope if scope.lives(self._now_ms()) else None


def presented(fields: Mapping[bytes, bytes]) -> bytes:
    """The agent key in a head; empty = none. What does not look like one is some SDK's placeholder."""
    for name in _BARE:  # most heads have none of ours in them: no more than a look at each place
        if name in fields and _PREFIX in fields[name]:
            key = fields[name].strip()
            if key.startswith(_PREFIX):
                return key
    for name in _SCHEMES:
        if name in fields:
            scheme, _, said = fields[name].partition(b" ")
            found = (said.strip(),) if scheme.lower() == b"bearer" else _basic(scheme, said)
            for key in found:
                if key.startswith(_PREFIX):
                    return key
    return b""


def _basic(scheme: bytes, said: bytes) -> list[bytes]:
    """User and password: proxies are given a key as either (`http://sgk_...@host`)."""
    if scheme.lower() != b"basic":
        return []
    try:
        return b64decode(said.strip(), validate=True).split(b":", 1)
    except ValueError:
        return []
