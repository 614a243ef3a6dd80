"""
Scenarios: what world is simulated and what must hold in it afterwards, as frozen data.

A world is gates, targets with the limits that they really have (published, or hidden behind a wrong assumption), loads
of agents, and faults. One generic world runs every scenario; what differs between stories stands here as fields. The
files are read by `scenario_file`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from swarmgate.lab import limiters
from swarmgate.lab.errors import LabError
from swarmgate.lab.faults import Fault
from swarmgate.lab.quantiles import Quantiles
from swarmgate.lab.traces.shipped import trace_of
from swarmgate.lab.workload import KINDS, Demand, LoadKind, Priority, lengths

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
Host = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=253)]
Positive = Annotated[int, Field(ge=1, le=2**53)]
NotNegative = Annotated[int, Field(ge=0, le=2**53)]
Percent = Annotated[int, Field(ge=1, le=100)]

MOST_GATES = 64


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _LimitTable(_Table):
    """
    One limit of each quota scope of a target: `limit` units per `window_ms`.

    `assumed` makes it hidden: the gate is told only that number for the same window, and has to find the true one.
    """

    limit: Positive
    window_ms: Positive
    unit: Literal["requests", "tokens"] = "requests"
    assumed: Positive | None = None

    @property
    def hidden(self) -> bool:
        """Whether the gate is not told the limit."""
        return self.assumed is not None


class FixedWindowLimit(_LimitTable):
    """Windows whose boundaries lie at `phase_ms` + k * `window_ms`."""

    kind: Literal["fixed_window"]
    phase_ms: NotNegative = 0

    def limiter(self) -> limiters.Limiter:
        """A new limiter of this kind, for one quota scope."""
        return limiters.FixedWindow(self.limit, self.window_ms, self.phase_ms)


class SlidingLogLimit(_LimitTable):
    """A log of the last window."""

    kind: Literal["sliding_log"]

    def limiter(self) -> limiters.Limiter:
        """A new limiter of this kind, for one quota scope."""
        return limiters.SlidingLog(self.limit, self.window_ms)


class TokenBucketLimit(_LimitTable):
    """A bucket of `burst` units (by default `limit`), refilled at `limit` per `window_ms`."""

    kind: Literal["token_bucket"]
    burst: Positive | None = None

    def limiter(self) -> limiters.Limiter:
        """A new limiter of this kind, for one quota scope."""
        return limiters.TokenBucket(self.limit, self.window_ms, self.burst or self.limit)


class GcraLimit(_LimitTable):
    """GCRA at `limit` per `window_ms` that lets `tolerance` units (by default `limit`) pass at once after a rest."""

    kind: Literal["gcra"]
    tolerance: Positive | None = None

    def limiter(self) -> limiters.Limiter:
        """A new limiter of this kind, for one quota scope."""
        return limiters.Gcra(self.limit, self.window_ms, self.tolerance or self.limit)


class ConcurrencyLimit(_Table):
    """At most `limit` requests in progress; `assumed` makes it hidden."""

    kind: Literal["concurrency"]
    limit: Positive
    assumed: Positive | None = None

    @property
    def hidden(self) -> bool:
        """Whether the gate is not told the limit."""
        return self.assumed is not None

    def limiter(self) -> limiters.Limiter:
        """A new limiter of this kind, for one quota scope."""
        return limiters.ConcurrencyCap(self.limit)


RateLimit = FixedWindowLimit | SlidingLogLimit | TokenBucketLimit | GcraLimit
Limit = Annotated[RateLimit | ConcurrencyLimit, Field(discriminator="kind")]


class Target(_Table):
    """
    One external resource. Key i (`key-1` ...) belongs to quota scope i modulo `scopes`; each scope has every limit.

    A request meets the limits in the order of the file and is refused by the first that refuses it; the earlier ones
    have counted it (as OpenAI documents). `latency` is a law of `lab.latency`; `one_way_ms` and `jitter_ms` are the
    network's. `charge` is what a limit in tokens counts: the prompt at arrival, and then nothing, the output when
    the answer ends, or the largest output asked for at arrival. With `honours_keys` a write that carries the idempotency
    key of an earlier one is answered without doing it again. `headroom_percent`, `store_lost` and `fallback` (the target
    of the next rung) are what the operator tells the gate. Targets of one `group` have the `group_limits` together; the gate
    is told them and keeps them, no stand-in refuses by them.
    """

    name: Host
    limits: Annotated[tuple[Limit, ...], Field(strict=False)]
    keys: Positive = 1
    scopes: Positive = 1
    latency: str = "web"
    one_way_ms: NotNegative = 20
    jitter_ms: NotNegative = 10
    charge: Literal["prompt", "prompt_then_output", "prompt_and_largest_output"] = "prompt_then_output"
    honours_keys: bool = False
    headroom_percent: Percent = 80
    fallback: str | None = None
    store_lost: Literal["local-share", "closed", "open"] = "local-share"
    group: str = ""
    group_limits: Annotated[tuple[Limit, ...], Field(strict=False)] = ()

    def scope_of(self, key: int) -> int:
        """The quota scope (from 0) of key number `key` (from 0)."""
        return key % self.scopes

    @model_validator(mode="after")
    def _no_empty_scope(self) -> "Target":
        if self.scopes > self.keys:
            raise LabError("scopes", f"{self.scopes} scopes need as many keys, but keys = {self.keys}")
        return self


class Load(_Table):
    """
    `agents` of one kind, each wanting `per_minute` calls of `target`.

    A closed agent waits for its answer before it wants the next call, an open one does not. What is left out comes from
    the kind (`lab.workload`): priority, deadline, and the lengths of prompts and outputs, drawn from real traces and
    scaled by `prompt_percent`; `prompt_tokens` and `output_tokens` fix them. The load runs from `from_s` to `until_s`.
    """

    name: Name
    kind: LoadKind
    agents: Annotated[int, Field(ge=1, le=100_000)]
    target: str
    per_minute: Annotated[float, Field(gt=0, le=60_000)] = 3
    arrivals: Literal["closed", "open"] = "closed"
    priority: Priority | None = None
    prompt_percent: Annotated[int, Field(ge=1, le=10_000)] = 100
    prompt_tokens: Positive | None = None
    output_tokens: Positive | None = None
    deadline_s: Positive | None = None
    from_s: NotNegative = 0
    until_s: Positive | None = None

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "Load":
        if self.until_s is not None and self.until_s <= self.from_s:
            raise LabError("until_s", f"{self.until_s} is not after from_s = {self.from_s}")
        return self

    def demand(self) -> Demand:
        """What `workload.agents` needs: this load with the defaults of its kind filled in."""
        kind = KINDS[self.kind]
        prompt, output = lengths(self.kind)
        return Demand(
            load=self.name,
            kind=self.kind,
            agents=self.agents,
            target=self.target,
            gap_ms=max(1, round(60_000 / self.per_minute)),
            closed=self.arrivals == "closed",
            priority=self.priority or kind.priority,
            prompt=_fixed(self.prompt_tokens) or prompt,
            prompt_percent=self.prompt_percent,
            output=_fixed(self.output_tokens) or output,
            deadline_ms=self.deadline_s * 1000 if self.deadline_s else kind.deadline_ms,
            from_ms=self.from_s * 1000,
            until_ms=self.until_s * 1000 if self.until_s else None,
        )


class Crawl(_Table):
    """
    `agents` that fetch pages of many hosts: each plays a session of `trace` (lab/traces), and asks once for each host in it.

    An agent asks `per_minute`, whatever became of what it asked before; what is deferred it repeats with its ticket. Hosts
    that no target describes have these `limits`, and those of one registrable domain the `group_limits` together. A trace is
    a shipped one or a file.
    """

    name: Name
    trace: str
    agents: Annotated[int, Field(ge=1, le=100_000)]
    limits: Annotated[tuple[Limit, ...], Field(strict=False)]
    group_limits: Annotated[tuple[Limit, ...], Field(strict=False)] = ()
    per_minute: Annotated[float, Field(gt=0, le=60_000)] = 60
    priority: Priority = "P1"
    deadline_s: Positive = 86_400

    @model_validator(mode="after")
    def _leads_somewhere(self) -> "Crawl":
        try:
            calls = trace_of(self.trace).calls
        except (LabError, OSError) as error:
            raise LabError("trace", str(error)) from None
        if not any(call.hosts for call in calls):
            raise LabError("trace", f"{self.trace!r} names no hosts; the shipped 'deep-research' does")
        return self


def _fixed(tokens: int | None) -> Quantiles | None:
    return Quantiles((tokens, tokens)) if tokens else None


Metric = Literal[
    "violations",  # promises broken, all kinds together
    "lost_calls",  # accepted calls without exactly one end
    "over_limit",  # arrivals beyond the true limit in some window, by the witness
    "bound_excess",  # most by which a window exceeded the compiled burst + rate * T, in units
    "refused_429",  # 429s that the target answered, after the warm-up
    "refused_429_share",  # the same as a share of what was sent
    "use_of_limit",  # what passed after the warm-up, as a share of the true limit
    "use_of_compiled",  # the same as a share of what the gate's compiled limit allows
    "speedup_over_one_key",  # goodput against the same world with keys = 1
    "sent_to_empty_key",  # sends through a key whose quota was known to be used up
    "longest_stop_ms",  # longest time in which calls waited and nothing was sent
    "rate_rises_in_storm",  # times the learned limit rose in a window that held a 429
    "extra_wait_beyond_bound_ms",  # worst wait of the class, less that without the lower classes, less cost / rate
    "order_inversions",  # admissions before a better ticket of the same line that would have fitted
    "start_after_earliest_ms",  # most by which a call of the load started after its own earliest instant
    "wait_behind_other_target_ms",  # growth of the worst wait for other targets by the calls that wait for this one
    "makespan_of_bound",  # time until the last page, less one window, in times of requests / compiled rate of the host that binds
    "served_share",  # calls of the load answered, as a share of those it wanted
    "wait_p99_ms",  # queue wait of the class or load
    "wall_s_per_virtual_minute",  # cost of the simulation itself
]


class Check(_Table):
    """A metric of the result and its bound; `target`, `load` and `priority` narrow what is measured."""

    metric: Metric
    at_least: float | None = None
    at_most: float | None = None
    target: str | None = None
    load: str | None = None
    priority: Priority | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Check":
        if (self.at_least is None) == (self.at_most is None):
            raise LabError("at_least", "exactly one of at_least and at_most is needed")
        return self

    def holds(self, value: float) -> bool:
        """Whether the measured value keeps the bound."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


