"""
Agents' keys as operators handle them: made, rotated, revoked; each change is in force at the gate before it is answered.

A key is told once, in the answer that makes it. The gate gets hashes and the pepper over the link (design 4: agents' keys).
"""

import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from swarmgate.config.callers import caps_of_key
from swarmgate.config.quota import read_caps
from swarmgate.control.link import Said
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import nearest
from swarmgate.core.scope import ANY, PREFIX, Scope
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.sql.agent_keys import LONGEST_NAME, AgentKeys

USUAL_OVERLAP_MS: Final = 3_600_000
MOST_PATTERNS: Final = 100
MOST_LIMITS: Final = 8
_BARE_WORD: Final = re.compile(r"[^.:*?\[\]]{1,200}")  # neither a host with its domain, nor an address, nor a pattern
_TEAM: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
Tell = Callable[[str, Said], Awaitable[Any]]


class KeyOffice:
    """
    `tell` reaches the data process, `audit` has every change; `targets` tells the names of the configuration's targets, none if
    it was never read.
    """

    def __init__(
        self, keys: AgentKeys, audit: Audit, tell: Tell, targets: Callable[[], Collection[str]] = frozenset
    ) -> None:
        self._keys = keys
        self._audit = audit
        self._tell = tell
        self._targets = targets

    def table(self) -> dict[str, Any]:
        """What the gate admits now (gate/keeper.py), as the link carries it."""
        scopes = {name: list(scope) for name, scope in self._keys.in_force(unix_ms()).items()}
        return {"pepper": b64encode(self._keys.pepper).decode(), "scopes": scopes}

    def listed(self) -> list[dict[str, Any]]:
        """Every key, without secrets."""
        return self._keys.listed()

    async def create(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """name, and as wanted: team, targets, models, limits, expires_in, author. Errors: `BadInput`."""
        _known(said, "name", "team", "targets", "models", "limits", "expires_in", "author")
        now_ms = unix_ms()
        lasts = said.get("expires_in")
        expires_ms = now_ms + parse_duration_ms(str(lasts), "expires_in") if lasts else 0
        scope = Scope("", _team(said), self._targets_of(said), _patterns(said, "models"), expires_ms, _limits(said))
        author = _author(said)
        key = self._keys.create(_text(said, "name"), scope, now_ms)
        await self._publish("created", _id_of(key), author, {})
        return {"id": _id_of(key), "key": key}

    def _targets_of(self, said: Mapping[str, Any]) -> tuple[str, ...]:
        """Targets, hosts and patterns of both; a bare word can only be a target, so it must be one."""
        patterns, known = _patterns(said, "targets"), self._targets()
        for one in patterns:
            if known and one not in known and _BARE_WORD.fullmatch(one) and one != "localhost":
                raise BadInput("targets", f"{one!r} is no target of this gate; {nearest(one, known)}; hosts have dots")
        return patterns

    async def rotate(self, identity: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """A successor, which uses up the same caps; `overlap` says how long the old key is still good. Errors: `BadInput`."""
        _known(said, "overlap", "author")
        overlap = said.get("overlap")
        overlap_ms = parse_duration_ms(str(overlap), "overlap") if overlap else USUAL_OVERLAP_MS
        author = _author(said)
        old = self._told(identity)
        key = self._keys.rotate(identity, overlap_ms, unix_ms())
        await self._publish("rotated", identity, author, old)
        await self._publish("created", _id_of(key), author, {})
        return {"id": _id_of(key), "key": key}

    async def revoke(self, identity: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Refused from now on. Errors: `BadInput`."""
        _known(said, "author")
        author = _author(said)
        old = self._told(identity)
        self._keys.revoke(identity, unix_ms())
        await self._publish("revoked", identity, author, old)
        return {"revoked": identity}

    def _told(self, identity: str) -> dict[str, str]:
        """What a key is like now; empty if there is none."""
        rows = (row for row in self._keys.listed() if row["id"] == identity)
        return {name: str(said) for row in rows for name, said in row.items() if said not in ("", 0, [])}

    async def _publish(self, what: str, key: str, author: str, old: dict[str, str]) -> None:
        """
        The gate admits by the new table, and its journal has who changed what; then it is in the audit: a revocation never waits.

        It is in the audit also where the gate cannot be told: it stands in the file of keys.
        """
        told, changed = self.table(), {"what": what, "key": key, "author": author}
        try:
            await self._tell("agent_keys", {**told, "changed": changed})
            while (newer := self.table()) != told:  # another process changed keys too, and may have been heard before
                told = newer
                await self._tell("agent_keys", told)
        finally:
            self._audit.add(unix_ms(), author, f"agent key {what}", key, old=old, new=self._told(key))


def _known(said: Mapping[str, Any], *names: str) -> None:
    for name in said:
        if name not in names:
            raise BadInput(name, f"is unknown; known: {', '.join(names)}")


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name, "")
    if not isinstance(value, str):
        raise BadInput(name, "must be text")
    return value


def _id_of(key: str) -> str:
    """The part of a key that is no secret."""
    return key.removeprefix(PREFIX).partition("_")[0]


def _author(said: Mapping[str, Any]) -> str:
    """Who changes something, as he says: whoever has the token may."""
    author = _text(said, "author") or "the holder of the token"
    if len(author) > LONGEST_NAME or not author.isprintable():
        raise BadInput("author", f"must be at most {LONGEST_NAME} printable characters")
    return author


def _team(said: Mapping[str, Any]) -> str:
    """A name as the configuration's teams have it: it becomes part of the names of budgets and records."""
    team = _text(said, "team")
    if team and not _TEAM.fullmatch(team):
        raise BadInput("team", "must be at most 40 of a-z, 0-9, ., _ and -, and begin with a letter or digit")
    return team


def _limits(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Caps of this key alone, each in the form that names its budget."""
    value = said.get("limits") or []
    if not isinstance(value, list) or len(value) > MOST_LIMITS:
        raise BadInput("limits", f'must be a list of at most {MOST_LIMITS}, as ["5 USD per 1d", "20 per 60s"]')
    caps_of_key("", value)  # what cannot be kept is refused here
    return tuple(str(one) for one in read_caps(value, "limits"))


def _patterns(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = said.get(name) or list(ANY)
    if (
        not isinstance(value, list)
        or len(value) > MOST_PATTERNS
        or not all(isinstance(one, str) and one for one in value)
    ):
        raise BadInput(name, f"must be a list of at most {MOST_PATTERNS} names or patterns")
    return tuple(value)
