import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.target import (
    LONGEST_ORIGIN_FORM,
    LONGEST_URL,
    Target,
    parse_authority,
    parse_target,
)
from swarmgate.core.target_errors import TARGET_REASONS, BadTarget

SAME_KEY = [
    "https://example.com",
    "https://EXAMPLE.com/",
    "HTTPS://example.com:443",
    "https://example.com.:443/",
    "https://user:pw@example.com/",
    "https://example.com:0443/",
    "https://example.com:/",
    "https://ex%61mple.com/",
    "https://ex%41mple.com/",
    "https://example%2Ecom/",
    "https://\uff45xample.com/",
    "https://%EF%BD%85xample.com/",
    "https://ⓔⓧⓐⓜⓟⓛⓔ.ⓒⓞⓜ/",
    "https://example。com/",
    "https://example\uff0ecom｡/",
    "https://exa\u00admple.com/",
    "https://example.com#@evil.com/",  # cpython#74685
    "https://example.com?@evil.com/",
    "https://example.com/@evil.com/",
    "https://example.com/https://evil.com/",
]

DIFFERENT = [
    ("https://faß.de", "https://fass.de"),  # the stdlib's codec makes one of them
    ("https://example.com", "https://example.com:8443"),
    ("https://example.com", "http://example.com"),
    ("https://example.com:80", "http://example.com:80"),
    ("https://example.com:443", "http://example.com:443"),
    ("https://example.com", "https://www.example.com"),
    ("https://example.com", "https://\u0435xample.com"),  # Cyrillic
    ("https://ex_ample.com", "https://example.com"),
    ("https://ex-ample.com", "https://example.com"),
    ("http://[::1]", "http://127.0.0.1"),
    ("http://1.2.3.4", "http://1.2.3.40"),
]

