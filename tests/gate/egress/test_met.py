"""TI-04: where a team's calls go is nobody else's to see, in no view; what the operator wrote is everybody's."""

import asyncio
import json

from outside import FAST, stage, to

from swarmgate.core.scope import Scope, key_hash
from swarmgate.core.target import parse_target
from swarmgate.gate.egress.met import Met

TEXT = FAST + '[policies.papers]\nhosts = ["api.c.net"]\nlimits = ["1000 per 1s"]\n'


async def shown(on, key, path="/swarmgate/v1/budgets"):
    headers = {"x-swarmgate-key": key} if key else {}
    said = (await on.caller.ask("GET", path, headers)).said
    return {row["budget"].partition(":")[0] for row in said["budgets"]}, {row["target"] for row in said["targets"]}


def test_ti_04_a_host_is_shown_to_the_teams_that_called_it():
    async def play():
        async with stage(text=TEXT) as on:
            keeper = on.gate.ask_for_keys(required=False)
            scopes = {"sgk_red": Scope("1", "red"), "sgk_blue": Scope("2", "blue"), "sgk_red2": Scope("3", "red")}
            keeper.replace(b"p", {key_hash(key, b"p"): scope for key, scope in scopes.items()})
            for key, host in (("sgk_red", "a.org"), ("sgk_blue", "d.io"), ("", "b.org"), ("sgk_red", "api.c.net")):
                headers = {"x-swarmgate-key": key} if key else {}
                assert (await on.caller.ask("GET", to(f"http://{host}/x"), headers)).status == 200
            found = {key: await shown(on, key) for key in (*scopes, "")}
            asked = [
                await on.caller.ask("GET", f"/swarmgate/v1/budgets?target={name}", {"x-swarmgate-key": "sgk_blue"})
                for name in ("a.org", "nothing")
            ]
            assert (await on.caller.ask("GET", to("http://a.org/y"), {"x-swarmgate-key": "sgk_blue"})).status == 200
            return found, asked, await shown(on, "sgk_blue")

    found, (foreign, nothing), later = asyncio.run(play())
    assert found["sgk_red"] == ({"a.org", "group a.org", "papers", "group c.net"}, {"http://a.org", "http://api.c.net"})
    assert found["sgk_red2"] == found["sgk_red"]
    assert found["sgk_blue"] == ({"d.io", "group d.io", "papers"}, {"http://d.io"})
    assert found[""] == ({"b.org", "group b.org", "papers"}, {"http://b.org"})
    assert foreign.status == nothing.status == 400
    assert foreign.body.replace(b"a.org", b"nothing") == nothing.body
    assert later == ({"d.io", "group d.io", "a.org", "group a.org", "papers"}, {"http://d.io", "http://a.org"})
    assert "a.org" not in json.dumps(sorted(found["sgk_blue"][0] | found[""][0]))


def test_ti_04_a_host_that_shares_a_budget_with_others_is_shown_to_its_teams_only():
    async def play():
        async with stage(text=FAST + "most_targets = 2\nmost_per_group = 1\n") as on:
            keeper = on.gate.ask_for_keys(required=False)
            scopes = {"sgk_red": Scope("1", "red"), "sgk_blue": Scope("2", "blue")}
            keeper.replace(b"p", {key_hash(key, b"p"): scope for key, scope in scopes.items()})
            place = on.gate.egress.hosts.place
            for team, host in (
                ("red", "a.org"),
                ("red", "x.a.org"),
                ("red", "b.org"),
                ("red", "c.org"),
                ("blue", "d.org"),
            ):
                place(parse_target(f"http://{host}/").target, "GET", "/", team).host.is_met = True
            return [await shown(on, key) for key in scopes]

    (_, red), (names, blue) = asyncio.run(play())
    assert red == {f"http://{host}" for host in ("a.org", "x.a.org", "b.org", "c.org")}
    assert (names, blue) == ({"*", "group *"}, {"http://d.org"})


def test_what_is_forgotten_is_nobodys():
    met = Met()
    met.note("red", "a.org", "group a.org")
    assert met.knows("red", "a.org")
    assert not met.knows("blue", "a.org")
    assert met.knows("blue", "openai")
    met.forget("a.org")
    assert met.knows("blue", "a.org")
