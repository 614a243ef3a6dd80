"""
When somebody should look: a table of rules over the last minute, and one notice per change of state.

Rules are judged on what calls met, not on spend (essay B). A rule says what holds; `Alerts` remembers what held, so that an
alert which goes on is told once, and its end once, when it has been quiet for a minute.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from swarmgate.core.compiler import OF_TOKENS
from swarmgate.telemetry.metrics import MANY_NAMES, SILENT, used_of
from swarmgate.telemetry.window import MINUTE, SLOTS, SLOW_MS, Sends, Window

QUIET_MS: Final = 60_000
FEWEST: Final = 20  # of anything that a share is taken of
FEW_PERMILLE: Final = 5  # of sends; fewer refusals are others' traffic, as in a report (control/tally.py)
FEW_SLOW: Final = 3  # answers; one or two are no news, and a batch of few calls has few


class Thresholds(NamedTuple):
    """Where alerts begin: shares in percent. `p99_ms` is an edge of the window's buckets."""

    p99_ms: int = SLOW_MS
    limited_percent: int = 5
    used_percent: int = 90
    deferred_percent: int = 10
    planning_percent: int = 20
    failed_percent: int = 20
    refusals: int = 3  # of a target, inside a budget that was thought right
    silent_ms: int = 60_000


class Now(NamedTuple):
    """
    What rules look at.

    `budgets`: rows with budget, target, unit, state, burst, remaining and backlog per class. `agents`: rows with agent, state and
    silent_ms. `store`: what is wrong with what is kept, empty if nothing. `dead`: keys, as target/key, that are out until a person
    acts. `configuration`: why it could not be read again, empty if it could. `now_ms` is the instant of it all.
    """

    window: Window
    budgets: Sequence[Mapping[str, Any]] = ()
    agents: Sequence[Mapping[str, Any]] = ()
    store: str = ""
    dead: Sequence[str] = ()
    configuration: str = ""
    limits: Thresholds = Thresholds()
    now_ms: int = 0


class Finding(NamedTuple):
    """One thing that holds now: about what, in which words."""

    subject: str
    text: str


def _percent(part: int, whole: int) -> int:
    return 100 * part // whole if whole else 0


def exhausted(now: Now) -> Iterator[Finding]:
    """A budget has nothing left for ordinary calls while calls wait, or deferred some in the last minute."""
    blocked: dict[str, int] = {}
    for ends in now.window.ends().values():
        for budget, count in ends.blocked.items():
            blocked[budget] = blocked.get(budget, 0) + count
    for row in now.budgets:
        waiting = sum(row["backlog"].values())
        deferred = blocked.get(row["budget"], 0)
        if deferred or (waiting and row["remaining"]["P1"] <= 0):
            yield Finding(row["budget"], f"calls that wait for it: {waiting}; deferred in the last minute: {deferred}")


def deferrals_rise(now: Now) -> Iterator[Finding]:
    """The share of deferred calls is high, and twice what it was in the five minutes before."""
    before = now.window.ends(MINUTE, SLOTS - MINUTE)
    for target, ends in now.window.ends().items():
        share = _percent(ends.deferred, ends.calls)
        old = _percent(before[target].deferred, before[target].calls) if target in before else 0
        if ends.calls >= FEWEST and share >= now.limits.deferred_percent and share >= 2 * old:
            yield Finding(target, f"{share} % of its calls were deferred in the last minute, {old} % before")


def planned_badly(now: Now) -> Iterator[Finding]:
    """Many deferrals at one target while others idle (essay B)."""
    used: dict[str, int] = {}
    for row in now.budgets:
        if row["target"]:  # a cap of callers has none
            used[row["target"]] = max(used.get(row["target"], 0), _percent(*used_of(row)))
    idle = sorted(target for target, share in used.items() if share < 50)
    for target, ends in now.window.ends().items():
        free = [one for one in idle if one != target]
        share = _percent(ends.deferred, ends.calls)
        if free and ends.deferred >= FEWEST and share >= now.limits.planning_percent:
            yield Finding(target, f"{share} % of its calls were deferred while {', '.join(free[:3])} had room")


def slow(now: Now) -> Iterator[Finding]:
    """
    P99 of one key x model x task type: a mean of 2 s hid a P99 of 40 s (essay A).

    What runs for too long already counts, so nobody waits for answers that take 40 s to hear of it.
    """
    limit_ms, every = now.limits.p99_ms, now.window.sends()
    overdue = now.window.overdue(limit_ms, now.now_ms)
    means: dict[str, tuple[int, int]] = {}
    for who, sends in every.items():
        took_ms, answered = means.get(who.target, (0, 0))
        means[who.target] = took_ms + sends.took_ms, answered + sends.answered
    for who in every.keys() | overdue.keys():
        sends, running = every.get(who, Sends()), overdue[who]
        late = sends.slower(limit_ms) + running
        if late >= FEW_SLOW and late * 100 > sends.answered + running:
            took_ms, answered = means.get(who.target, (0, 0))
            mean = f"; the mean of {who.target} is {took_ms / answered / 1_000:.1f} s" if answered else ""
            yield Finding(str(who), f"{_slowness(sends, running, limit_ms)}{mean}")


def _slowness(sends: Sends, running: int, limit_ms: int) -> str:
    told = []
    if sends.slower(limit_ms):
        told.append(f"P99 is up to {sends.p99_ms() / 1_000:.1f} s over {sends.answered} answers of the last minute")
        told.append(f"their prompts have up to {sends.longest:,} tokens")
    if running:
        told.append(f"{running} calls have run for more than {limit_ms / 1_000:g} s")
    return ", ".join(told)


