"""A transport without a socket; a handler and an owner that write down what they hear."""

from collections.abc import Callable
from socket import AF_UNIX

from swarmgate.http1 import owner
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstream_end import UpstreamEnd


class StoppedLoop:
    """A loop whose clock stands still: sweeps are moved by hand."""

    def time(self) -> float:
        return 0.0


class FakeTransport:
    family = AF_UNIX

    def __init__(self) -> None:
        self.written = b""
        self.closed = self.aborted = self.eof_written = self.paused = False
        self.options: list[tuple] = []
        self.unread = 0

    def write(self, data: bytes) -> None:
        assert not self.eof_written
        if not self.aborted:
            self.written += data

    def write_eof(self) -> None:
        self.eof_written = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        self.high, self.low = high, low

    def get_extra_info(self, name: str) -> object:
        return {"socket": self, "peername": ("127.0.0.1", 5)}[name]

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *option) -> None:
        self.options.append(option)


class Recorder:
    """Writes down each event; `at_once`, `at_body` and `answer` may answer at the head, at payload, at the end."""

    def __init__(self, answer: Callable[[ClientEnd], None] | None = None) -> None:
        self.events: list[tuple] = []
        self.answer = answer or (lambda end: None)
        self.at_once = self.at_body = lambda end: None
        self.body = b""

    def on_request(self, end, head):
        self.body = b""
        self.events.append(("request", head.method, head.target))
        self.at_once(end)

    def on_whole(self, end, head, body):
        self.on_request(end, head)
        if end.head is head:
            self.on_body(end, body)
        if end.head is head:
            self.on_body_end(end)

    def on_body(self, end, data):
        assert data
        self.body += data
        self.at_body(end)

    def on_body_end(self, end):
        self.events.append(("complete", self.body))
        self.answer(end)

    def on_gone(self, end):
        self.events.append(("gone",))

    def on_pause(self, end):
        self.events.append(("pause",))

    def on_resume(self, end):
        self.events.append(("resume",))

    def on_refused(self, end, bad):
        self.events.append(("refused", bad.reason))


class Line:
    """One client connection on a fake transport."""

    def __init__(self, answer: Callable[[ClientEnd], None] | None = None) -> None:
        self.sweep = Sweep(StoppedLoop())
        self.heard = Recorder(answer)
        self.end = ClientEnd(self.heard, self.sweep)
        self.transport = FakeTransport()
        self.end.connection_made(self.transport)

    def send(self, *reads: bytes) -> None:
        for data in reads:
            if data and not self.transport.closed:
                self.end.data_received(data)

    def pass_ms(self, ms: int) -> None:
        self.sweep.look(self.sweep.now_ms + ms)

    @property
    def events(self) -> list[tuple]:
        return self.heard.events

    @property
    def written(self) -> bytes:
        return self.transport.written


class Owner(owner.Owner):
    """Owns exchanges: `events` in order, chunks joined in `body`; `then` runs inside the event of that name."""

    def __init__(self, then: dict[str, Callable[[], object]] | None = None) -> None:
        self.events: list[tuple] = []
        self.body = b""
        self.then = then or {}

    def hear(self, *event) -> None:
        self.events.append(event)
        self.then.get(event[0], lambda: None)()

    def on_head(self, head):
        self.body = b""
        self.hear("head", head.status)

    def on_chunk(self, payload):
        assert payload
        self.body += payload
        self.then.get("chunk", lambda: None)()

    def on_end(self):
        self.hear("end", self.body)

    def on_lost(self, fault, first_byte_seen):
        assert fault.may_have_left
        self.hear("lost", fault, first_byte_seen)

    def on_upload_pause(self):
        self.hear("pause")

    def on_upload_resume(self):
        self.hear("resume")


class Far:
    """One upstream connection on a fake transport; `events` also tells when its pool hears of it."""

    def __init__(self, then: dict[str, Callable[[], object]] | None = None) -> None:
        self.sweep = Sweep(StoppedLoop())
        self.end = UpstreamEnd(self.sweep, self)
        self.transport = FakeTransport()
        self.owner = Owner(then)
        self.end.connection_made(self.transport)

    def on_free(self, end):
        self.owner.hear("free")

    def on_closed(self, end):
        self.owner.hear("closed")

    def receive(self, *reads: bytes) -> None:
        for data in reads:
            if data and not self.transport.aborted:
                self.end.data_received(data)

    def pass_ms(self, ms: int) -> None:
        self.sweep.look(self.sweep.now_ms + ms)

    @property
    def events(self) -> list[tuple]:
        return self.owner.events
