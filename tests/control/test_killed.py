"""A data process that is killed under load: every hit of the witness is an attempt with its step, and tokens agree."""

import asyncio
import signal

from processes import provider, query, up

from eventually import eventually


def test_a_gate_that_is_killed_under_load(tmp_path):
    async def play():
        async with provider() as (witness, port):
            witness.delay_s = 0.002
            async with up(tmp_path / "state", port) as gate:
                await gate.ready()
                statuses = {}

                async def agent(number):
                    for turn in range(10_000):
                        marker = f"{number}-{turn}"
                        statuses[marker] = (await gate.call(marker)).status
                        if not statuses[marker]:
                            return

                agents = [asyncio.get_running_loop().create_task(agent(number), name="agent") for number in range(8)]
                await eventually(lambda: sum(witness.hits.values()) > 300, 30)
                await gate.end(signal.SIGKILL)
                await asyncio.gather(*agents)
                open_at_death = {marker for marker, status in statuses.items() if not status}
                await eventually(lambda: witness.over == sum(witness.hits.values()))
                check(gate.folder, witness, open_at_death)
            async with up(tmp_path / "state", port) as gate:
                assert any("cleanly" in text for text in gate.said)
                assert (await gate.call("afterwards")).status == 200
                assert await gate.end() == 0
                check(gate.folder, witness, open_at_death)
                kinds = [kind for (kind,) in query(gate.folder, "SELECT kind FROM events ORDER BY seq, kind")]
                assert kinds == ["boot", "boot", "crash", "stop"]

    asyncio.run(play())


def check(folder, witness, open_at_death):
    """Every hit is an attempt with its step; only what was open is a crash; tokens of whole answers agree."""
    found = query(
        folder,
        "SELECT c.step, a.fate, a.output_tokens, a.policy, c.agent, c.goal FROM attempts a JOIN calls c ON c.id = a.call",
    )
    steps = {step: (fate, tokens) for step, fate, tokens, *_ in found}
    assert len(steps) == len(found)
    assert witness.hits.keys() <= steps.keys()
    assert steps.keys() - witness.hits.keys() <= open_at_death  # its intent was noted, and no byte arrived
    assert set(witness.hits.values()) == {1}
    for crashed in [step for step, (fate, _) in steps.items() if fate == "crash"]:
        agent, turn = crashed.split(
            "-"
        )  # the kill may fall between an answer's last byte and its row: nothing came after
        assert crashed in open_at_death or f"{agent}-{int(turn) + 1}" not in steps
    assert {fate for fate, _ in steps.values()} <= {"ended", "crash"}
    for step, (fate, tokens) in steps.items():
        if fate == "ended":
            assert tokens == witness.tokens[step]
    assert {row[4:] for row in found} == {("a1", "g1")}
