from swarmgate.lab.agents.records import CallRow, Fate
from swarmgate.lab.demo.figures import Evidence, Times, figures
from swarmgate.lab.demo.plan import PROVIDER, Lengths, make_plan
from swarmgate.lab.standin.witness_log import Left, Seen

PLAN = make_plan(40, Lengths(0, 30, 0, 0, 0))
TIMES = Times.of(1_000_000, 10, 30)


def row(number, at_ms, end_ms, **more):
    told = {
        "call": f"a/{number}",
        "kind": "hypotheses",
        "priority": "P0",
        "target": "model",
        "wanted_ms": TIMES.zero_ms + at_ms,
        "first_ms": 0,
        "end_ms": TIMES.zero_ms + end_ms,
        "fate": Fate.ANSWERED,
        "prompt_tokens": 100,
        "output_tokens": 20,
        "wanted_output": 20,
        "sends": 1,
        "deferrals": 0,
        "refused": 0,
        "key": "",
        "queue_ms": 0,
        "status": 200,
        "why": "",
    }
    return CallRow(**(told | more))


def seen(number, at_ms, *, tokens=100, status=200, connection=1, place=PROVIDER, scope="scope-1"):
    return Seen(TIMES.zero_ms + at_ms, place, scope, "key-1", connection, f"a/{number}", tokens, status)


def of(rows, arrivals):
    return figures("arm", PLAN, Evidence(rows, arrivals), TIMES, keys=1)


def test_the_calm_and_the_first_window_are_not_measured():
    assert (TIMES.rush_ms, TIMES.from_ms, TIMES.end_ms) == (1_010_000, 1_020_000, 1_040_000)
    rows = [row(1, 5_000, 6_000, deferrals=1), row(2, 12_000, 13_000), row(3, 25_000, 26_000), row(4, 39_500, 41_000)]
    found = of(rows, [seen(n, at) for n, at in ((1, 5_010), (2, 12_000), (3, 25_007), (4, 39_500))])
    assert found.qps == 1 / 20
    assert found.tpm == 120 * 3
    assert found.wanted_qps == 2 / 20
    assert found.calm.calls == 1
    assert found.calm.deferred == 1
    assert found.calm.waits["P0"].p99_ms == 10
    assert found.waits["P0"] == (2, 7, 7)


def test_waits_end_at_the_door_that_let_the_call_in():
    found = of([row(1, 25_000, 29_000)], [seen(1, 25_100, status=429), seen(1, 27_000)])
    assert found.waits["P0"].p50_ms == 2_000


def test_limits_are_asked_of_the_witness():
    over = [seen(n, 20_000 + n, tokens=PLAN.tokens_limit // 2 + 1) for n in range(3)]
    pages = [seen(n, 21_000 + n, place="web", scope="a.org", tokens=0) for n in range(40)]
    found = of([], [*over, *pages])
    assert found.over_limit[f"{PROVIDER}/scope-1"] == 2
    assert found.over_limit.keys() <= {f"{PROVIDER}/scope-1", "a.org"}
    assert found.hosts == 1


def test_reuse_counts_connections_at_the_provider():
    found = of([], [seen(n, 20_000 + n, connection=1 + n % 2) for n in range(10)])
    assert found.reuse == 0.8


def test_the_bill_counts_what_passed_and_not_what_was_refused():
    def cost(*rows):
        return of([], list(rows)).cost_micro

    assert cost(seen(1, 20_000, tokens=1_000, status=429)) == 0
    prompt = cost(seen(1, 20_000, tokens=1_000))
    assert (
        0
        < prompt
        < cost(seen(1, 20_000, tokens=1_000), Left(TIMES.zero_ms + 21_000, PROVIDER, "scope-1", "a/1", 1_000))
    )


def test_refusals_and_fates_are_counted():
    rows = [row(1, 25_000, 26_000, fate=Fate.GAVE_UP, refused=3, sends=3), row(2, 1, 2, fate=Fate.OPEN, deferrals=1)]
    found = of(rows, [])
    assert found.refused == 3
    assert found.fates == {"answered": 0, "gave_up": 1, "failed": 0, "open": 1}
    assert found.deferral_share == 1 / 4
