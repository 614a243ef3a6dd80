"""Redirects and cookies of `/to/`: they stay inside, count their hops, and take no credential along."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import stage, whole

from swarmgate.core.target import parse_target
from swarmgate.gate.egress.rewrite import START, Trail, cookie, is_credential, location, read_trail

HERE = parse_target("https://a.org/dir/page?q")


@pytest.mark.parametrize(
    ("said", "leads_to"),
    [
        ("/next", "/to/https/a.org/next"),
        ("next?x=1#part", "/to/https/a.org/dir/next?x=1#part"),
        ("../up", "/to/https/a.org/up"),
        ("../../../../etc", "/to/https/a.org/etc"),
        ("?only", "/to/https/a.org/dir/page?only"),
        ("https://a.org:443/x", "/to/https/a.org/x"),
        ("//b.org/x", "/to/+1x/https/b.org/x"),
        ("https://b.org:8443/", "/to/+1x/https/b.org:8443/"),
        ("http://a.org/", "/to/+1xd/http/a.org/"),
        ("https://127.0.0.1/", "/to/+1x/https/127.0.0.1/"),
        ("mailto:me@a.org", "mailto:me@a.org"),
        ("tel:+1", "tel:+1"),
        ("https://b.org/a b", "/to/+1x/https/b.org/a%20b"),
        (" https://b.org/ ", "/to/+1x/https/b.org/"),
        ("/caf\u00e9#\u00e9", "/to/https/a.org/caf%C3%A9#%C3%A9"),
        ("https://\uff42.org/", "/to/+1x/https/b.org/"),
        ("https://a..b/", "/to/+1x/https/a..b/"),
        ("http://b.org:99999/x?y", "/to/+1x/http/b.org:99999/x?y"),
        ("https://b.org/%00", "/to/+1x/https/b.org/%00"),
        ("https://b.org/a%2f..%2fb", "/to/+1x/https/b.org/a%2f..%2fb"),
        ("http://[::1]x/", "/to/+1x/http/[::1]x/"),
        ("//[::1]x/", "/to/+1x/https/[::1]x/"),
        (r"https:\\b.org", "/to/https/a.org/dir/%5C%5Cb.org"),
    ],
)
def test_where_a_redirect_leads(said, leads_to):
    assert location(said.encode(), HERE, START, b"").decode() == leads_to


def test_http_to_https_of_one_host_keeps_credentials():
    assert location(b"https://a.org/", parse_target("http://a.org/"), START, b"") == b"/to/+1/https/a.org/"
    assert location(b"https://a.org:8443/", parse_target("http://a.org/"), START, b"") == b"/to/+1x/https/a.org:8443/"
    assert location(b"https://a.org/", parse_target("http://a.org:8080/"), START, b"") == b"/to/+1x/https/a.org/"


def test_what_was_dropped_once_stays_dropped_and_words_of_the_caller_stay_in_the_path():
    assert location(b"https://b.org/", HERE, Trail(2, bare=True), b"/as/agent=a") == b"/as/agent=a/to/+3x/https/b.org/"
    assert location(b"/same", HERE, Trail(2, bare=True), b"") == b"/to/+2x/https/a.org/same"


@given(st.builds(Trail, st.integers(1, 99), st.booleans(), st.booleans()))
def test_a_mark_is_read_as_it_was_written(trail):
    assert read_trail(trail.mark() + b"https/a.org/") == (trail, b"https/a.org/")


@given(st.sampled_from([b"", b" ", b"//", b"http:", b"HTTP://", b"https://b.org"]), st.binary(max_size=60))
def test_no_redirect_can_lead_out_or_raise(begins, rest):
    found = location(begins + rest, HERE, START, b"")
    assert (found.startswith(b"/to/") and found.isascii()) or re.match(
        rb"\s*(?!https?:)[a-z][a-z0-9+.-]*:", found.lower()
    )


@pytest.mark.parametrize(
    "name", ["authorization", "cookie", "x-api-key", "x-goog-api-key", "private-token", "x-els-apikey", "dpop-key"]
)
def test_what_carries_a_credential(name):
    assert is_credential(name.encode())


@pytest.mark.parametrize(
    "name", ["accept", "x-author", "content-type", "idempotency-key", "x-keep", "user-agent", "keep-alive"]
)
def test_what_carries_none(name):
    assert not is_credential(name.encode())


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("s=1", "s=1; Path=/to/https/a.org"),
        ("s=1; Path=/; HttpOnly", "s=1; HttpOnly; Path=/to/https/a.org"),
        ("s=1; path=/x; Domain=.a.org; Secure; SameSite=None", "s=1; SameSite=None; Path=/to/https/a.org/x"),
    ],
)
def test_a_cookie_comes_back_to_its_host_only(said, kept):
    assert cookie(said.encode(), HERE.target, b"").decode() == kept


def test_credentials_do_not_follow_a_redirect_to_another_origin():
    async def act():
        async with stage() as on:
            on.world.reply = lambda hit: (
                whole(302, b"", location="http://b.org/landing", set_cookie="s=1; Path=/")
                if hit.host == "a.org"
                else whole()
            )
            asked = {"authorization": "Bearer k", "cookie": "c=1", "x-api-key": "k", "x-keep": "1"}
            first = await on.caller.ask("GET", "/to/http/a.org/", asked)
            second = await on.caller.ask("GET", first.headers["location"], asked)
            return first, second, on.world.hits

    first, second, (at_a, at_b) = asyncio.run(act())
    assert first.headers["location"] == "/to/+1x/http/b.org/landing"
    assert first.headers["set-cookie"] == "s=1; Path=/to/http/a.org"
    assert second.status == 200
    assert at_a.headers["authorization"] == "Bearer k"
    assert not {"authorization", "cookie", "x-api-key"} & set(at_b.headers)
    assert at_b.headers["x-keep"] == "1"


def test_origins_that_redirect_to_each_other_end():
    async def act():
        async with stage() as on:
            on.world.reply = lambda hit: whole(302, b"", location=f"http://{'b' if hit.host == 'a.org' else 'a'}.org/")
            answer = await on.get("http://a.org/")
            while answer.status == 302 and len(on.world.hits) < 20:
                answer = await on.caller.ask("GET", answer.headers["location"])
            return answer, len(on.world.hits)

    answer, hits = asyncio.run(act())
    assert (answer.status, answer.said["code"], hits) == (508, "policy_redirects", 6)


def test_a_redirect_inside_is_refused_at_its_hop():
    async def act():
        async with stage(lambda _hit: whole(307, b"", location="http://169.254.169.254/latest/")) as on:
            first = await on.get("http://a.org/")
            return await on.caller.ask("GET", first.headers["location"])

    assert asyncio.run(act()).said["code"] == "policy_address"
