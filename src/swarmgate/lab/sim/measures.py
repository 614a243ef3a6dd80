"""
What a run came to, figure by figure: one function per metric that a scenario may check.

Everything about targets is read from their witnesses, everything about callers from their jobs; the gate's own counters
are used only for what it believed (learned limits, reservations left).
"""

from collections import Counter
from collections.abc import Callable, Iterable

from swarmgate.core.learning import Quantity
from swarmgate.core.limits import BudgetKind
from swarmgate.lab import scenario as told
from swarmgate.lab.faults import FaultKind, found_out
from swarmgate.lab.sim.swarm import Job
from swarmgate.lab.sim.world import World
from swarmgate.lab.witness import Unit

ADD_A_BURST: tuple[FaultKind, ...] = (
    "store_lag",
    "store_frozen",
    "store_down",
    "store_flush",
    "store_cut",
    "store_evict",
    "clock_step",
    "gate_pause",
)
Twin = Callable[[told.Scenario], World]


def tables(world: World, target: str | None) -> list[told.Target]:
    """The targets that a check is about."""
    return [one for one in world.scenario.targets if target in (None, one.name)]


def rate_limits(target: told.Target) -> Iterable[tuple[int, told.RateLimit]]:
    """The limits of a target that have a window, with their place."""
    return ((i, one) for i, one in enumerate(target.limits) if not isinstance(one, told.ConcurrencyLimit))


def measured(world: World) -> tuple[int, int]:
    """The span of virtual time in which figures are taken."""
    return world.scenario.warmup_s * 1_000, world.scenario.duration_s * 1_000


def jobs(world: World, load: str | None = None, priority: str | None = None) -> list[Job]:
    """The jobs that a check is about, wanted in the measured span."""
    from_ms, until_ms = measured(world)
    return [
        job
        for job in world.swarm.jobs
        if from_ms <= job.wanted.t_ms < until_ms
        and priority in (None, job.wanted.priority)
        and (load is None or job.wanted.agent.rpartition("-")[0] == load)
    ]


def waits(found: Iterable[Job]) -> list[int]:
    """Ms from wanting to the first send, sorted; of those that were sent."""
    return sorted(job.first_ms - job.wanted.t_ms for job in found if job.first_ms >= 0)


