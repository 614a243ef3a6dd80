"""
Usage injection: a stream that would not count its tokens is asked to, and the caller sees none of it (design 5).

Some providers count a stream only where `stream_options.include_usage` asks for it (`Dialect.injects_usage`). Where the
gate asked, the event that holds nothing but the usage is kept here. To know it, whole events are held, each up to
`MOST_CARRIED_BYTES`; everything else goes on byte by byte as it came. Streams of callers who asked themselves pass as ever.
"""

import re
from typing import Final

from swarmgate.core.record import Call
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.taps import LONGEST_END, MOST_CARRIED_BYTES, SSE_END, SealedTap, counts_only
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.transport import Attempt
from swarmgate.http1.head import ResponseHead
from swarmgate.providers.dialect import CHAT, COMPLETIONS

INJECTED: Final = frozenset({CHAT.encode(), COMPLETIONS.encode()})  # the surfaces that know `stream_options`
_BLANK_LINE: Final = b"\n\n"
_may_hold_usage: Final = re.compile(rb'"usage"\s*:\s*\{').search


class Sieve:
    """Cuts a stream where its events end, and tells those apart that only count."""

    __slots__ = ("_is_long", "carry")

    def __init__(self) -> None:
        self.carry = bytearray()  # an event whose end has not come
        self._is_long = False  # its beginning was too long to hold, and has gone on

    def feed(self, payload: bytes) -> tuple[bytes, bytes]:
        """What of the stream goes on now, and the events that stay here."""
        carry = self.carry
        unseen = max(0, len(carry) - LONGEST_END + 1)  # what was searched once is not searched again
        carry += payload
        goes_on, stays = bytearray(), bytearray()
        begins = 0
        for end in SSE_END.finditer(carry, unseen):
            event = bytes(carry[begins : end.end()])
            (stays if not self._is_long and _is_kept(event) else goes_on).extend(event)
            begins, self._is_long = end.end(), False
        del carry[:begins]
        if self._is_long or len(carry) > MOST_CARRIED_BYTES:
            self._is_long = True
            goes_on += carry[: 1 - LONGEST_END]
            del carry[: 1 - LONGEST_END]  # what may be the beginning of its end
        return bytes(goes_on), bytes(stays)

    def close(self) -> tuple[bytes, bytes]:
        """The stream is over: its last event lacks the blank line."""
        rest = bytes(self.carry)
        self.carry.clear()
        return (b"", rest) if not self._is_long and _is_kept(rest) else (rest, b"")


def _is_kept(event: bytes) -> bool:
    return _may_hold_usage(event) is not None and counts_only(event)


class InjectedAttempt(Attempt):
    """An attempt whose stream the gate asked to count: what only counts is read, and not passed on."""

    __slots__ = ("_sieve",)

    def __init__(self, exchanges: Exchanges, call: Call, target: ModelTarget) -> None:
        super().__init__(exchanges, call, target)
        self._sieve: Sieve | None = None

    def on_head(self, head: ResponseHead) -> None:
        """Only events that can be read are told apart."""
        super().on_head(head)
        self._sift()

    def hear_unnamed(self, payload: bytes) -> None:
        """They can be read here, too."""
        super().hear_unnamed(payload)
        self._sift()

    def _sift(self) -> None:
        if self.stream is not None and not isinstance(self.stream, SealedTap):
            self._sieve = Sieve()

    def on_chunk(self, payload: bytes) -> None:
        """Mostly a read holds whole events without a count; else they are looked at one by one."""
        if self.stream is None:
            self.hear_unnamed(payload)
        sieve = self._sieve
        if sieve is None or (not sieve.carry and payload[-2:] == _BLANK_LINE and _may_hold_usage(payload) is None):
            super().on_chunk(payload)
        else:
            self._pass(*sieve.feed(payload))

    def on_end(self) -> None:
        """The answer is whole, its last event perhaps without an end."""
        if self._sieve is not None and self._sieve.carry:
            self._pass(*self._sieve.close())
            if self.call.wire is not self:
                return  # its caller left while it was told
        super().on_end()

    def _pass(self, goes_on: bytes, stays: bytes) -> None:
        if stays and self.stream is not None:
            self.got_bytes += len(stays)
            self.stream.hear(stays)
        if goes_on:
            super().on_chunk(goes_on)