def limited(now: Now) -> Iterator[Finding]:
    """The share of 429s at a target."""
    for target, (sent, refused) in _refused(now, lambda who: who.target).items():
        share = _percent(refused, sent)
        if sent >= FEWEST and share >= now.limits.limited_percent:
            yield Finding(target, f"{share} % of {sent} sends of the last minute were refused with a limit")


def limit_wrong(now: Now) -> Iterator[Finding]:
    """Everything that leaves is inside the budgets: a target that refuses it has other limits than we think."""
    # over all that is remembered: a key that was refused is out for most of a minute
    for place, (sent, refused) in _refused(now, lambda who: f"{who.target}/{who.key}".rstrip("/"), SLOTS).items():
        if refused >= now.limits.refusals and refused * 1_000 >= FEW_PERMILLE * sent:
            yield Finding(place, f"{refused} of {sent} sends were refused although they were inside its budgets")


def failing(now: Now) -> Iterator[Finding]:
    """The share of sends that a target does not serve, for no limit's sake: errors, lost connections, answers that do not come."""
    found: dict[str, tuple[int, int]] = {}
    for who, sends in now.window.sends().items():
        sent, failed = found.get(who.target, (0, 0))
        found[who.target] = (sent + sends.sent, failed + sends.failed)
    for target, (sent, failed) in found.items():
        share = _percent(failed, sent)
        if sent >= FEWEST and share >= now.limits.failed_percent:
            yield Finding(target, f"{share} % of {sent} sends of the last minute failed")


def dead(now: Now) -> Iterator[Finding]:
    """A provider's key is out until a person acts (design 4: Kinds of 429)."""
    for key in now.dead:
        target = key.partition("/")[0]
        yield Finding(
            key, f"its provider refused it or it has no money; put that right, then `swarmgate resume {target}`"
        )


def _refused(now: Now, place_of: Callable[[Any], str], slots: int = MINUTE) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for who, sends in now.window.sends(slots).items():
        sent, refused = found.get(place_of(who), (0, 0))
        found[place_of(who)] = (sent + sends.sent, refused + sends.limited)
    return found


def nearly_full(now: Now) -> Iterator[Finding]:
    """A budget of tokens is used nearly whole."""
    for row in now.budgets:
        used = _percent(*used_of(row))
        if row["unit"] in OF_TOKENS and used >= now.limits.used_percent:
            yield Finding(row["budget"], f"{used} % of the tokens that it holds are used")


def silent(now: Now) -> Iterator[Finding]:
    """An agent that has calls but gives no sign of life."""
    for row in now.agents:
        if row["state"] == "running" and row["silent_ms"] >= now.limits.silent_ms:
            yield Finding(row["agent"], f"has not been heard of for {row['silent_ms'] // 1_000} s")


def many_names(now: Now) -> Iterator[Finding]:
    """An agent asks for ever new names of a domain: its own look-ups may carry out what it knows (reliability EG-12)."""
    for agent, count in now.window.names().items():
        if count >= FEWEST:
            yield Finding(
                agent or "(no agent)", f"{count} new names of a domain were more than may be looked up in a minute"
            )


def degraded(now: Now) -> Iterator[Finding]:
    """A store does not do what it should: that of budgets, or journal and ledger, without which writes and money stand still."""
    if now.store:
        yield Finding("store", now.store)


def file_refused(now: Now) -> Iterator[Finding]:
    """The configuration was to be read again and has mistakes: what somebody wanted to change does not hold."""
    if now.configuration:
        first, _, more = now.configuration.partition("\n")
        yield Finding("configuration", f"the one in force stays as it was: {first}{' ...' if more else ''}")


Rule = Callable[[Now], Iterable[Finding]]

RULES: Final[dict[str, Rule]] = {
    "budget_exhausted": exhausted,
    "deferrals_rising": deferrals_rise,
    "poor_planning": planned_badly,
    "slow_p99": slow,
    "refused_429": limited,
    "tokens_nearly_used": nearly_full,
    SILENT: silent,
    MANY_NAMES: many_names,
    "store_degraded": degraded,
    "limit_probably_wrong": limit_wrong,
    "target_failing": failing,
    "key_dead": dead,
    "configuration_refused": file_refused,
}


class Notice(NamedTuple):
    """An alert begins or ends."""

    alert: str
    subject: str
    begins: bool
    at_ms: int
    since_ms: int
    text: str


class Alerts:
    """`judge` now and then: what changed. `firing` is what holds."""

    def __init__(self, rules: Mapping[str, Rule] = RULES) -> None:
        self._rules = rules
        self._held: dict[tuple[str, str], tuple[int, int, str]] = {}  # since, last seen, the newest words

    def judge(self, now: Now, now_ms: int) -> list[Notice]:
        """The alerts that begin or end now."""
        now.window.pass_to(now_ms)
        now = now._replace(now_ms=now_ms)
        notices = []
        for alert, rule in self._rules.items():
            for subject, text in rule(now):
                since_ms, _, _ = self._held.get((alert, subject), (now_ms, 0, ""))
                if (alert, subject) not in self._held:
                    notices.append(Notice(alert, subject, True, now_ms, now_ms, text))
                self._held[alert, subject] = (since_ms, now_ms, text)
        for (alert, subject), (since_ms, seen_ms, text) in list(self._held.items()):
            if now_ms - seen_ms >= QUIET_MS:
                del self._held[alert, subject]
                notices.append(Notice(alert, subject, False, now_ms, since_ms, text))
        return notices

    def firing(self) -> list[dict[str, object]]:
        """What holds, oldest first."""
        held = sorted(self._held.items(), key=lambda item: item[1][0])
        return [
            {"alert": alert, "subject": subject, "since_ms": since_ms, "text": text}
            for (alert, subject), (since_ms, _, text) in held
        ]
