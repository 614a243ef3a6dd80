"""Records as a gate makes them, for tests of one part; the compiled form takes no others, and no notes on its own objects."""

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


def fields_in(one):
    """All that an object of ours remembers, by name."""
    return vars(one) if hasattr(one, "__dict__") else {name: getattr(one, name) for name in fields_of(type(one))}


def a_head(*headers, method="POST", target="/v1/chat/completions"):
    """A request's head that says so."""
    lines = [f"{method} {target} HTTP/1.1", "host: gate", *headers]
    return parse_request("\r\n".join([*lines, "", ""]).encode())


class Beside:
    """An object of ours with notes of a test: the compiled form takes none."""

    def __init__(self, one, **notes):
        self.__dict__.update(notes, _one=one)

    def __getattr__(self, name):
        return getattr(self._one, name)

    def __setattr__(self, name, value):
        setattr(self._one, name, value)