REJECTED = [
    ("http://127.0.0.1:6666\\@1.1.1.1/", "caller_url_character"),  # Orange Tsai 2017
    ("http://1.1.1.1 &@2.2.2.2# @3.3.3.3/", "caller_url_character"),
    ("http://exa\tmple.com/", "caller_url_character"),  # urlsplit removes it
    ("http://example.com/\r\nx: y", "caller_url_character"),
    ("http://example.com\r\n/", "caller_url_character"),
    (" http://example.com/", "caller_url_character"),  # CVE-2023-24329
    ("http://example.com%00.evil.com/", "caller_url_character"),
    ("http://example.com/\x85", "caller_url_character"),
    ("http://example.com/\ud800", "caller_url_character"),
    ("http://[v1.example].postfix/", "caller_host_ipv6"),  # CVE-2024-11168
    ("http://[v1.example]/", "caller_host_ipv6"),
    ("http://prefix.[::1]/", "caller_host_name"),  # CVE-2025-0938
    ("http://[127.0.0.1]/", "caller_host_ipv6"),
    ("http://[[::1]]/", "caller_host_ipv6"),
    ("http://[::1]x/", "caller_host_ipv6"),
    ("http://[::1", "caller_host_ipv6"),
    ("http://[]/", "caller_host_ipv6"),
    ("http://[::1%eth0]/", "caller_host_ipv6"),
    ("http://[::1%25]/", "caller_host_ipv6"),
    ("http://[%3A%3A1]/", "caller_host_ipv6"),
    ("http://::1/", "caller_host_empty"),
    ("http://%5B::1%5D/", "caller_host_name"),
    ("http://a..b/", "caller_host_name"),
    ("http://.a/", "caller_host_name"),
    ("http://a../", "caller_host_name"),
    ("http://…a/", "caller_host_idna"),
    ("http:///x", "caller_host_empty"),
    ("http://./", "caller_host_empty"),
    ("http://:80/", "caller_host_empty"),
    ("http://user@/", "caller_host_empty"),
    ("http://\u00ad/", "caller_host_empty"),
    ("http://example.com:65536/", "caller_port"),
    ("http://example.com:0/", "caller_port"),
    ("http://example.com:-1/", "caller_port"),
    ("http://example.com:8_0/", "caller_port"),
    ("http://example.com:\uff18\uff10/", "caller_port"),
    ("http://example.com:²/", "caller_port"),
    ("http://example.com:80:80/", "caller_port"),
    (f"http://example.com:{'9' * 5000}/", "caller_port"),
    ("//host/x", "caller_scheme"),
    ("host/x", "caller_scheme"),
    ("", "caller_scheme"),
    ("http:127.0.0.1/", "caller_scheme"),
    ("http:/example.com/", "caller_scheme"),
    ("jar:http://example.com!/", "caller_scheme"),
    ("file:///etc/passwd", "caller_scheme"),
    ("gopher://example.com/", "caller_scheme"),
    ("http\u017f://example.com/", "caller_scheme"),  # long s, which upper-cases to S
    ("http://example1.com\uff03@example2.org", "caller_userinfo"),  # CVE-2019-9636
    ("http://a@b@example.com/", "caller_userinfo"),
    ("http://us[er@example.com/", "caller_userinfo"),
    ("http://netflix.com\uff03.example.org/", "caller_host_name"),  # CVE-2019-10160
    ("http://example.com\u2100evil.org/", "caller_host_name"),  # ℀ is a/c
    ("http://example.com%2Fevil.org/", "caller_host_name"),
    ("http://example.com%40evil.org/", "caller_host_name"),
    ("http://example.com%3A80/", "caller_host_name"),
    ("http://ex%2561mple.com/", "caller_host_name"),
    ("http://ex%zzmple.com/", "caller_host_name"),
    ("http://exa*mple.com/", "caller_host_name"),
    (f"http://{'a' * 64}.com/", "caller_host_name"),
    (f"http://{'ü' * 64}.com/", "caller_host_name"),
    (f"http://{'a.' * 127}a/", "caller_host_name"),
    (f"http://{'%61' * 400}/", "caller_host_name"),
    (f"http://{'%C2%AD' * 200}a.com/", "caller_host_name"),
    ("http://%ff/", "caller_host_idna"),
    ("http://xn--/", "caller_host_idna"),
    ("http://xn--example-/", "caller_host_idna"),
    ("http://xn---bbk/", "caller_host_idna"),  # a second spelling of xn--bbk
    ("http://xn--a-ecp.ru/", "caller_host_idna"),
    ("http://💩.la/", "caller_host_idna"),
    ("http://0o177.0.0.1/", "caller_host_ipv4"),
    ("http://256.0.0.1/", "caller_host_ipv4"),
    ("http://1.2.3.4.5/", "caller_host_ipv4"),
    ("http://1.2.3.08/", "caller_host_ipv4"),
    ("http://4294967296/", "caller_host_ipv4"),
    ("http://1.16777216/", "caller_host_ipv4"),
    ("http://example.1/", "caller_host_ipv4"),
    ("http://example.0x/", "caller_host_ipv4"),
    ("http://example.com/dear%2f..%2fcheap", "caller_path_ambiguous"),
    ("http://example.com/dear%5C..%5Ccheap", "caller_path_ambiguous"),
    ("http://example.com/cheap/..;/dear", "caller_path_ambiguous"),
    ("http://example.com/" + "a" * LONGEST_URL, "caller_url_too_long"),
    ("http://example.com/#" + "a" * LONGEST_URL, "caller_url_too_long"),
    ("http://example.com/" + "é" * (LONGEST_ORIGIN_FORM // 6 + 1), "caller_url_too_long"),
]

NASTY = [
    *("http://", "HTTPS://", "//", "/", "?", "#", "@", ":", "[", "]", "::1", "127.1", "0x7f", "443", "%", "%25", "%2e"),
    *("%2f", "..", ".", "a", "B", "xn--", "xn--fa-hia", "ß", "①", "。", "\u00ad", "\u200d", "\u202e", "ﷺ", "İ"),
    *("\u017f", "_", "-", "\\", "\t", "%00", "\ud800", "\uff03", "ü", "\u0660", "८", "ب", "א", ";", "&", "=", "~"),
    *("é", "e\u0301", " "),
]
SOUP = st.lists(st.sampled_from(NASTY), max_size=12).map("".join)
URLS = st.one_of(
    st.text(max_size=60),
    SOUP,
    st.builds("http://{}".format, SOUP),
    st.builds("https://{}/{}".format, st.text(max_size=20), st.text(max_size=40)),
)
HOSTS = st.one_of(
    st.from_regex(r"[a-z0-9_-]{1,8}(\.[a-z][a-z0-9_-]{0,7}){1,3}", fullmatch=True).filter(
        lambda host: "xn--" not in host
    ),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).filter(lambda address: not address.ipv4_mapped).map(str),
    st.sampled_from(["xn--fa-hia.de", "localhost", "xn--fiqs8s"]),
)
TARGETS = st.builds(Target, st.sampled_from(["http", "https"]), HOSTS, st.integers(1, 65_535), st.just(""))


@pytest.mark.parametrize("url", SAME_KEY)
def test_all_spellings_of_an_origin_share_a_key(url):
    assert parse_target(url).target.key == "https://example.com"


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_origins_have_different_keys(one, other):
    assert parse_target(one).target.key != parse_target(other).target.key


@pytest.mark.parametrize(
    ("label", "ascii_form"),
    [
        ("faß.de", "xn--fa-hia.de"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
    ],
)
def test_an_international_name_and_its_a_label_are_one(label, ascii_form):
    assert parse_target(f"https://{label}/").target == parse_target(f"https://{ascii_form.upper()}/").target
    assert parse_target(f"https://{label}/").target.host == ascii_form


@pytest.mark.parametrize(("url", "reason"), REJECTED, ids=[ascii(url[:40]) for url, _ in REJECTED])
def test_what_has_two_meanings_is_refused(url, reason):
    with pytest.raises(BadTarget) as caught:
        parse_target(url)
    assert caught.value.reason == reason
    assert caught.value.field == TARGET_REASONS[reason][0]


def test_every_reason_has_a_case():
    assert {reason for _, reason in REJECTED} | {"caller_port_missing"} == set(TARGET_REASONS)


@given(URLS)
def test_any_text_is_read_or_refused_and_reading_again_changes_nothing(url):
    try:
        parsed = parse_target(url)
    except BadTarget:
        return
    assert parse_target(parsed.url) == parsed._replace(credential=None)
    assert parsed.origin_form.startswith("/")
    assert all("!" <= char <= "~" and char != "#" for char in parsed.origin_form)
    assert not {".", ".."} & set(parsed.path.split("/"))


@given(TARGETS)
def test_a_key_is_read_back_as_its_target_so_no_two_targets_share_one(target):
    assert parse_target(target.key).target == target


@given(TARGETS, st.data())
def test_a_spelling_never_makes_a_second_key(target, data):
    host = target.authority.removesuffix(f":{target.port}")
    if not host.startswith("["):
        host = "".join(data.draw(st.sampled_from(_spellings(char))) for char in host)
        host += data.draw(st.sampled_from(["", ".", "。", "%2e"]))
    ports = [f":{target.port}", f":000{target.port}"]
    if target.port == {"http": 80, "https": 443}[target.scheme]:
        ports += ["", ":"]
    userinfo = data.draw(st.sampled_from(["", "@", "u@", "u:p@", "example.com:80@"]))
    tail = data.draw(st.sampled_from(["", "/", "?@evil.com", "#@evil.com", "/a/../b//c"]))
    url = f"{target.scheme.upper()}://{userinfo}{host}{data.draw(st.sampled_from(ports))}{tail}"
    assert parse_target(url).target.key == target.key


def _spellings(char):
    full_width = chr(ord(char) + 0xFEE0)
    return [char, char.upper(), f"%{ord(char):02x}", full_width, char + "\u00ad"]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://h.example", "/"),
        ("https://h.example?q=1", "/?q=1"),
        ("https://h.example/a%2Fb//c?x=%2e%2e/&y=a|b#z", "/a%2Fb//c?x=%2e%2e/&y=a|b"),
        ("https://h.example/a/./b/../c/%2E%2e/d/.", "/a/d/"),
        ("https://h.example/a/b/%2E%2E", "/a/"),
        ("https://h.example/é?é", "/%C3%A9?%C3%A9"),
        ("https://h.example/?", "/?"),
        ("https://h.example//evil.com/", "//evil.com/"),
    ],
)
def test_path_and_query_are_sent_as_written(url, sent):
    assert parse_target(url).origin_form == sent


