"""Nobody can bill anybody for a request to a host that only reads and does not say who asks."""

import pytest

from records import a_head
from swarmgate.core.target import parse_target
from swarmgate.gate.egress.requests import is_plain


@pytest.mark.parametrize(
    ("method", "url", "headers", "plain"),
    [
        ("GET", "https://a.org/x?q=1&page=2", (), True),
        ("HEAD", "https://a.org/", ("accept: text/html", "user-agent: swarm", "idempotency-key: 7"), True),
        ("GET", "https://a.org/", ("x-swarmgate-key: sgk_a", "proxy-authorization: Bearer sgk_a"), True),
        ("GET", "https://a.org/", ("authorization: Bearer sgk_a",), True),
        ("POST", "https://a.org/", (), False),
        ("get", "https://a.org/", (), False),
        ("GET", "https://u:p@a.org/", (), False),
        ("GET", "https://a.org/", ("authorization: Bearer theirs",), False),
        ("GET", "https://a.org/", ("x-api-key: theirs",), False),
        ("GET", "https://a.org/", ("cookie: session=1",), False),
        ("GET", "https://a.org/?q=1&API_KEY=x", (), False),
        ("GET", "https://a.org/?key=x", (), False),
        ("GET", "https://a.org/?appid=x", (), False),
        ("GET", "https://a.org/?access_token=", (), False),
    ],
)
def test_who_says_who_he_is_may_be_billed(method, url, headers, plain):
    assert is_plain(method.encode(), a_head(*headers).fields, parse_target(url)) is plain
