"""
The doors to every other host: `/to/scheme/host/path`, absolute-form proxy requests, and CONNECT.

Each reads where a request goes, once, and refuses with a typed answer what may not be called, before anything is
resolved or dialled. What is left is the same for all: an errand for the desk.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import NOBODY, SHOWS_KEY, Scope
from swarmgate.core.target import ParsedUrl, Target, parse_authority, parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.target_policy import judge
from swarmgate.gate import answers
from swarmgate.gate.egress.chains import asker_of
from swarmgate.gate.egress.desk import EgressDesk, effect
from swarmgate.gate.egress.forward import Errand, Forward
from swarmgate.gate.egress.hosts import Destination
from swarmgate.gate.egress.plan import forbidden, forbidden_port
from swarmgate.gate.egress.requests import UPGRADE, Manners
from swarmgate.gate.egress.rewrite import MOST_HOPS, START, TO, Trail, kept_inside, read_trail
from swarmgate.gate.egress.tunnel import Tunnel
from swarmgate.gate.identity import UNSAID, Identity, proxy_words
from swarmgate.gate.shapes import PROBLEM
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import Header, RequestHead

_TO: Final = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)/([^/?#]*)(.*)", re.DOTALL)
_WAYS: Final = (
    "use http://GATE/to/https/HOST/PATH, or http://HOST/PATH through the proxy with x-swarmgate-upgrade: https"
)
Said = Mapping[str, str] | None


class Refusal(Exception):
    """Why a request is not sent; `target` is where it was to go, once that is known: then it is a call, and has an end."""

    def __init__(self, reason: Reason, detail: str = "", field: str = "", target: Target | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.field = field or None
        self.target = target


class _Door:
    """What every door does with a request once it is known where it goes."""

    def __init__(self, desk: EgressDesk) -> None:
        self._desk = desk

    def begin(
        self, end: ClientEnd, head: RequestHead, path: bytes, said: dict[str, str] | None
    ) -> Forward | Tunnel | None:
        """A request begins; None if it was answered at once."""
        closed = self._desk.closed(head.fields)
        if closed is not None:
            end.respond(*answers.refusal(closed, shape=PROBLEM))
            return None
        try:
            found = self._open(end, head, path, said)
        except BadTarget as wrong:  # a name of its own: compiled code keeps one type for each
            end.respond(*answers.bad_target(wrong, PROBLEM))
        except BadInput as bad:
            end.respond(*answers.bad_input(bad, PROBLEM))
        except Refusal as why:
            if why.target is None:
                end.respond(*answers.refusal(why.reason, why.detail, why.field, PROBLEM))
            else:
                self._decline(end, head, said, why, why.target)
        else:
            return found if end.head is head else None
        return None

    def _decline(self, end: ClientEnd, head: RequestHead, said: Said, why: Refusal, target: Target) -> None:
        """What policy forbids is on record, with whoever asked for it."""
        try:
            identity = self._identity(head, said)
        except BadInput:
            identity = UNSAID  # it is refused anyway
        scope = self._desk.scope(head.fields) or NOBODY
        self._desk.decline(end, target, (identity, scope), (why.reason, why.detail, why.field))

    def _open(self, end: ClientEnd, head: RequestHead, path: bytes, said: Said) -> Forward | Tunnel:
        raise NotImplementedError

    def _identity(self, head: RequestHead, said: Said) -> Identity:
        fields = head.fields
        if UPGRADE in fields:
            fields = {name: value for name, value in fields.items() if name != UPGRADE}
        return self._desk.identity(fields, said or proxy_words(fields))

    def _place(self, target: Target, method: bytes, path: str, team: str) -> Destination:
        """The place of an allowed target. Errors: `Refusal`."""
        settings, policies = self._desk.plan.settings, self._desk.plan.policies
        why = forbidden(settings, target)
        if why is None:
            judged = judge(policies, target.host, method.decode(), path)
            why = forbidden_port(settings, judged.policy, target)
        if why is not None:
            raise Refusal(*why, target)
        return self._desk.hosts.place(target, method.decode(), path, team)  # known from here on

    def _scope(self, head: RequestHead, target: Target) -> Scope:
        """That of the caller's key, or nobody's. Errors: `Refusal` if the key may not call this host."""
        scope = self._desk.scope(head.fields) or NOBODY
        if not scope.allows(target.host):
            raise Refusal(Reason.POLICY_KEY_SCOPE, f"Key: {scope.id}; host: {target.host}.", "host", target)
        return scope

    def _forward(self, end: ClientEnd, head: RequestHead, url: ParsedUrl, said: Said, trail: Trail) -> Forward:
        if SHOWS_KEY.search(unquote_to_bytes(head.target)):
            raise BadInput("url", "has an agent key in it, which is for the gate alone; it goes into x-swarmgate-key")
        scope = self._scope(head, url.target)
        place = self._place(url.target, head.method, url.path, scope.team)
        policy, settings = place.judged.policy, self._desk.plan.settings
        identity = self._identity(head, said)
        asker, chains = asker_of(end, identity, scope), self._desk.chains
        why = chains.forbids(asker, url, head) if chains.led else None
        if why is not None:
            raise Refusal(*why, url.target)
        manners = Manners(policy.user_agent or settings.user_agent, policy.traces or settings.traces, trail.bare)
        doing = effect(place, head.method, identity)
        put = self._put(head, url, trail)
        forward = Forward(self._desk, end, head, Errand(url, place, identity, doing, manners, put, scope, asker))
        forward.begin_early(identity.step)
        return forward

    def _put(self, _head: RequestHead, _url: ParsedUrl, _trail: Trail) -> Callable[[list[Header]], list[Header]]:
        return lambda headers: headers


class PathDoor(_Door):
    """`/to/{scheme}/{host}[:port]/{path}`: for clients that can only set a base URL; redirects stay inside."""

    def _open(self, end: ClientEnd, head: RequestHead, path: bytes, said: Said) -> Forward:
        _no_upgrade(head, "write /to/https/HOST/PATH instead")
        trail, rest = read_trail(path[len(TO) :])
        found = _TO.fullmatch(rest)
        if found is None:
            raise BadTarget("caller_scheme")
        if trail.downgraded:
            raise Refusal(Reason.POLICY_DOWNGRADE)
        if trail.hops > MOST_HOPS:
            raise Refusal(Reason.POLICY_REDIRECTS, f"Hops: {trail.hops}.")
        scheme, authority, behind = found.groups()
        url = parse_target(f"{scheme.decode()}://{authority.decode()}{behind.decode()}")
        return self._forward(end, head, url, said, trail)

    def _put(self, head: RequestHead, url: ParsedUrl, trail: Trail) -> Callable[[list[Header]], list[Header]]:
        prefix = head.target[: head.target.index(TO)]
        return partial(kept_inside, here=url, trail=trail, prefix=prefix)


class ProxyDoor(_Door):
    """`GET http://host/path HTTP/1.1`; `x-swarmgate-upgrade: https` speaks TLS to the host, so that requests are seen."""

    def _open(self, end: ClientEnd, head: RequestHead, path: bytes, said: Said) -> Forward:
        url = parse_target(path.decode("ascii"))
        wish = head.fields.get(UPGRADE)
        if wish is not None:
            if wish.lower() != b"https" or url.target.scheme != "http":
                raise BadInput(UPGRADE.decode(), "can only be https, for a target that begins with http://")
            url = parse_target("https" + path.decode("ascii")[len("http") :])
        return self._forward(end, head, url, said, START)

    def _put(self, head: RequestHead, _url: ParsedUrl, _trail: Trail) -> Callable[[list[Header]], list[Header]]:
        return _spoken_of_as_http if UPGRADE in head.fields else (lambda headers: headers)


class ConnectDoor(_Door):
    """`CONNECT host:port`: bytes that nobody counts; only where the host's policy, or the operator for all, says so."""

    def _open(self, end: ClientEnd, head: RequestHead, path: bytes, said: Said) -> Tunnel:
        _no_upgrade(head, "a tunnel carries what its ends speak")
        target = parse_authority(path.decode("ascii"))
        identity = self._identity(head, said)
        if end.is_early:
            raise Refusal(Reason.CALLER_EARLY_BYTES)
        scope = self._scope(head, target)
        place = self._place(target, head.method, "/", scope.team)
        policy = place.judged.policy
        if not (policy.tunnels or (not policy.name and self._desk.plan.settings.tunnels)):
            ways = f'{target.authority}: {_WAYS}; or set connect = "tunnel".'
            raise Refusal(Reason.POLICY_TUNNEL_UNMETERED, ways, "", target)
        return Tunnel(self._desk, end, head, place, (identity, scope))


def _no_upgrade(head: RequestHead, instead: str) -> None:
    """Who asks for TLS where it is not to be had is told so, and not served without. Errors: `BadInput`."""
    if UPGRADE in head.fields:
        raise BadInput(UPGRADE.decode(), f"is for http://HOST/PATH through the proxy; {instead}")


def _spoken_of_as_http(headers: list[Header]) -> list[Header]:
    """Redirects to https as http, since the caller says again that it wants https spoken."""
    return [
        (name, b"http" + value[5:]) if name == b"location" and value[:8].lower() == b"https://" else (name, value)
        for name, value in headers
    ]