class Scenario(_Table):
    """A whole world; figures are taken from `warmup_s` to `duration_s`. Name and story are the file's name and head."""

    name: Name
    story: str
    seed: NotNegative = 1
    duration_s: Annotated[int, Field(ge=1, le=7 * 86_400)]
    warmup_s: NotNegative = 0
    gates: Annotated[int, Field(ge=1, le=MOST_GATES)] = 1
    targets: Annotated[tuple[Target, ...], Field(strict=False)] = ()
    loads: Annotated[tuple[Load, ...], Field(strict=False)] = ()
    crawls: Annotated[tuple[Crawl, ...], Field(strict=False)] = ()
    faults: Annotated[tuple[Fault, ...], Field(strict=False)] = ()
    checks: Annotated[tuple[Check, ...], Field(strict=False)] = ()

    @property
    def agents(self) -> int:
        """How many agents all loads and crawls have."""
        return sum(load.agents for load in self.loads) + sum(crawl.agents for crawl in self.crawls)

    def target(self, name: str) -> Target:
        """The target of that name."""
        return next(target for target in self.targets if target.name == name)

    def ladder(self, name: str) -> tuple[str, ...]:
        """The target of that name, then its fallback, and so on; none twice."""
        found = [name]
        while (below := self.target(found[-1]).fallback) is not None and below not in found:
            found.append(below)
        return tuple(found)

    @model_validator(mode="after")
    def _measures_something(self) -> "Scenario":
        if self.warmup_s >= self.duration_s:
            raise LabError("warmup_s", f"{self.warmup_s} leaves nothing of duration_s = {self.duration_s}")
        return self
