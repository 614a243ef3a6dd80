"""A TLS layer stops reading with its connection; of a layer that has none, nothing is asked."""

from wire import FakeTransport, StoppedLoop

from swarmgate.http1.cork import Cork
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstream_end import UpstreamEnd

READS, STOPS = (1, 0), (0, 0)


class TlsTransport(FakeTransport):
    def __init__(self):
        super().__init__()
        self.limits = []

    def set_read_buffer_limits(self, high, low):
        self.limits.append((high, low))


def connected(transport, later):
    end = UpstreamEnd(Sweep(StoppedLoop(), Cork(later.append)), home=None)
    end.connection_made(transport)
    return end


def test_tls_is_paused_a_moment_after_its_connection_and_reads_on_with_it():
    transport, later = TlsTransport(), []
    end = connected(transport, later)
    assert transport.limits == [READS]
    end.pause()
    assert transport.limits == [READS]
    later.pop()()
    assert transport.limits == [READS, STOPS]
    end.resume()
    assert transport.limits == [READS, STOPS, READS]
    assert not transport.paused


def test_tls_that_reads_on_before_that_moment_or_is_closed_by_then_is_left_alone():
    transport, later = TlsTransport(), []
    end = connected(transport, later)
    end.pause()
    end.resume()
    later.pop()()
    assert STOPS not in transport.limits
    end.pause()
    transport.close()
    told = list(transport.limits)
    later.pop()()
    end.resume()
    assert transport.limits == told


def test_in_clear_text_nothing_is_put_off():
    transport, later = FakeTransport(), []
    end = connected(transport, later)
    end.pause()
    assert transport.paused
    end.resume()
    assert not transport.paused
    assert not later
