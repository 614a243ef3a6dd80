"""What is no host is no base URL and no address to listen on; what is one has one spelling."""

import pytest

from swarmgate.config import BaseUrl, Listen, parse
from swarmgate.config.problems import FileError

KEY = {"K": "sk-1"}


def target(url):
    return parse(f"[targets.a]\nbase_url = '{url}'\nkeys = {{ k = \"env:K\" }}\n", KEY).targets["a"].base_url


def listen(address):
    return parse(f'listen = "{address}"\n[access]\nagent_keys = "required"\n', {}).listen


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://[::1]x/", "its host is no IPv6 address in brackets"),
        ("http://::1/", "its host is empty; write scheme://host/path"),
        ("http://1.2.3.999/", "its host ends in a number but is no IPv4 address"),
        ("http://a b/", "it holds a space"),
        (" http://a/", "it holds a space"),
        ("http://a/b c", "it holds a space"),
        ("http://a\\\\b/", "backslash"),
        ("http://a:0/", "its port must be a number from 1 to 65535"),
        ("http://a:99999/", "its port must be a number from 1 to 65535"),
        ("http://a:٣/", "its port must be a number from 1 to 65535"),
        ("http://a..b/", "labels of 1 to 63 letters"),
        ("http://.a/", "labels of 1 to 63 letters"),
        ("http://*.a/", "labels of 1 to 63 letters"),
        ("http:///v1", "its host is empty"),
        ("http://a%6d/", "its host has a percent sign"),
        ("http://[fe80::1%25eth0]/", "its host has a percent sign"),
        ("http://a/v1?", "it has a query or a fragment"),
        ("http://a/v1?key=x", "it has a query or a fragment"),
        ("http://a/v1#", "it has a query or a fragment"),
        ("http://a/%2f..%2fv1", "its path hides a dot segment"),
        ("a/v1", "its scheme must be http or https"),
        ("http://@a/", "a user or a password"),
        ("http://u@a/", "a user or a password"),
    ],
)
def test_what_is_no_host_is_no_base_url(url, said):
    with pytest.raises(FileError) as caught:
        target(url)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (2, "targets.a.base_url")
    assert said in problem.reason
    assert "https://host[:port]/v1" in problem.reason or "keys" in problem.reason


def test_a_password_in_a_base_url_is_not_repeated():
    for url in (
        "https://me:secret@a/v1",
        "https://me:sec/ret@a/v1",
        "https://me:secret@a/v1?x",
        "https://secret@[::1]x",
    ):
        with pytest.raises(FileError) as caught:
            target(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("HTTPS://API.OpenAI.com./v1/", ("https", "api.openai.com", 443, "/v1")),
        ("http://127.1:/", ("http", "127.0.0.1", 80, "")),
        ("http://[::FFFF:7f00:1]:8/a//", ("http", "127.0.0.1", 8, "/a")),
        ("https://bücher.example/é", ("https", "xn--bcher-kva.example", 443, "/%C3%A9")),
        ("http://vllm_1:08000/a/../v1", ("http", "vllm_1", 8_000, "/v1")),
    ],
)
def test_a_base_url_has_one_spelling(url, read):
    assert target(url) == BaseUrl(*read)


@pytest.mark.parametrize(
    "address",
    [
        "[::1]x:1",
        "a b:1",
        "127.0.0.1:٣",
        "127.0.0.1:65536",
        "h:" + "9" * 5_000,
        "a..b:1",
        "999.1.1.1:80",
        "u@h:1",
        ":80",
        "*:80",
    ],
)
def test_what_is_no_host_is_no_address_to_listen_on(address):
    with pytest.raises(FileError) as caught:
        listen(address)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (1, "listen")
    assert "write '127.0.0.1:8787'" in problem.reason


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("[::]:0", ("::", 0)),
        ("::1:8787", ("::1", 8_787)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
        ("localhost:1", ("localhost", 1)),
        ("0.0.0.0:8787", ("0.0.0.0", 8_787)),
    ],
)
def test_an_address_to_listen_on_is_kept_as_it_is_written(address, read):
    assert listen(address) == Listen(*read)