def quantile(ordered: list[int], share: float) -> int:
    """The value below which `share` of an ordered list lies; 0 if it is empty."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


def over_limit(world: World, target: told.Target) -> int:
    """Arrivals beyond a published limit in some window, by the witnesses."""
    witnesses = world.targets[target.name].witnesses
    return sum(
        witness.over_limit(limit.limit, limit.window_ms, limit.unit)
        for _, limit in rate_limits(target)
        if not limit.hidden
        for witness in witnesses
    )


def beyond_faults(world: World, target: told.Target) -> int:
    """
    By how many units a window exceeded a published limit, beyond what its faults may add.

    Each loss of the store, flush, restart or step of its clock may add one burst, once; the compiler left room for one
    (design 2: P1), but not among slots: their holds end by the store's clock. Gates that are cut off alone add their
    shares (reliability ST-02), and holds that were evicted are known to nobody.
    """
    events: Counter[FaultKind] = Counter(fault.kind for fault in world.weather.plan)
    bursts = max(0, sum(events[kind] for kind in ADD_A_BURST) + found_out(world.weather.plan) - 1)
    worst = 0
    for index, limit in enumerate(target.limits):
        if limit.hidden:
            continue
        compiled = world.policies[target.name].compiled(index).limits
        more = bursts
        if compiled.kind is BudgetKind.LEASES:
            more += events["store_evict"] + any(fault.jumps_forward for fault in world.weather.plan)
        share = limit.limit // len(world.gates) if events["store_cut"] and len(world.gates) > 1 else 0
        for witness in world.targets[target.name].witnesses:
            held = (
                witness.most_in_progress()
                if isinstance(limit, told.ConcurrencyLimit)
                else witness.most_in_window(limit.window_ms, limit.unit)
            )
            worst = max(worst, held - limit.limit - share - more * compiled.burst)
    return worst


def refused(world: World, target: told.Target) -> tuple[int, int]:
    """(429s, arrivals) at a target in the measured span."""
    from_ms, until_ms = measured(world)
    rows = [
        row.ok
        for witness in world.targets[target.name].witnesses
        for row in witness.arrivals
        if from_ms <= row.t_ms < until_ms
    ]
    return len(rows) - sum(rows), len(rows)


def use(world: World, target: told.Target) -> float:
    """What passed as a share of the true limit that binds: the most used one."""
    from_ms, until_ms = measured(world)
    witnesses = world.targets[target.name].witnesses
    shares = [
        sum(one.utilisation(from_ms, until_ms, limit.limit, limit.window_ms, limit.unit) for one in witnesses)
        / len(witnesses)
        for _, limit in rate_limits(target)
    ]
    shares += [
        sum(one.in_progress_ms(from_ms, until_ms) for one in witnesses)
        / (limit.limit * len(witnesses) * (until_ms - from_ms))
        for limit in target.limits
        if isinstance(limit, told.ConcurrencyLimit)
    ]
    return max(shares)


def use_of_compiled(world: World, target: told.Target) -> float:
    """What passed as a share of what the compiled budgets allow, of the budget that binds."""
    from_ms, until_ms = measured(world)
    witnesses = world.targets[target.name].witnesses
    busy_ms = sum(one.in_progress_ms(from_ms, until_ms) for one in witnesses)
    shares = [0.0]
    for index, limit in enumerate(target.limits):
        unit: Unit = "requests" if isinstance(limit, told.ConcurrencyLimit) else limit.unit
        passed = sum(one.passed(from_ms, until_ms, unit) for one in witnesses)
        limits = world.policies[target.name].compiled(index).limits
        slots_ms = limits.burst * len(witnesses) * (until_ms - from_ms)
        if limits.kind is BudgetKind.LEASES:
            trips_ms = passed * 2 * (target.one_way_ms + target.jitter_ms // 2)
            shares.append((busy_ms + trips_ms + passed * limits.hold_ms) / slots_ms)
        elif limits.kind is BudgetKind.LEVEL:
            allowed = limits.quota * len(witnesses) * (until_ms - from_ms)
            shares.append(passed * limits.window_ms / allowed)
    return max(shares)


def longest_stop_ms(world: World) -> int:
    """The longest time in which calls waited for a target and nothing was sent to any."""
    from_ms, until_ms = measured(world)
    return max((stop for at_ms, stop in world.stops if from_ms <= at_ms < until_ms), default=0)


def rises_in_storm(world: World, target: told.Target) -> int:
    """How often a learned rate rose within a window that held a refusal, by the witness."""
    rises = 0
    for gate in world.gates:
        lesson = gate.lessons.get(target.name)
        if lesson is None:
            continue
        refusals = [row.t_ms for one in world.targets[target.name].witnesses for row in one.arrivals if not row.ok]
        last = 0
        for at_ms, revision in lesson.changes:
            if revision.quantity is Quantity.RATE:
                stormy = any(at_ms - lesson.learner.window_ms < t_ms < at_ms for t_ms in refusals)
                rises += bool(last) and revision.value_micro > last and stormy
                last = revision.value_micro
    return rises


def start_after_earliest_ms(world: World, load: str | None) -> int:
    """The most by which a call started after its own earliest instant, as the kernel first named it."""
    late = 0
    for job in jobs(world, load):
        earliest_ms = world.umpire.earliest_ms.get(job.first_call, job.wanted.t_ms)
        if job.first_ms >= 0:
            late = max(late, job.first_ms - earliest_ms)
    return late


def wait_behind_other_ms(world: World, target: str | None, twin: Twin) -> int:
    """
    By how much the worst wait for other targets grew because of the calls that wait for `target`.

    Against the same world without those calls; what the network's jitter adds to connecting is left out.
    """
    loads = tuple(load for load in world.scenario.loads if load.target != target)
    alone = twin(world.scenario.model_copy(update={"loads": loads, "checks": ()}))
    worst = 0
    for other in tables(world, None):
        if other.name != target:
            both = [max(waits(_for(one, other.name)), default=0) for one in (world, alone)]
            worst = max(worst, both[0] - both[1] - 2 * (other.one_way_ms + other.jitter_ms))
    return worst


def _for(world: World, target: str) -> list[Job]:
    return [job for job in jobs(world) if job.wanted.target == target]


def extra_wait_ms(world: World, priority: str, twin: Twin) -> int:
    """By how much the worst wait of a class grew because of the lower classes, less their largest call / rate."""
    loads = tuple(load for load in world.scenario.loads if load.demand().priority <= priority)
    alone = twin(world.scenario.model_copy(update={"loads": loads, "checks": ()}))
    bound_ms = 0
    for load in world.scenario.loads:
        demand = load.demand()
        if demand.priority <= priority:
            continue
        largest = demand.prompt.at(2**32 - 1) * demand.prompt_percent // 100 + demand.output.at(2**32 - 1)
        for name, limits in world.policies[load.target].limits():
            tokens = name in world.policies[load.target].metered()
            if limits.quota:
                bound_ms = max(bound_ms, (largest if tokens else 1) * limits.window_ms // limits.quota)
    worst = max(waits(jobs(world, None, priority)), default=0)
    worst_alone = max(waits(jobs(alone, None, priority)), default=0)
    return max(0, worst - worst_alone - bound_ms)


def goodput(world: World) -> float:
    """Tokens (or requests, where a load has none) of answered calls per second of the measured span."""
    from_ms, until_ms = measured(world)
    done = [job for job in world.swarm.jobs if job.end == "answered" and from_ms <= job.ended_ms < until_ms]
    units = sum((job.wanted.prompt_tokens + job.wanted.output_tokens) or 1 for job in done)
    return units * 1_000 / (until_ms - from_ms)


def goodput_ratio(world: World) -> float:
    """What passed of what was possible: per target the smaller of demand and compiled rate, weighed by requests."""
    from_ms, until_ms = measured(world)
    passed = possible = 0.0
    wanted = Counter(job.wanted.target for job in jobs(world))
    for target in world.scenario.targets:
        through = sum(one.passed(from_ms, until_ms) for one in world.targets[target.name].witnesses)
        used = use(world, target) if world.policies[target.name].hidden else use_of_compiled(world, target)
        most = min(wanted[target.name], through / used) if used > 0 else wanted[target.name]
        passed += min(through, most) if most else 0
        possible += most
    return passed / possible if possible else 1.0


def answered_share(world: World) -> float:
    """Answered calls as a share of those that ended by the gate's word in the measured span; who gave up does not count."""
    from_ms, until_ms = measured(world)
    ends = Counter(job.end for job in world.swarm.jobs if from_ms <= job.ended_ms < until_ms)
    told = ends.total() - ends["expired"] - ends["cancelled"]
    return ends["answered"] / told if told else 1.0


def speedup(world: World, twin: Twin) -> float:
    """Goodput against the same world with one key per target."""
    targets = tuple(one.model_copy(update={"keys": 1, "scopes": 1}) for one in world.scenario.targets)
    alone = twin(world.scenario.model_copy(update={"targets": targets, "checks": ()}))
    return goodput(world) / max(goodput(alone), 1e-9)


def served_share(world: World, load: str | None) -> float:
    """Answered calls as a share of those whose end lies within the measured span."""
    until_ms = measured(world)[1]
    found = [job for job in jobs(world, load) if job.wanted.deadline_ms <= until_ms or job.end == "answered"]
    return sum(job.end == "answered" for job in found) / max(1, len(found))