def test_a_credential_is_kept_and_never_shown():
    parsed = parse_target("https://agent:hunter2@example.com/x?key=hunter2")
    assert parsed.credential is not None
    assert parsed.credential.userinfo == "agent:hunter2"
    shown = f"{parsed} {parsed!r} {parsed.credential} {parsed.credential!r} {parsed.target} {parsed.target.key}"
    assert "hunter2" not in shown
    assert "agent" not in shown


@pytest.mark.parametrize("url", ["https://hunter2@b@example.com/", "https://hunter2@a..b/", "ftp://hunter2@a/"])
def test_a_refusal_repeats_no_secret(url):
    with pytest.raises(BadTarget) as caught:
        parse_target(url)
    assert "hunter2" not in f"{caught.value} {caught.value!r}"


def test_a_class_is_a_suffix_of_the_key_and_its_origin_lacks_it():
    plain = parse_target("http://api.example.com:8080/v1/./search?q").target
    searched = plain._replace(path_class="search")
    assert searched.key == "http://api.example.com:8080#search"
    assert searched.origin == plain


@pytest.mark.parametrize(
    ("authority", "key"),
    [
        ("example.com:443", "https://example.com"),
        ("EXAMPLE.com.:0443", "https://example.com"),
        ("example.com:80", "http://example.com"),
        ("example.com:8443", "https://example.com:8443"),
        ("[::ffff:127.0.0.1]:443", "https://127.0.0.1"),
        ("[2001:DB8::0]:443", "https://[2001:db8::]"),
    ],
)
def test_a_tunnel_shares_the_key_of_its_host(authority, key):
    assert parse_authority(authority).key == key


