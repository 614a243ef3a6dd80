"""`/to/...`: what the host sees, what the caller gets, and that nothing else is dialled."""

import asyncio

from world import stage, whole


def run(act, *arguments, **settings):
    async def whole_run():
        async with stage(*arguments, **settings) as on:
            return await act(on)

    return asyncio.run(whole_run())


def test_a_request_reaches_its_host_as_it_came():
    async def act(on):
        answer = await on.get("http://a.org/x/y?q=1&r=%20", accept="text/html", x_mine="1", x_swarmgate_agent="a17")
        return answer, on.world.hits, on.ends

    answer, (hit,), ends = run(act, lambda _hit: whole(body=b"hello", x_theirs="2", set_cookie="s=1"))
    assert (answer.status, answer.body, answer.headers["x-theirs"]) == (200, b"hello", "2")
    assert (hit.method, hit.host, hit.path) == ("GET", "a.org", "/x/y?q=1&r=%20")
    assert (hit.headers["accept"], hit.headers["x-mine"]) == ("text/html", "1")
    assert not [name for name in hit.headers if name.startswith("x-swarmgate-") and name != "x-swarmgate-hop"]
    assert ends == ["answered"]
