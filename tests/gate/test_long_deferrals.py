"""How long a deferral asks callers to stay away: their own share of a spread, which a long wait does not stretch by hours."""

from test_cap_desk import PRICE, Caller

from swarmgate.gate.deferral import MOST_SPREAD_MS


def test_a_day_is_not_stretched_by_hours_and_money_is_told_as_it_was_written():
    caller = Caller('[agents]\nlimits = ["0.05 USD per 1d"]\n' + PRICE)
    assert [caller.ask("a")[0] for _ in range(3)] == [200] * 3
    seen = set()
    for _ in range(20):
        status, said = caller.ask("a")
        told = said["error"]["deferral"]
        assert (status, told["blocking"][0]["policy"]) == (429, "0.05 USD per 86400s")
        assert told["not_before_ms"] > 3_000_000
        assert 0 <= told["retry_after_ms"] - told["not_before_ms"] <= MOST_SPREAD_MS
        seen.add(told["retry_after_ms"] - told["not_before_ms"])
        assert " h." in said["error"]["message"]
    assert len(seen) > 10
