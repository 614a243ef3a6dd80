"""
Where every request arrives: from the head of a request to the surface that serves it.

A surface gives back what listens to the rest of the request; it stands in `end.call` until the answer is over. Nothing
is decided here but the form of the target and its path: exact paths are one look-up, the rest is looked at closer.
"""

import re
from typing import Final, Protocol

from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import Reason
from swarmgate.gate import answers
from swarmgate.gate.browsers import ORIGIN, SITE, is_foreign
from swarmgate.gate.egress.rewrite import TO
from swarmgate.gate.hop import HOP, is_loop
from swarmgate.gate.identity import AS, split_as
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.shapes import OPENAI, PROBLEM, Shape, shape_of
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead
from swarmgate.http1.refusals import BadHead, Lines

_ABSOLUTE: Final = re.compile(rb"(?i:http)://([^/?]*)")
_USUAL_PORT: Final = b":80"
_SHOWN: Final = 200  # bytes of a path that an error repeats
# values of Host that are known to be the gate's own; whoever says another one is looked at closer
MOST_HOSTS: Final = 64


class Listener(Protocol):
    """What a surface leaves in `end.call`: it hears the rest of one request until its answer is over."""

    def on_body(self, data: bytes) -> None:
        """A piece of the request's body, never empty."""

    def complete(self) -> None:
        """The request is whole (also when it has no body)."""

    def on_gone(self) -> None:
        """The caller left; nothing can be answered."""

    def on_pause(self) -> None:
        """The caller reads more slowly than it is written to: stop the source."""

    def on_resume(self) -> None:
        """The caller caught up."""


class Surface(Protocol):
    """One kind of request."""

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, said: dict[str, str] | None) -> Listener | None:
        """
        A request begins; None if it was answered at once.

        `path` is the target in the form that was registered for: with its query, without the words of an `/as/` path,
        which are in `said`. Of a target in absolute form or of CONNECT it is the target as sent.
        """


