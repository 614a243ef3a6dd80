"""
The simulated network of one gate (ports.Transport): pools, delays, loss, resets, stalls.

Connections are only counted; `_held` says to which target the one leads that a call has and has not used yet, and
whether it was kept from an earlier call. Every send is a `Flight`; an event of a flight that was aborted, or whose gate crashed, is
dropped. A request is delivered when it arrives; until its acknowledgement came back it counts as undelivered.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from swarmgate.core.events import CONTENT, DELIVERED, READY, Ended, Lost, LostKind, Progress
from swarmgate.core.keys import KeyRing
from swarmgate.core.outcome import QuotaLeft, Signal, classify
from swarmgate.core.record import Call
from swarmgate.lab.sim.evidence import UNSEEN
from swarmgate.lab.sim.target import Reply, Request, SimTarget
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.ports import Fire

CONNECT_MS = 5_000
PROGRESS_MS = 5_000
LIES = (-1, 0, 1, 3_600_000, 2**53)  # a quota, or ms until its reset


class Flight:
    """One send on its way, by which process; `dead` flights are heard no more, `held` is what a stall holds up."""

    __slots__ = ("dead", "held", "process", "request", "target")

    def __init__(self, target: SimTarget, request: Request, process: int) -> None:
        self.process = process
        self.target = target
        self.request = request
        self.dead = False
        self.held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None


class SimWire:
    """The network as one gate sees it. `wanted` tells what a call is to the targets."""

    __slots__ = (
        "_flights",
        "_held",
        "_later",
        "_process",
        "_rng",
        "_time",
        "_weather",
        "dials",
        "fire",
        "idle",
        "reused",
        "sends",
        "targets",
        "wanted",
    )

    def __init__(
        self,
        time: VirtualTime,
        weather: Weather,
        rng: Random,
        targets: dict[str, SimTarget],
        wanted: Callable[[Call], Request],
    ) -> None:
        self._time = time
        self._weather = weather
        self._rng = rng
        self._later: Callable[..., None] = time.at
        self.targets = targets
        self.wanted = wanted
        self.fire: Fire
        self.idle = dict.fromkeys(targets, 0)
        self._held: dict[Call, tuple[str, bool]] = {}
        self._flights: dict[Flight, None] = {}
        self._process = 0
        self.dials = self.reused = self.sends = 0

    def bind(self, fire: Fire, later: Callable[..., None]) -> None:
        """`later` plans what this gate does; a gate that is dead or paused plans differently."""
        self.fire = fire
        self._later = later
        self._process += 1

    def cut(self) -> None:
        """The process died: its kernel closes every connection."""
        for flight in self._flights:
            flight.target.cancel(flight.request)
        self._flights.clear()
        self._held.clear()
        self.idle = dict.fromkeys(self.idle, 0)

    def connect(self, call: Call) -> None:
        """From the pool at once, or dialled in one round trip."""
        name = call.rungs[call.rung].target
        if self.idle[name]:
            self.idle[name] -= 1
            self.reused += 1
            self._held[call] = (name, True)
            call.wire = UNSEEN
            self.fire(call, READY)
            return
        self.dials += 1
        path = self.targets[name].path
        ready_ms = self._weather.moves_at_ms(name) + self._trip_ms(name) + path.sample(self._rng)
        if ready_ms > self._time.now_ms() + CONNECT_MS or self._weather.strikes("loss", name):
            self._later(self._time.now_ms() + CONNECT_MS, self._unconnected, call, call.attempt)
        else:
            self._later(ready_ms, self._connected, call, call.attempt, name)

    def _connected(self, call: Call, attempt: int, name: str) -> None:
        if call.end is not None or call.attempt != attempt:
            self.idle[name] += 1
        else:
            self._held[call] = (name, False)
            call.wire = UNSEEN
            self.fire(call, READY)

    def _trip_ms(self, name: str) -> int:
        """How long a message takes; in disorder it may be overtaken by later ones."""
        more_ms = self._weather.more_ms("reorder", name)
        return self.targets[name].path.sample(self._rng) + (self._rng.randint(0, more_ms) if more_ms else 0)

    def _unconnected(self, call: Call, attempt: int) -> None:
        if call.end is None and call.attempt == attempt:
            self.fire(call, Lost(LostKind.CONNECT, sent=False))

    def park(self, call: Call) -> None:
        """The connection stays open for the next, where it leads: the call may be at another rung by now."""
        held = self._held.pop(call, None)
        if held is not None:
            self.idle[held[0]] += 1

    def send(self, call: Call) -> None:
        """Put the request on its way."""
        name, kept = self._held.pop(call)
        target = self.targets[name]
        if kept and self._weather.strikes("stale", name):
            self.fire(call, Lost(LostKind.STALE, sent=False))
            return
        self.sends += 1
        flight = Flight(target, self.wanted(call), self._process)
        call.wire = flight
        self._flights[flight] = None
        if self._weather.strikes("loss", name):
            return  # the alarm of the call will find out
        if self._weather.strikes("reset", name):
            self._later(self._time.now_ms() + self._trip_ms(name), self._reset, call, flight)
            return
        arrives_ms = self._weather.moves_at_ms(name) + self._trip_ms(name)
        self._time.at(arrives_ms, self._arrive, call, flight)

    def _reset(self, call: Call, flight: Flight) -> None:
        if not flight.dead:
            flight.target.cancel(flight.request)
            self._end(flight)
            self.fire(call, Lost(LostKind.RESET, sent=True))

    def _end(self, flight: Flight) -> None:
        flight.dead = True
        self._flights.pop(flight, None)

    def _arrive(self, call: Call, flight: Flight) -> None:
        """Also what a dead gate had sent arrives."""
        target = flight.target
        reply = target.arrive(flight.request)
        back_ms = self._trip_ms(target.settings.name)
        if flight.dead or flight.process != self._process:
            target.cancel(flight.request)  # the end of its connection comes right behind it
            return
        here_ms = self._time.now_ms() + back_ms
        self._later(here_ms, self._comes, flight, self._delivered, call)
        if self._weather.strikes("loss", target.settings.name):
            return
        if self._weather.strikes("reset", target.settings.name):
            self._later(here_ms + self._rng.randint(0, reply.last_ms), self._reset, call, flight)
        if reply.status != 200:
            self._later(here_ms + reply.last_ms, self._comes, flight, self._refused, call, reply)
            return
        output = flight.request.output
        if reply.last_ms > reply.first_ms:
            self._later(here_ms + reply.first_ms, self._comes, flight, self._content, call)
            for at_ms in range(reply.first_ms + PROGRESS_MS, reply.last_ms, PROGRESS_MS):
                part = output * PROGRESS_MS // reply.last_ms
                self._later(here_ms + at_ms, self._comes, flight, self._progress, call, part)
                output -= part
        self._later(here_ms + reply.last_ms, self._comes, flight, self._ended, call, output)

    def _comes(self, flight: Flight, act: Callable[..., None], *arguments: Any) -> None:
        """Bytes of the target come in their order, after a stall all of them at once; those of a dead flight never."""
        if flight.held is not None:
            flight.held.append((act, arguments))
            return
        moves_ms = self._weather.moves_at_ms(flight.target.settings.name)
        if moves_ms > self._time.now_ms() and not flight.dead:
            flight.held = [(act, arguments)]
            self._later(moves_ms, self._flush, flight)
        elif not flight.dead:
            act(flight, *arguments)

    def _flush(self, flight: Flight) -> None:
        held, flight.held = flight.held or [], None
        for act, arguments in held:
            if not flight.dead:
                act(flight, *arguments)

    def _delivered(self, flight: Flight, call: Call) -> None:
        if call.wire is flight:
            self.fire(call, DELIVERED)

    def _content(self, _flight: Flight, call: Call) -> None:
        self.fire(call, CONTENT)

    def _progress(self, _flight: Flight, call: Call, part: int) -> None:
        self.fire(call, Progress(part))

    def _ended(self, flight: Flight, call: Call, output: int) -> None:
        self._close(flight)
        self._lie(call, flight.target.settings.name)
        self.fire(call, Ended(classify(Signal(status=200)), output, output=output))

    def _lie(self, call: Call, name: str) -> None:
        """A lying target's word on what remains of its quota."""
        ring = call.rungs[call.rung].ring
        if call.route is not None and isinstance(ring, KeyRing) and self._weather.strikes("lie", name):
            remaining, reset_ms = self._rng.choice(LIES), self._rng.choice(LIES)
            now_ms = self._time.now_ms()
            ring.report(call.route.key, QuotaLeft(remaining, max(0, now_ms + reset_ms)), call.sent_ms, now_ms)

    def _refused(self, flight: Flight, call: Call, reply: Reply) -> None:
        self._close(flight)
        concurrent = reply.status == 429 and reply.wait_ms is None
        message = "too many concurrent requests" if concurrent else ""
        signal = Signal(status=reply.status, message=message, hint_ms=reply.wait_ms)
        self.fire(call, Ended(classify(signal), 0))

    def _close(self, flight: Flight) -> None:
        self._end(flight)
        self.idle[flight.target.settings.name] += 1

    def abort(self, call: Call) -> None:
        """Drop the connection; what is on its way still arrives, unless it is overtaken by the end of its connection."""
        self._held.pop(call, None)
        if isinstance(call.wire, Flight) and not call.wire.dead:
            call.wire.target.cancel(call.wire.request)
            self._end(call.wire)
