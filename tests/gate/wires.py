"""The gate without sockets: transports that only remember, so that any order of events can be played at will."""

from swarmgate import config, wiring
from swarmgate.gate.service import Door, Gate
from swarmgate.http1.faults import Fault


class Wire:
    """An asyncio transport that keeps what was written."""

    def __init__(self):
        self.written = []
        self.closing = False
        self.paused = False
        self.unread = 0

    def write(self, data):
        self.written.append(bytes(data))

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def is_closing(self):
        return self.closing

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False

    def get_write_buffer_size(self):
        return self.unread

    def get_extra_info(self, name):
        return ("127.0.0.1", 1) if name == "peername" else self

    def fileno(self):
        return -1

    def setsockopt(self, *_option):
        pass

    def can_write_eof(self):
        return True

    def write_eof(self):
        pass

    def abort(self):
        self.closing = True

    close = abort


class Alarm:
    """What `call_at` returns."""

    def __init__(self, at_s, act):
        self.at_s = at_s
        self.act = act
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class Loop:
    """An event loop whose clock stands where the test puts it; nothing is ever run by it."""

    def __init__(self):
        self.now_s = 1_000.0
        self.alarms = []

    def time(self):
        return self.now_s

    def call_at(self, at_s, act):
        alarm = Alarm(at_s, act)
        self.alarms.append(alarm)
        return alarm

    def call_soon(self, act, *arguments):
        act(*arguments)


class Dialler:
    """Dials that wait until the test says how they end."""

    def __init__(self):
        self.dials = []
        self.opened = []

    def dial(self, _endpoint, make, outcome):
        self.dials.append((make, outcome))

    def succeed(self):
        make, outcome = self.dials.pop(0)
        end = make()
        wire = Wire()
        end.connection_made(wire)
        self.opened.append((end, wire))
        outcome(end)

    def fail(self):
        self.dials.pop(0)[1](Fault.CONNECT_REFUSED)

    def close(self):
        self.dials.clear()


class Bench:
    """One gate and one client connection, driven by hand."""

    def __init__(self, text):
        self.loop = Loop()
        self.bugs = []
        self.gate = Gate_(self.loop, text, self.bugs)
        self.dialler = self.gate.upstreams.dialler = Dialler()
        self.client = Door(self.gate.front, self.gate.sweep, self.gate.doors, 100)
        self.wire = Wire()
        self.client.connection_made(self.wire)

    def pass_time(self, ms):
        self.loop.now_s += ms / 1_000
        for alarm in [one for one in self.loop.alarms if one.at_s <= self.loop.now_s]:
            self.loop.alarms.remove(alarm)
            if not alarm.cancelled:
                alarm.act()
        self.gate.sweep.look(int(self.loop.now_s * 1_000))

    @property
    def reserved(self):
        cells = self.gate.store.book.cells.values()
        return sum(lease.amount for cell in cells for lease in cell.leases.values() if not lease.firm)

    @property
    def ends(self):
        return [entry.noted.end.value for entry in self.gate.journal.entries if hasattr(entry.noted, "end")]


def Gate_(loop, text, bugs) -> Gate:  # noqa: N802  it stands for the class
    return wiring.gate(loop, config.parse(text, {"KEY": "sk-1"}), lambda _call, error: bugs.append(error))
