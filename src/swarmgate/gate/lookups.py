"""
Look-ups of names in threads: the C library blocks for as long as it likes, and a name server may be silent on purpose.

So a look-up is awaited for 2 s, counted from when it begins, and then gives its place to the next one while its thread blocks
on. One domain has two threads. Names of a domain that was silent lately wait for nothing: they are tried where there is a
thread to spare, and else fail at once. So whoever names silent domains slows down those alone; to hold up everybody else it
takes several new ones every second.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

AT_ONCE: Final = 16
THREADS: Final = 64  # with those of look-ups that nobody awaits any more
PER_DOMAIN: Final = 2
SILENT_THREADS: Final = 8  # of all domains that were silent, together; each has one
SILENT_S: Final = 600
MOST_SILENT: Final = 4_096
LOOK_UP_S: Final = 2.0


class Found(NamedTuple):
    """What a look-up yielded: every address of a name, and the name at the end of its aliases."""

    addresses: tuple[str, ...]
    canonical: str = ""


LookUp = Callable[[str], Found]
Told = Callable[[Found | BaseException], None]


class _Asking:
    """One name that is looked up, or waits for it; `told` is None once that was told."""

    __slots__ = ("domain", "name", "told", "was_silent")

    def __init__(self, name: str, domain: str, told: Told) -> None:
        self.name = name
        self.domain = domain
        self.told: Told | None = told
        self.was_silent = False

    def tell(self, found: Found | BaseException) -> None:
        """Once."""
        told, self.told = self.told, None
        if told is not None:
            told(found)


class Lookups:
    """Asks for names of registrable domains, in order; `begun` counts."""

    def __init__(self, loop: asyncio.AbstractEventLoop, look_up: LookUp) -> None:
        self._loop = loop
        self._look_up = look_up
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="resolve")
        self._next: deque[_Asking] = deque()
        self._queued: dict[str, deque[_Asking]] = {}  # names that wait for one of their domain to end
        self._of_domain: Counter[str] = Counter()  # names that have a thread, or are the next to have one
        self._silent: dict[str, float] = {}  # until when, by domain
        self._awaited = self._blocked = self._blocked_by_silent = 0
        self._is_closed = False
        self.begun = 0

    def __len__(self) -> int:
        """How many names have a thread or wait for one."""
        return self._of_domain.total() + sum(map(len, self._queued.values()))

    def ask(self, name: str, domain: str, told: Told) -> None:
        """Tell `told` once what a name of a domain leads to, or the error; TimeoutError where nobody answers for 2 s."""
        one = _Asking(name, domain, told)
        if self._silent.get(domain, 0) > self._loop.time():
            one.was_silent = True
            if (
                self._of_domain[domain]
                or self._blocked_by_silent >= SILENT_THREADS
                or self._next
                or not self._has_place
            ):
                told(TimeoutError())
                return
        if self._of_domain[domain] < PER_DOMAIN:
            self._admit(one)
        else:
            self._queued.setdefault(domain, deque()).append(one)

    def close(self) -> None:
        """Begin nothing more; who waits hears nothing more."""
        self._is_closed = True
        self._next.clear()
        self._queued.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _has_place(self) -> bool:
        return self._awaited < AT_ONCE and self._blocked < THREADS

    def _admit(self, one: _Asking) -> None:
        self._of_domain[one.domain] += 1
        self._next.append(one)
        self._fill()

    def _fill(self) -> None:
        while self._next and self._has_place:
            self._begin(self._next.popleft())

    def _begin(self, one: _Asking) -> None:
        self.begun += 1
        self._awaited += 1
        self._blocked += 1
        self._blocked_by_silent += one.was_silent
        timer = self._later(LOOK_UP_S, self._gave_up, one)
        self._pool.submit(self._look_up, one.name).add_done_callback(partial(self._in_thread, one, timer))

    def _later(self, after_s: float, act: Callable[[_Asking], None], one: _Asking) -> asyncio.TimerHandle:
        return self._loop.call_later(after_s, act, one)

    def _in_thread(self, one: _Asking, timer: asyncio.TimerHandle, work: Future[Found]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._ended, one, timer, work)

    def _ended(self, one: _Asking, timer: asyncio.TimerHandle, work: Future[Found]) -> None:
        """The thread is free, which may be long after its look-up was given up."""
        self._blocked -= 1
        self._blocked_by_silent -= one.was_silent
        self._of_domain[one.domain] -= 1
        if not self._of_domain[one.domain]:
            del self._of_domain[one.domain]
        if one.told is not None and not work.cancelled():
            timer.cancel()
            self._silent.pop(one.domain, None)
            self._awaited -= 1
            error = work.exception()
            one.tell(work.result() if error is None else error)
        self._begin_queued(one.domain)
        self._fill()

    def _gave_up(self, one: _Asking) -> None:
        if self._is_closed:
            return
        self._silent.pop(one.domain, None)
        while len(self._silent) >= MOST_SILENT:
            del self._silent[next(iter(self._silent))]
        self._silent[one.domain] = self._loop.time() + SILENT_S
        self._awaited -= 1
        for waiting in (one, *self._queued.pop(one.domain, ())):
            waiting.tell(TimeoutError())
        self._fill()

    def _begin_queued(self, domain: str) -> None:
        queued = self._queued.get(domain)
        if queued is None:
            return
        one = queued.popleft()
        if not queued:
            del self._queued[domain]
        self._admit(one)
