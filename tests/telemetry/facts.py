"""Rows of a journal as short as tests need them."""

from swarmgate.stores.journal import rows

START_MS = 1_800_000_000_000


def intent(call="c1", attempt=1, at_ms=START_MS, *, agent="a1", target="openai", model="m", key="k1", rung=0, trace=""):
    who = (agent, "task", "goal", "step", "", "", "")
    return rows.Intent(0, at_ms, call, attempt, *who, 1, target, model, key, rung, 1, at_ms, 100, 50, "read", trace)


def note(call="c1", at_ms=START_MS, **said):
    told = {
        "seq": 0,
        "at_ms": at_ms,
        "call": call,
        "attempt": 1,
        "kind": "ok",
        "reason": "",
        "status": 200,
        "sent": True,
        "used": 50,
        "prompt_tokens": 100,
        "output_tokens": 50,
        "cached_tokens": 0,
        "content_ms": 400,
        "took_ms": 2_000,
        "queue_ms": 5,
        "sent_bytes": 1_000,
        "got_bytes": 700,
        "out_ms": 0,
        "priority": 1,
        "target": "openai",
        "model": "m",
        "key": "k1",
        "task_type": "",
        "team": "",
        "end": "answered",
    }
    return rows.Note(**(told | said))


def end(
    call="c1", at_ms=START_MS, *, how="deferred", target="openai", budget="openai: 5 per 60s", reason="policy_rate"
):
    blocked = (rows.Blocked(budget, "time", 1, 5, 60_000, 0),)
    who = ("a1", "task", "goal", "step", "", "", "", 1, target, "m")
    return rows.End(0, at_ms, call, how, reason, 0, *who, at_ms - 10, "", at_ms + 2_000, 0, 1, 3, blocked)


def budget(
    name="openai: 5 per 60s", *, target="openai", unit="requests", limit=100, left=100, waiting=0, state="ready"
):
    remaining, backlog = dict.fromkeys(("P0", "P1", "P2"), left), {"P0": 0, "P1": waiting, "P2": 0}
    return {
        "budget": name, "target": target, "unit": unit, "burst": limit, "state": state,
        "remaining": remaining, "backlog": backlog,
    }  # fmt: skip
