"""What stands before every route of the operator port: other sites, guessed tokens, and what a browser may do with an answer."""

import asyncio

import pytest
from test_operator import GOOD, HOST, TOKEN, Desk, ask

from swarmgate.control import operator
from swarmgate.control.checks import HARMLESS


def sent(method, path, headers, body=b"", desk=None):
    """The status of one answer and its header fields."""
    app = operator.application(desk or Desk(), TOKEN, frozenset({HOST}))
    return asyncio.run(_sent(app, method, path, headers, body))


async def _sent(app, method, path, headers, body=b"", client="10.0.0.7"):
    messages = []
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": fields,
        "client": (client, 1),
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        messages.append(message)

    await app(scope, receive, send)
    return messages[0]["status"], dict(messages[0]["headers"])


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("OPTIONS", {"origin": "https://evil.example", "access-control-request-method": "POST"}, 403),
        ("OPTIONS", {"origin": f"http://{HOST}", "access-control-request-method": "POST"}, 401),
        ("POST", {"origin": "https://evil.example", "content-type": "application/x-www-form-urlencoded"}, 403),
        (
            "POST",
            {"content-type": "text/plain", "cookie": f"token={TOKEN}"},
            401,
        ),  # what a page can send without asking
        ("POST", GOOD | {"content-type": "text/plain"}, 400),
        ("POST", GOOD | {"content-type": "application/x-www-form-urlencoded"}, 400),
        ("POST", GOOD | {"content-type": "application/json"}, 200),
        ("GET", GOOD, 405),  # no change by following a link
    ],
)
def test_az_04_no_page_changes_anything_and_no_answer_allows_one_to_read_it(method, headers, status):
    desk = Desk()
    found, fields = sent(method, "/orders/pause", {"host": HOST} | headers, b'{"budget":"x"}', desk)
    assert found == status
    assert len(desk.orders) == (status == 200)
    assert not [name for name in fields if name.startswith(b"access-control-") or name == b"set-cookie"]


@pytest.mark.parametrize("headers", [GOOD, {"host": HOST}, GOOD | {"host": "evil.example"}])
@pytest.mark.parametrize("path", ["/health/live", "/prometheus/rules", "/nothing"])
def test_az_06_every_answer_runs_and_loads_nothing_in_a_browser(path, headers):
    _, fields = sent("GET", path, headers)
    assert {name: fields[name] for name, _ in HARMLESS} == dict(HARMLESS)
    policy = fields[b"content-security-policy"].decode()
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_az_09_ten_thousand_wrong_tokens_are_slowed_by_source_and_the_right_one_comes_in():
    desk = Desk()

    async def play():
        app = operator.application(desk, TOKEN, frozenset({HOST}))
        wrong = {"host": HOST, "authorization": "Bearer nearly"}
        found = [await _sent(app, "GET", "/health/live", wrong) for _ in range(10_000)]
        elsewhere = await _sent(app, "GET", "/health/live", wrong, client="10.0.0.8")
        right = await _sent(app, "GET", "/health/live", GOOD)
        return found, elsewhere, right

    found, elsewhere, right = asyncio.run(play())
    statuses = [status for status, _ in found]
    assert statuses[:10] == [401] * 10
    assert statuses.count(401) < 10 + 60  # one a second, however long this takes here
    assert set(statuses) == {401, 429}
    assert all(fields[b"retry-after"] == b"1" for status, fields in found if status == 429)
    assert (elsewhere[0], right[0]) == (401, 200)
    assert len(desk.guesses) == 10_001
    assert [source for source, guess in desk.guesses if guess.begins] == ["10.0.0.7"]  # what a log line is worth


@pytest.mark.parametrize(
    "told", ["' OR 1=1 --", '{"$ne": ""}', "return redis.call('FLUSHALL')", "%27%3B--", "\x00", "\xff", TOKEN[:-1]]
)
def test_az_08_whatever_stands_for_a_token_gets_the_same_401(told):
    headers = {"host": HOST, "authorization": f"Bearer {told}"}
    assert ask("GET", "/state", headers) == ask("GET", "/state", {"host": HOST, "authorization": "Bearer x"})
    assert ask("GET", "/state", headers)[0] == 401


@pytest.mark.parametrize(("path", "method"), [route[:2] for route in operator.ROUTES])
@pytest.mark.parametrize("key", ["sgk_1_" + "x" * 43, "", TOKEN[::-1] + "x"])
def test_az_03_the_operator_port_is_for_its_token_only(path, method, key):
    desk = Desk()
    for headers in ({"authorization": f"Bearer {key}"}, {"x-swarmgate-key": key}, {"x-api-key": key}, {"cookie": key}):
        status, said = ask(method, path, {"host": HOST} | headers, b"{}", desk)
        assert (status, set(said)) == (401, {"error"})  # AZ-14: no figure, no name
    assert not desk.orders
