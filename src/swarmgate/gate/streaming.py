"""
The caller's side of a request whose body is not read: it comes in while it goes out, and so does the answer.

A body up to 64 KiB is held, so that a read may be sent again. A longer one makes its call begin at once and streams:
it can be sent only once, so its call is a write. Whoever is slower, caller or target, slows the other down.
"""

from collections.abc import Callable

from swarmgate.core.commands import Answer, End
from swarmgate.core.events import CLIENT_LEFT
from swarmgate.core.record import Call, Step
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.egress.fetch import MOST_HELD_BYTES, Fetch
from swarmgate.gate.exchange import Exchange, Exchanges
from swarmgate.gate.once import key_of
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import Header, RequestHead, ResponseHead
from swarmgate.http1.render import LAST_CHUNK, frame


class Streaming:
    """
    One request and its answer (exchange.Caller but for `attempt`, front.Listener, fetch.Source).

    `call` is None until enough of the body is here; what differs between surfaces is asked of the methods at the end.
    """

    __slots__ = ("_exchanges", "_fetch", "_head", "_held", "_is_early", "_is_whole", "_size", "call", "end")

    def __init__(self, exchanges: Exchanges, end: ClientEnd, head: RequestHead) -> None:
        self._exchanges = exchanges
        self.call: Call | None = None
        self.end: CallerEnd = end
        self._head = head
        self._held: list[bytes] = []
        self._size = 0
        self._is_early = self._is_whole = False
        self._fetch: Fetch | None = None  # to which the body streams

    @property
    def streams(self) -> bool:
        """Whether the body is sent while it comes in, and so can be sent only once."""
        return self._size > MOST_HELD_BYTES or (self._is_early and not self._is_whole)

    @property
    def fields(self) -> dict[bytes, bytes]:
        """The fields of its head."""
        return self._head.fields

    def reply(self, reply: Reply) -> None:
        """Answer with something of ours; there is no call any more."""
        self.call = None
        self.end.respond(*reply)

    @property
    def size(self) -> int:
        """Bytes of the body so far."""
        return self._size

    def begin_early(self, step: Step) -> None:
        """
        A caller that waits for `100 Continue` hears it when its request may go, or a final answer instead (HI-08).

        What a write with a key asks for must be known first. Errors: `BadInput` for a key that cannot be used.
        """
        if b"expect" not in self.fields:
            return
        if key_of(self.fields, step, "") is not None:
            self.end.want_body()
            return
        self._is_early = True
        self.end.pause()
        self.begin_call()

    def on_body(self, data: bytes) -> None:
        """A piece of the request's body."""
        self._size += len(data)
        if self._fetch is not None:
            self._fetch.upload(self._framed(data), complete=False)
            return
        self._held.append(data)
        if self.streams:
            self.end.pause()
            if self.call is None:
                self.begin_call()

    def complete(self) -> None:
        """The request is whole."""
        self._is_whole = True
        if self._fetch is not None:
            self._fetch.upload(LAST_CHUNK if self._is_chunked else b"", complete=True)
        elif self.call is None:
            self.begin_call()

    def on_gone(self) -> None:
        """The caller left."""
        if self.call is not None:
            self._exchanges.hear_out(self.call)
            self._exchanges.fire(self.call, CLIENT_LEFT)

    def on_pause(self) -> None:
        """The caller reads too slowly: stop the host."""
        if self.call is not None and isinstance(self.call.wire, Fetch):
            self.call.wire.pause()

    def on_resume(self) -> None:
        """The caller caught up."""
        if self.call is not None and isinstance(self.call.wire, Fetch):
            self.call.wire.resume()

    def opening(self) -> tuple[bytes, bool]:
        """The request as far as it is here."""
        body = b"".join(self._held)
        length = self._head.content_length if self.streams else (self._size or None)
        chunked = self.streams and self._is_chunked
        head = self.opening_head(length, chunked=chunked)
        if chunked:
            body = frame(body) + (LAST_CHUNK if self._is_whole else b"")
        return head + body, self._is_whole

    def sent_opening(self, fetch: Fetch) -> None:
        """What comes in from now on goes out at once."""
        if not self._is_whole:
            self._held.clear()
            self._fetch = fetch
            self.end.resume()
            if self._is_early:
                self.end.want_body()

    def stop_upload(self) -> None:
        """The host takes no more for now."""
        if not self._is_whole:
            self.end.pause()

    def go_on_with_upload(self) -> None:
        """It does again."""
        if not self._is_whole:
            self.end.resume()

    def show(self, call: Call) -> None:
        """Let the answer be seen from its head on."""
        fetch = call.wire
        assert isinstance(fetch, Fetch)
        assert fetch.head is not None
        self.end.start_stream(fetch.head.status, self.answer_headers(call, fetch.head), fetch.head.content_length)
        fetch.go_through(self.writer())
        if self.end.is_full:
            fetch.pause()

    def tell(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        """Say how the call ended, once."""
        self.call = self._fetch = None
        fetch = exchange if isinstance(exchange, Fetch) else None
        if answer.end is End.CANCELLED:
            return
        if call.committed:
            self._finish(whole=fetch is not None and fetch.whole)
            return
        head = fetch.head if fetch is not None else None
        if fetch is not None and head is not None and fetch.whole and answer.end is not End.DEFERRED:
            self._relay(call, fetch, head)
            return
        if not self._is_whole:
            self.end.resume()  # whoever still writes must come to its end to read this
        reply = self.told(call, answer)
        if head is not None:
            reply.headers.append(answers.theirs(head.status))
        self.end.respond(*reply)

    def _finish(self, *, whole: bool) -> None:
        if whole:
            self.end.finish()
        else:
            self.end.cut()

    def _relay(self, call: Call, fetch: Fetch, head: ResponseHead) -> None:
        """An error of the host, as it came."""
        length = head.content_length if fetch.method == b"HEAD" else fetch.held_bytes
        self.end.start_stream(head.status, self.answer_headers(call, head), length)
        self.end.write_chunk(self.shown(fetch.body))
        self.end.finish()

    @property
    def _is_chunked(self) -> bool:
        return self._head.content_length is None

    def _framed(self, data: bytes) -> bytes:
        return frame(data) if self._is_chunked else data

    # What differs.

    def shown(self, error: bytes) -> bytes:
        """What a caller may see of an error of the host, of the same length."""
        return error

    def writer(self) -> Callable[[bytes], None]:
        """Where the pieces of an answer go."""
        return self.end.write_chunk

    def begin_call(self) -> None:
        """Begin the call: the body is whole, or too long to be held."""
        raise NotImplementedError

    def opening_head(self, length: int | None, *, chunked: bool) -> bytes:
        """The head of the request as the next attempt sends it."""
        raise NotImplementedError

    def answer_headers(self, call: Call, head: ResponseHead) -> list[Header]:
        """What the caller may see of an answer's headers, and how the call was served."""
        raise NotImplementedError

    def told(self, call: Call, answer: Answer) -> Reply:
        """What is said of a call that has no answer of its target."""
        raise NotImplementedError
