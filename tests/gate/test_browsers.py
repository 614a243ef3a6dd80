"""Which requests may be those of a page of another site; and that the gate does none of them."""

import pytest
from test_front import TEXT, answered, request
from wires import Bench

from swarmgate.gate.browsers import is_foreign
from swarmgate.gate.front import MOST_HOSTS


@pytest.mark.parametrize(
    ("fields", "foreign"),
    [
        ({"host": "127.0.0.1:8787"}, False),
        ({"host": "localhost"}, False),
        ({"host": "[::1]:8787"}, False),
        ({"host": "10.0.0.7:8787"}, False),
        ({"host": "gate:8787"}, False),
        ({"host": "swarm.localhost:80"}, False),
        ({"host": "host.docker.internal:8787"}, False),
        ({"host": "internal.evil.test"}, True),
        ({"host": "evil-internal.test"}, True),
        ({}, False),
        ({"host": "evil.test:8787"}, True),
        ({"host": "127.0.0.1.evil.test"}, True),
        ({"host": "localhost.evil.test"}, True),
        ({"host": "evil.test.:8787"}, True),
        ({"host": "notlocalhost.test"}, True),
        ({"host": "localhost", "origin": "http://localhost:3000"}, False),
        ({"host": "localhost", "origin": "http://127.0.0.1:8787"}, False),
        ({"host": "localhost", "origin": "https://evil.test"}, True),
        ({"host": "localhost", "origin": "null"}, True),
        ({"host": "localhost", "origin": "http://localhost.evil.test"}, True),
        ({"host": "localhost", "origin": "http://evil.test/localhost"}, True),
        ({"host": "localhost", "origin": "http://1.2.3.4"}, True),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, True),
        ({"host": "localhost", "sec-fetch-site": "same-origin"}, False),
    ],
)
def test_who_is_foreign(fields, foreign):
    assert is_foreign({name.encode(): value.encode() for name, value in fields.items()}) is foreign


@pytest.mark.parametrize(
    "raw",
    [
        request(
            "/v1/chat/completions", b'{"model":"fast"}', "POST", "origin: https://evil.test", "content-type: text/plain"
        ),
        request("/v1/chat/completions", b'{"model":"fast"}', "POST", "origin: null"),
        request("/v1/files", b"", "GET", "sec-fetch-site: cross-site"),
        request("/v1/files", b"", "GET").replace(b"host: g", b"host: evil.test"),
        request("/as/agent=a/v1/chat/completions", b'{"model":"fast"}', "POST", "origin: https://evil.test"),
        request("/swarmgate/v1/calls", b"", "GET").replace(b"host: g", b"host: evil.test:8787"),
        request("/to/http/site.test/", b"", "GET", "sec-fetch-site: cross-site"),
        request("/v1/models", b"", "GET").replace(
            b"host: g", b"host: evil.test:8787"
        ),  # no Origin where a page reads its own site
        request("/v1/models", b"", "GET", "sec-fetch-site: cross-site"),
        request(body=b'{"model":"fast"}').replace(b"host: g", b"host: evil.test"),
        request("/v1/chat/completions", b'{"model":"fast"}', "POST", "sec-fetch-site: cross-site"),
    ],
)
def test_az_04_and_05_a_page_of_another_site_gets_nothing_done(raw):
    status, error = answered(raw)
    assert (status, error["code"]) == (403, "caller_other_site")


def test_az_05_a_host_that_was_seen_before_opens_nothing_for_others():
    bench = Bench(TEXT)
    for host, status in ((b"g", b"200"), (b"evil.test", b"403"), (b"g", b"200"), (b"evil.test", b"403")):
        bench.client.data_received(b"GET /v1/models HTTP/1.1\r\nhost: %b\r\n\r\n" % host)
        assert b"".join(bench.wire.written).split()[1] == status
        bench.wire.written.clear()
    for number in range(2 * MOST_HOSTS):
        bench.client.data_received(b"GET /v1/models HTTP/1.1\r\nhost: g%d\r\n\r\n" % number)
    assert len(bench.gate.front._familiar) == MOST_HOSTS