@pytest.mark.parametrize(
    ("authority", "reason"),
    [
        ("example.com", "caller_port_missing"),
        ("example.com:", "caller_port_missing"),
        ("[::1]", "caller_port_missing"),
        ("", "caller_port_missing"),
        (":443", "caller_host_empty"),
        ("example.com:443/", "caller_port"),
        ("example.com:443?x", "caller_port"),
        ("https://example.com:443", "caller_port"),
        ("user@example.com:443", "caller_host_name"),
        ("example.com/x:443", "caller_host_name"),
        ("example.com:443\r\n", "caller_port"),
        ("exam\tple.com:443", "caller_host_name"),
        ("\ud800:443", "caller_host_idna"),
    ],
)
def test_connect_takes_host_and_port_only(authority, reason):
    with pytest.raises(BadTarget) as caught:
        parse_authority(authority)
    assert caught.value.reason == reason


@given(st.one_of(st.text(max_size=30), SOUP))
def test_any_connect_authority_is_read_or_refused(text):
    try:
        target = parse_authority(text)
    except BadTarget:
        return
    assert parse_target(target.key).target == target


def test_real_urls_of_research_agents_are_read():
    recorded = Path(__file__).parents[3] / "shared/data/egress/deep_research_task_urls.jsonl"
    if not recorded.exists():
        pytest.skip("the recorded URLs are not part of the distribution")
    urls = [url for line in recorded.read_text("utf-8").splitlines() for url in json.loads(line)["urls"]]
    refused = []
    for url in urls:
        try:
            parse_target(url)
        except BadTarget as error:
            refused.append((url, error.reason))
    assert len(urls) > 1_700
    assert refused == []
