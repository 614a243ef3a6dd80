import asyncio

from eventually import eventually
from swarmgate.http1.sweep import NEVER, Sweep


class End:
    def __init__(self, sweep: Sweep, deadline_ms: int) -> None:
        self.sweep, self.deadline_ms, self.heard = sweep, deadline_ms, []

    def on_deadline(self) -> None:
        self.heard.append(self.sweep.now_ms)


def test_each_limit_is_met_once_and_never_early():
    loop = asyncio.new_event_loop()
    sweep = Sweep(loop)
    ends = [End(sweep, deadline_ms) for deadline_ms in (10, 20, 21, NEVER)]
    for end in ends:
        sweep.watch(end)
    for now_ms in (9, 10, 20, 30):
        sweep.look(now_ms)
    assert [end.heard for end in ends] == [[10], [20], [30], []]
    assert all(end.deadline_ms == NEVER for end in ends)
    loop.close()


def test_an_end_may_set_a_new_limit_or_leave_while_it_hears():
    loop = asyncio.new_event_loop()
    sweep = Sweep(loop)

    class Leaver(End):
        def on_deadline(self) -> None:
            super().on_deadline()
            sweep.forget(self)

    class Repeater(End):
        def on_deadline(self) -> None:
            super().on_deadline()
            self.deadline_ms = sweep.now_ms + 5

    leaver, repeater = Leaver(sweep, 1), Repeater(sweep, 1)
    sweep.watch(leaver)
    sweep.watch(repeater)
    for now_ms in range(1, 13):
        sweep.look(now_ms)
    assert (leaver.heard, repeater.heard, len(sweep)) == ([1], [1, 6, 11], 1)
    loop.close()


def test_one_timer_serves_all_and_stops():
    async def scenario():
        sweep = Sweep(asyncio.get_running_loop())
        ends = [End(sweep, sweep.now_ms) for _ in range(100)]
        for end in ends:
            sweep.watch(end)
        sweep.start()
        await eventually(lambda: all(end.heard for end in ends))
        sweep.stop()
        sweep.stop()

    asyncio.run(scenario())
