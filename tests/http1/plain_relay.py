"""The smallest gate: every request goes to one origin, every answer back; real sockets, any loop."""

import asyncio
from collections.abc import Awaitable, Callable

import uvloop

from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.cork import Cork
from swarmgate.http1.dial import Dialler, Endpoint
from swarmgate.http1.owner import Owner
from swarmgate.http1.render import error_body, passed_on, request_head
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.tls import NO_TLS, Contexts
from swarmgate.http1.upstreams import DEFAULT_LIMITS, Origin, PoolLimits, Upstreams

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run(loop_name: str, scenario: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        runner.run(scenario())


class Exchange(Owner):
    """One call: body held, then sent; the answer streamed."""

    rank = 1

    def __init__(self, relay, end, head):
        self.relay, self.end, self.head = relay, end, head
        self.body, self.up, self.begun = b"", None, False

    def on_connection(self, up):
        self.up = up
        head = self.head
        data = request_head(head.method, head.target, b"target", passed_on(head), length=len(self.body)) + self.body
        assert up.send(self, head.method, data)

    def on_no_connection(self, fault):
        self.relay.log.append(("fault", fault))
        headers, body = error_body(502, fault.code, fault.sentence)
        self.end.respond(502, headers, body)

    def on_head(self, head):
        self.begun = True
        self.end.start_stream(head.status, passed_on(head), head.content_length)

    def on_chunk(self, payload):
        self.end.write_chunk(payload)

    def on_end(self):
        self.up = None
        self.end.finish()

    def on_lost(self, fault, first_byte_seen):
        self.up = None
        if self.begun:
            self.relay.log.append(("fault", fault))
            self.end.cut()
        else:
            self.on_no_connection(fault)

    def on_upload_pause(self):
        self.end.pause()

    def on_upload_resume(self):
        self.end.resume()


class PlainRelay:
    def __init__(self, upstream_port: int, limits: PoolLimits = DEFAULT_LIMITS, tls: Contexts = NO_TLS):
        loop = asyncio.get_running_loop()
        self.tls = tls
        self.loop, self.log = loop, []
        self.ends = []
        self.cleanup = []  # uvloop waits for ever for what a failed test leaves open (its warning is an error here)
        self.origin = Origin("http", "127.0.0.1", upstream_port)
        self.sweep = Sweep(loop, Cork(loop.call_soon))
        self.sweep.start()
        self.upstreams = Upstreams(
            loop,
            self.sweep,
            lambda origin, located: located(Endpoint((origin.host,), origin.port, tls.targets)),
            limits,
            Dialler(loop, small_reads=tls.callers is not None),
        )

    async def __aenter__(self):
        self.server = await self.loop.create_server(self.accept, "127.0.0.1", 0, ssl=self.tls.callers)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def accept(self):
        self.ends.append(ClientEnd(self, self.sweep))
        return self.ends[-1]

    async def __aexit__(self, *exc):
        self.server.close()
        self.upstreams.close()
        self.sweep.stop()
        for end in self.ends:
            end._transport.abort()
        for close in self.cleanup:
            close()

    @property
    def pool(self):
        return self.upstreams.hosts[self.origin].pool

    def on_request(self, end, head):
        end.call = Exchange(self, end, head)
        end.want_body()

    def on_whole(self, end, head, body):
        self.on_request(end, head)
        self.on_body(end, body)
        self.on_body_end(end)

    def on_body(self, end, data):
        end.call.body += data

    def on_body_end(self, end):
        self.upstreams.connect(self.origin, end.call)

    def on_gone(self, end):
        self.log.append("gone")
        call = end.call
        if call.up:
            call.up.abandon()
        else:
            self.upstreams.withdraw(self.origin, call)

    def on_pause(self, end):
        self.log.append("pause")
        end.call.up.pause()

    def on_resume(self, end):
        end.call.up.resume()

    def on_refused(self, end, bad):
        self.log.append(bad.reason)


class Script(asyncio.Protocol):
    """A target that plays a part: `play(self, request)` is called with each whole request (told apart by its blank line)."""

    def __init__(self, target):
        self.target = target
        self.held = b""

    def connection_made(self, transport):
        self.transport = transport
        self.target.connections.append(self)
        self.lost = False

    def data_received(self, data):
        self.held += data
        head, blank, _ = self.held.partition(b"\r\n\r\n")
        while blank:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            end = len(head) + 4 + length
            if len(self.held) < end:
                return
            request, self.held = self.held[:end], self.held[end:]
            self.target.requests.append(request)
            self.target.play(self.transport, request)
            head, blank, _ = self.held.partition(b"\r\n\r\n")

    def connection_lost(self, exc):
        self.lost = True


class Target:
    def __init__(self, play):
        self.play, self.requests, self.connections = play, [], []

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Script(self), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc):
        self.server.close()
        for connection in self.connections:
            connection.transport.abort()
