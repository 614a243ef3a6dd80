"""
Other people's web hosts: thousands of names behind few ports, each with a limit of its own and its own way to say no.

The Host header decides who is meant; names are made when they are first asked for, up to a bound.
"""

import asyncio
from email.utils import formatdate
from functools import partial
from random import Random

from swarmgate.engine.clock import unix_s
from swarmgate.http1.head import Header, RequestHead
from swarmgate.lab.latency import law
from swarmgate.lab.standin.plan import HostPlan, StandInPlan
from swarmgate.lab.standin.scope import Refusal, Scope
from swarmgate.lab.standin.site import Exchange, NumberedEnd, Site
from swarmgate.lab.standin.speech import Reply
from swarmgate.lab.standin.trouble import Troubles
from swarmgate.lab.standin.witness_log import Seen, WitnessLog

WEB = "web"
MOST_HOSTS = 50_000
HTML = (b"content-type", b"text/html; charset=utf-8")
PAGE = b"<!doctype html><title>A page</title>" + b"<p>What somebody wrote about it.</p>" * 60
LAW = "web"


class Web(Site):
    """All web hosts of one process; several ports may share it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, plan: StandInPlan, log: WitnessLog, troubles: Troubles, rng: Random
    ) -> None:
        super().__init__(loop)
        self._plan = plan
        self._log = log
        self._troubles = troubles
        self._rng = rng
        self._law = law(LAW)
        self.hosts: dict[str, tuple[HostPlan, Scope]] = {}

    def serve(self, end: NumberedEnd, head: RequestHead, exchange: Exchange) -> None:
        """Judge a fetch by its host and answer it."""
        now_ms = self.now_ms
        name = head.fields.get(b"host", b"").partition(b":")[0].decode("latin-1").lower()
        known = self._host(name)
        if known is None:
            end.respond(421, [HTML], b"no such host here")
            return
        plan, scope = known
        refusal, reply = None, None
        if self._troubles.strikes("brownout", WEB, now_ms):
            reply = Reply(503, [HTML], b"down for maintenance")
        else:
            refusal = scope.arrive(now_ms, 1)
        if refusal is not None:
            reply = _refused(plan, refusal)
        status = 200 if reply is None else reply.status
        call = head.fields.get(b"x-lab-call", b"").decode("latin-1")
        self._log.write(Seen(now_ms, WEB, name, "", end.number, call, 0, status))
        if reply is not None:
            end.respond(*reply)
            return
        exchange.left = lambda: scope.depart(self.now_ms, call, 0)
        wait_ms = self._law.sample(self._rng, 0)[1] + self._troubles.stalled_ms(WEB, now_ms)
        self.later(exchange, wait_ms, partial(_page, end, exchange))

    def _host(self, name: str) -> tuple[HostPlan, Scope] | None:
        known = self.hosts.get(name)
        if known is None and name and len(self.hosts) < MOST_HOSTS:
            plan = self._plan.host(name)
            known = self.hosts[name] = (plan, Scope(WEB, name, plan.limits, self._log))
        return known


def _page(end: NumberedEnd, exchange: Exchange) -> None:
    exchange.over()
    end.respond(200, [HTML], PAGE)


def _refused(plan: HostPlan, refusal: Refusal) -> Reply:
    """No, in the host's own way."""
    wait_s = -(-(refusal.wait_ms or 1_000) // 1_000)
    seconds: Header = (b"retry-after", b"%d" % wait_s)
    date: Header = (b"retry-after", formatdate(unix_s() + wait_s + 1, usegmt=True).encode())
    ways: dict[str, Reply] = {
        "429": Reply(429, [HTML, seconds], b"Too Many Requests"),
        "429-date": Reply(429, [HTML, date], b"Too Many Requests"),
        "429-silent": Reply(429, [HTML], b"slow down"),
        "403": Reply(403, [HTML, seconds], b"You have exceeded a secondary rate limit. Please wait a few minutes."),
        "503": Reply(503, [HTML, seconds], b"Service Unavailable"),
    }
    return ways[plan.refusal]