class Front:
    """
    The handler of every client connection.

    `exact` has surfaces by path and `serve_below` by prefix, of which the longest wins; `absolute` serves targets in
    absolute form but for `own` authorities, which are the data port's and served as if they were not named; `tunnels`
    serves CONNECT. `keeper` knows agents' keys, where there are any.
    """

    def __init__(self) -> None:
        self.exact: dict[bytes, Surface] = {}
        self._below: list[tuple[bytes, Surface]] = []  # longest prefix first
        self.absolute: Surface | None = None
        self.tunnels: Surface | None = None
        self.own: set[bytes] = set()
        self.keeper: Keeper | None = None
        self._familiar: set[bytes] = set()  # values of Host that no page of another site can say
        self.refused = 0
        self.is_closing = False  # from now on each answer is the last on its connection

    def serve_below(self, prefix: bytes, surface: Surface) -> None:
        """Let `surface` alone have every path that begins with `prefix` and no longer prefix, and is no exact one."""
        others = [pair for pair in self._below if pair[0] != prefix]
        self._below = sorted([*others, (prefix, surface)], key=lambda pair: -len(pair[0]))

    def on_request(self, end: ClientEnd, head: RequestHead) -> None:
        """Find the surface; a path without one, and who may not come in, is answered here."""
        path = head.target
        if self.is_closing:
            head.keep_alive = False
        if self.keeper is not None and (why := self.keeper.refuses(head.fields)) is not None:
            end.respond(*self._kept_out(end, head, why))
            return
        surface, fields = self.exact.get(path), head.fields
        if (
            surface is not None
            and HOP not in fields
            and ORIGIN not in fields
            and SITE not in fields
            and fields.get(b"host") in self._familiar
        ):
            end.call = surface.begin(end, head, path, None)
        else:
            self._look_closer(end, head)

    def on_whole(self, end: ClientEnd, head: RequestHead, body: bytes) -> None:
        """The same, for a request that is complete already."""
        self.on_request(end, head)
        listener = end.call
        if listener is not None:
            listener.on_body(body)
            if end.call is listener:
                listener.complete()

    def on_body(self, end: ClientEnd, data: bytes) -> None:
        """A piece of the request's body."""
        if end.call is not None:
            end.call.on_body(data)

    def on_body_end(self, end: ClientEnd) -> None:
        """The request is whole."""
        if end.call is not None:
            end.call.complete()

    def on_gone(self, end: ClientEnd) -> None:
        """The caller left."""
        if end.call is not None:
            end.call.on_gone()

    def on_pause(self, end: ClientEnd) -> None:
        """The caller reads too slowly."""
        if end.call is not None:
            end.call.on_pause()

    def on_resume(self, end: ClientEnd) -> None:
        """The caller caught up."""
        if end.call is not None:
            end.call.on_resume()

    def on_refused(self, _end: ClientEnd, bad: BadHead) -> answers.Reply:
        """What is no request is told in the form that its path is read in, as far as that is known."""
        self.refused += 1
        head = bad.head
        return answers.broken(bad, OPENAI if head is None or not _has_place(head) else self._shape(head))

    def _kept_out(self, end: ClientEnd, head: RequestHead, why: Reason) -> answers.Reply:
        """Why a request may not come in; who shows one wrong key after the other is told more and more slowly."""
        shape = self._shape(head)
        wait_ms = 0
        if why is Reason.CALLER_KEY_REFUSED and self.keeper is not None:
            wait_ms = self.keeper.guessed(end.peer)
        if not wait_ms:
            return answers.refusal(why, shape=shape)
        reply = answers.refusal(Reason.CALLER_KEY_THROTTLED, shape=shape)
        reply.headers.append((b"retry-after", b"%d" % -(-wait_ms // 1_000)))
        return reply

    def _look_closer(self, end: ClientEnd, head: RequestHead) -> None:
        if is_loop(head.fields.get(HOP, b"")):
            end.respond(*answers.refusal(Reason.GATE_LOOP, shape=self._shape(head)))
            return
        path, said = head.target, None
        try:
            surface: Surface | None
            if head.method == b"CONNECT":
                surface = self.tunnels
            elif (local := self._origin_form(path)) is None:
                surface = self.absolute
            else:
                path = local
                if (self.keeper is not None and self.keeper.required) or not is_foreign(head.fields):
                    self._know(head.fields.get(b"host"))  # whoever came so far where keys are required has shown one
                elif not self._shows_key(head):
                    end.respond(*answers.refusal(Reason.CALLER_OTHER_SITE, shape=self._shape(head)))
                    return
                if path.startswith(AS):
                    path, said = split_as(path)
                surface = self._at(path)
        except BadInput as bad:
            end.respond(*answers.bad_input(bad, self._shape(head)))
            return
        if surface is None:
            end.respond(*self._unknown(head))
        else:
            end.call = surface.begin(end, head, path, said)

    def _know(self, host: bytes | None) -> None:
        if host is not None and len(self._familiar) < MOST_HOSTS:
            self._familiar.add(host)

    def _shows_key(self, head: RequestHead) -> bool:
        return self.keeper is not None and self.keeper.scope(head.fields) is not None

    def _origin_form(self, target: bytes) -> bytes | None:
        """The target in origin form; None if it names somebody else's authority (RFC 9112 3.2.2)."""
        absolute = _ABSOLUTE.match(target)
        if absolute is None:
            return target if target.startswith((b"/", b"*")) else None
        if absolute[1].lower().removesuffix(_USUAL_PORT) not in self.own:
            return None
        path = target[absolute.end() :]
        return path if path.startswith(b"/") else b"/" + path

    def _at(self, path: bytes) -> Surface | None:
        surface = self.exact.get(path.partition(b"?")[0])
        if surface is None:
            surface = next((surface for prefix, surface in self._below if path.startswith(prefix)), None)
        return surface

    def _shape(self, head: Lines) -> Shape:
        """The form in which whoever sent this head reads errors: that of an SDK on the gate's own paths, RFC 9457 elsewhere."""
        path = self._origin_form(head.target) or b""
        if path.startswith(AS):
            path = b"/" + path[len(AS) :].partition(b"/")[2]
        return shape_of(path, head.fields) if path.startswith(b"/") and not path.startswith(TO) else PROBLEM

    def _unknown(self, head: RequestHead) -> answers.Reply:
        known = sorted([*self.exact, *[prefix + b"..." for prefix, _ in self._below]])
        shown = f"{head.method.decode()} {head.target[:_SHOWN].decode('ascii', 'replace')}"
        return answers.refusal(
            Reason.CALLER_UNKNOWN_PATH,
            f"{shown} is not served; served: {b', '.join(known).decode()}.",
            shape=self._shape(head),
        )


def _has_place(head: Lines) -> bool:
    """Whether the target of a head that was refused says where it was to go."""
    target = head.target
    return head.well_cut and (head.method == b"CONNECT" or target.startswith(b"/") or b"://" in target)


def authorities(host: str, port: int) -> set[bytes]:
    """The authorities that name a port which listens on `host`: as written there, and loopback's own names."""
    names = {host, "127.0.0.1", "localhost", "::1"}
    written = {f"[{name}]" if ":" in name else name for name in names}
    return {(name if port == 80 else f"{name}:{port}").lower().encode() for name in written}
