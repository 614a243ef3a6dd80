import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.host import is_address, normal_host
from swarmgate.core.target_errors import BadTarget

NUMBERS = st.one_of(
    st.integers(0, 2**33).map(str),
    st.integers(0, 2**33).map(hex),
    st.integers(0, 2**33).map("0{:o}".format),
    st.sampled_from(["0", "00", "0x", "08", "0o7", "1_0", "256", "a", ""]),
)
NUMERIC_HOSTS = st.lists(NUMBERS, min_size=1, max_size=5).map(".".join)


def _c_library(host):
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


@given(NUMERIC_HOSTS)
def test_what_the_c_library_dials_is_keyed_by_that_address_or_refused(host):
    dialled = _c_library(host)
    try:
        normal = normal_host(host)
    except BadTarget:
        return
    assert dialled in {None, normal}
    assert is_address(normal) or dialled is None


@pytest.mark.parametrize(
    ("spelled", "address"),
    [
        ("010.8.8.8", "8.8.8.8"),  # CVE-2021-29921: decimal 10 to some, octal 8 to the C library
        ("0x8.0x8.2056", "8.8.8.8"),
        ("134744072", "8.8.8.8"),
        ("8.526344", "8.8.8.8"),
        ("\uff18。8.8.8", "8.8.8.8"),
        ("8.8.8.8.", "8.8.8.8"),
        ("[::ffff:808:808]", "8.8.8.8"),
        ("[0:0:0:0:0:FFFF:8.8.8.8]", "8.8.8.8"),
        ("[2001:DB8:0:0:1:0:0:1]", "2001:db8::1:0:0:1"),  # RFC 5952 4.2.3
        ("[2001:db8::1%25eth0]", "2001:db8::1"),
    ],
)
def test_an_address_has_one_spelling(spelled, address):
    assert normal_host(spelled) == address
    assert is_address(address)


@pytest.mark.parametrize(
    "name",
    [
        "r3---sn-4g5e6nsz.googlevideo.com",
        "zn_0pxrmhobblncaad-hp.siteintercept.qualtrics.com",
        "-start.example",
        "a1.example",
        "1.example",
        "0xg",
        "3com",
        "xn--bcher-kva.example",
        "_dmarc.xn--bcher-kva.example",
    ],
)
def test_names_that_exist_in_the_dns_are_kept(name):
    assert normal_host(name) == name
    assert normal_host(name.upper() + ".") == name
    assert not is_address(name)


@given(st.text(max_size=80))
def test_a_normal_host_is_its_own_normal_form(text):
    try:
        host = normal_host(text)
    except BadTarget:
        return
    assert normal_host(f"[{host}]" if ":" in host else host) == host
