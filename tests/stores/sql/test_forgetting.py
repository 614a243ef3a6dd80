"""What is old leaves, a little at a time, and nothing else does."""

from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.stores.sql import forgetting
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.tables import CEILING, attempts, calls, deferrals, events, key_events, usage

NOW_MS = 500 * forgetting.DAY_MS


@given(st.lists(st.integers(0, 499), max_size=30))
@settings(max_examples=15, deadline=None)
def test_old_rows_leave_and_younger_ones_stay(tmp_path_factory, days):
    ledger = Ledger.opened(tmp_path_factory.mktemp("old"))
    with ledger.connection() as link:
        for number, day in enumerate(days):
            at_ms = day * forgetting.DAY_MS
            link.execute(calls.insert(), {"id": f"c{number}", "arrived_ms": at_ms})
            link.execute(attempts.insert(), {"call": f"c{number}", "attempt": 1, "fate": "ended", "sent_ms": at_ms})
            for table in (deferrals, key_events):
                link.execute(table.insert(), {"seq": number, "at_ms": at_ms})
            link.execute(events.insert(), {"seq": number, "kind": "boot", "at_ms": at_ms})
            link.execute(events.insert(), {"seq": number, "kind": CEILING, "at_ms": at_ms})
            link.execute(usage.insert(), {"hour_ms": at_ms, "key": str(number)})
    for _ in range(600):
        with ledger.connection() as link:
            if not forgetting.forget(link, NOW_MS):
                break
    young = sum(day >= 470 for day in days)
    with ledger.connection() as link:
        for table in (calls, attempts, deferrals, key_events):
            assert len(link.execute(table.select()).all()) == young
        kinds = [row.kind for row in link.execute(events.select())]
        assert kinds.count("boot") == young
        assert kinds.count(CEILING) == len(days)  # what holds until the next one may be as old as the gate
        assert len(link.execute(usage.select()).all()) == sum(day >= 100 for day in days)
    ledger.close()


def test_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(forgetting, "AT_ONCE", 3)
    ledger = Ledger.opened(tmp_path)
    with ledger.connection() as link:
        link.execute(calls.insert(), [{"id": f"c{number}"} for number in range(10)])
    gone = []
    for _ in range(5):
        with ledger.connection() as link:
            gone.append(forgetting.forget(link, NOW_MS))
    assert gone == [3, 3, 3, 1, 0]
    ledger.close()
