"""
Redirects that a caller follows one after the other: each hop costs its host a request, so a chain without end is ended here.

Between origins the path carries the count (rewrite.py). Inside one it cannot: cookies and relative links go by the path, and a
proxy's callers see the hosts' own URLs. So where a caller was sent is kept for a moment, by the caller's words or, without a
name, by its connection; whoever asks there goes on in that chain. What is lost is the end of a loop and nothing else: then the
client's own limit ends it.
"""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from swarmgate.core.reasons import Reason
from swarmgate.core.scope import Scope
from swarmgate.core.target import ParsedUrl, parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.gate.egress.plan import Forbidden
from swarmgate.gate.egress.rewrite import is_credential, joined
from swarmgate.gate.identity import Identity
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead, ResponseHead

# browsers, httpx, OkHttp and undici follow 20, requests 30: they ask for the next one, and read why not
MOST_HOPS: Final = 19
MOST_IN_A_LOOP: Final = 8  # aiohttp, Go and reqwest follow 9 or 10
FOLLOWED_MS: Final = 10_000  # clients follow at once; who comes later has another reason to
WAITED_MS: Final = 300_000  # unless it came, and was told to come again
MOST_KEPT: Final = 8_192


class Led(NamedTuple):
    """How somebody came to a URL: its requests before, each as a hash, and whether the last of them was over TLS."""

    asked: tuple[int, ...]
    was_tls: bool
    until_ms: int


class Chains:
    """Where callers were sent lately; `led` is empty while nobody was."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.led: dict[int, Led] = {}

    def forbids(self, asker: Hashable, url: ParsedUrl, head: RequestHead) -> Forbidden | None:
        """
        Why a request that a redirect led to is not sent; None for every other one.

        Who comes back to a URL with the same request may be right once or twice: what a host remembers of it is not in the
        request. So such a loop has a few rounds.
        """
        key = _place(asker, url)
        chain = self.led.pop(key, None)
        now_ms = self._now_ms()
        if chain is None or chain.until_ms <= now_ms:
            return None
        if chain.was_tls and url.target.scheme == "http":
            return Forbidden(Reason.POLICY_DOWNGRADE, "", "")
        hops = len(chain.asked)
        if hops > MOST_HOPS or (hops > MOST_IN_A_LOOP and _request(url, head) in chain.asked):
            return Forbidden(Reason.POLICY_REDIRECTS, f"Hops: {hops}.", "")
        self.led[key] = chain._replace(until_ms=now_ms + WAITED_MS)
        return None

    def answered(self, asker: Hashable, url: ParsedUrl, head: RequestHead, answer: ResponseHead) -> None:
        """A host answered: a chain goes on where it sends its caller, and ends where it does not."""
        before = self.led.pop(_place(asker, url), None)
        if not 300 <= answer.status < 400 or b"location" not in answer.fields:
            return
        try:
            there = parse_target(joined(answer.fields[b"location"], url)[0])
        except BadTarget:
            return  # it is refused where it is asked for
        now_ms = self._now_ms()
        asked = before.asked if before is not None and before.until_ms > now_ms else ()
        while len(self.led) >= MOST_KEPT:
            del self.led[next(iter(self.led))]
        was_tls = url.target.scheme == "https"
        self.led[_place(asker, there)] = Led((*asked, _request(url, head)), was_tls, now_ms + FOLLOWED_MS)


def asker_of(end: ClientEnd, identity: Identity, scope: Scope) -> Hashable:
    """Who follows redirects: whoever says the same of itself, else whoever uses the same connection."""
    return (scope.id, identity.step) if identity.step.agent else end


def _place(asker: Hashable, url: ParsedUrl) -> int:
    return hash((asker, url.target.authority, url.origin_form))  # http and https are one place


def _request(url: ParsedUrl, head: RequestHead) -> int:
    """What a request is known again by: method, URL, and what it shows of itself (a login sets a cookie and leads back)."""
    shown = [value for name, value in head.fields.items() if is_credential(name)]
    return hash((head.method, url.url, *shown))
