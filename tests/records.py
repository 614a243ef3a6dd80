"""Records as a gate makes them, for tests of a part that only hands them on; the compiled form takes no others."""

from swarmgate.core.record import Call
from swarmgate.core.waiting import Room
from swarmgate.http1.head import parse_request


def a_call(identity="c1", client=None, rungs=()):
    """A call that nothing has happened to; `client` is for whoever asks with it."""
    call = Call(identity, rungs, Room(), rank=1, arrived_ms=0)
    call.client = client
    return call


def fields_of(kind):
    """The names of what objects of a class of ours remember: its slots, or what a compiled one has instead."""
    return getattr(kind, "__mypyc_attrs__", ()) or kind.__slots__


def a_head(*headers, method="POST", target="/v1/chat/completions"):
    """A request's head that says so."""
    lines = [f"{method} {target} HTTP/1.1", "host: gate", *headers]
    return parse_request("\r\n".join([*lines, "", ""]).encode())
