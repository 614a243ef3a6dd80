"""SC-06: nobody comes in with a key that was revoked, from the moment at which its revocation is answered; others go on."""

import asyncio
import time

from processes import http, provider, up

from eventually import eventually

MORE = '[]\n[access]\nagent_keys = "required"\n'
WORKERS = 8
MANY = 40  # calls


async def asking(gate, key, seen):
    """One agent that never stops asking: when it began to ask, when it was answered, and what it got."""
    while True:
        began_s = time.monotonic()
        headers = {"x-swarmgate-key": key}
        body = b'{"model":"m","messages":[{"role":"user","content":"load"}]}'
        status = (await http(gate.port, "POST", "/v1/chat/completions", headers.items(), body)).status
        seen.append((began_s, time.monotonic(), status))


async def made(gate, name, **said):
    return (await gate.operate("POST", "/keys", {"name": name, **said})).said["key"]


def test_sc_06_a_revoked_key_is_out_under_load_and_others_are_not(tmp_path):
    async def play():
        async with provider() as (_, port), up(tmp_path / "state", port, limits=MORE) as gate:
            await gate.ready()
            leaked, good = await made(gate, "leaked"), await made(gate, "good")
            seen = {leaked: [], good: []}
            begin = asyncio.get_running_loop().create_task
            tasks = [begin(asking(gate, key, seen[key]), name="agent") for key in seen for _ in range(WORKERS)]
            await eventually(lambda: all(len(calls) > MANY for calls in seen.values()), 30)
            asked_s, before = time.monotonic(), len(seen[good])
            assert (await gate.operate("POST", f"/keys/{leaked.split('_')[1]}/revoke", {})).status == 200
            answered_s = time.monotonic()
            late = len(seen[leaked]) + WORKERS  # that many may have begun before
            await eventually(lambda: len(seen[leaked]) > late and len(seen[good]) > before + MANY, 30)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return seen[leaked], seen[good], asked_s, answered_s

    leaked, good, asked_s, answered_s = asyncio.run(play())
    assert {status for _, ended_s, status in leaked if ended_s < asked_s} == {200}
    late = [status for began_s, _, status in leaked if began_s > answered_s]
    assert late
    assert set(late) <= {401, 429}  # nobody is let in who began after the operator was answered
    assert {status for *_, status in good} == {200}
