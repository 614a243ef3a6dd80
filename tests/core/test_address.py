from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.address import AddressClass, host_verdict, verdict
from swarmgate.core.host import normal_host
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import BadTarget

CLASSES = [
    ("8.8.8.8", "PUBLIC"),
    ("2606:4700:4700::1111", "PUBLIC"),
    ("::ffff:8.8.8.8", "PUBLIC"),
    ("127.0.0.1", "LOOPBACK"),
    ("127.255.255.255", "LOOPBACK"),
    ("::1", "LOOPBACK"),
    ("0.0.0.0", "UNSPECIFIED"),
    ("0.1.2.3", "UNSPECIFIED"),
    ("::", "UNSPECIFIED"),
    ("10.0.0.0", "PRIVATE"),
    ("172.31.255.255", "PRIVATE"),
    ("192.168.1.1", "PRIVATE"),
    ("fd12::1", "PRIVATE"),
    ("fec0::1", "PRIVATE"),
    ("169.254.1.1", "LINK_LOCAL"),
    ("fe80::1%eth0", "LINK_LOCAL"),
    ("100.64.0.1", "SHARED"),  # ipaddress.is_private is False
    ("169.254.169.254", "METADATA"),
    ("169.254.169.253", "METADATA"),
    ("169.254.170.2", "METADATA"),
    ("169.254.170.23", "METADATA"),
    ("100.100.100.200", "METADATA"),
    ("168.63.129.16", "METADATA"),
    ("fd00:ec2::254", "METADATA"),
    ("fd00:ec2::253", "METADATA"),
    ("fd00:ec2::23", "METADATA"),
    ("fd20:ce::254", "METADATA"),
    ("192.0.0.192", "METADATA"),
    ("224.0.0.1", "MULTICAST"),  # ipaddress.is_global is True
    ("ff02::1", "MULTICAST"),
    ("192.0.0.1", "RESERVED"),
    ("192.0.2.1", "RESERVED"),
    ("198.19.255.255", "RESERVED"),
    ("198.51.100.1", "RESERVED"),
    ("203.0.113.1", "RESERVED"),
    ("240.0.0.1", "RESERVED"),
    ("255.255.255.255", "RESERVED"),
    ("100::1", "RESERVED"),
    ("2001:2::1", "RESERVED"),
    ("2001:db8::1", "RESERVED"),
    ("3fff::1", "RESERVED"),
    ("4000::1", "RESERVED"),
    ("5f00::1", "RESERVED"),
    ("::ffff:0:7f00:1", "RESERVED"),
    ("192.88.99.1", "TRANSITION"),
    ("64:ff9b::8.8.8.8", "TRANSITION"),
    ("2002:808:808::1", "TRANSITION"),
    ("::127.0.0.1", "LOOPBACK"),
    ("64:ff9b::7f00:1", "LOOPBACK"),
    ("64:ff9b::a9fe:a9fe", "METADATA"),
    ("64:ff9b:1::7f00:1", "LOOPBACK"),
    ("64:ff9b:1:a9fe:a9:fe00::", "METADATA"),  # RFC 6052 2.2, length 48
    ("2002:7f00:1::", "LOOPBACK"),
    ("2002:a9fe:a9fe::1", "METADATA"),
    ("2001:0:7f00:1::f7f7:f7f7", "LOOPBACK"),  # Teredo's server
    ("2001:0:808:808::5601:5601", "METADATA"),  # Teredo's client, inverted
    ("::ffff:169.254.169.254", "METADATA"),
    ("127.1", "MALFORMED"),
    ("localhost", "MALFORMED"),
    ("127.0.0.1%lo", "MALFORMED"),
    ("", "MALFORMED"),
]

BLOCKED = [
    *("127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "0177.0.0.1", "0177.0.0.01", "0x7f.0.0.1", "0x7f000001"),
    *("2130706433", "017700000001", "127.000.000.001", "127.127.127.127", "①②⑦.⓪.⓪.①", "%31%32%37.0.0.1", "127.0.0.1."),
    *("localhost", "localhost.", "LOCALHOST", "a.localhost", "ip6-localhost", "\uff4cocalhost"),
    *("[::]", "[::1]", "[0000::1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::1%25lo]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25eth0]"),
    *("2852039166", "0xa9fea9fe", "169.254.169.254", "169.254.169.254.", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]"),
    *("metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data.ec2.internal"),
    *("printer.local", "db.internal", "api.default.svc.cluster.local", "api.default.svc", "nas.lan", "a.home.arpa"),
    *("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.100.100.200", "[fd00::1]", "255.255.255.255", "[ff02::1]"),
]

EMBEDDINGS = [
    IPv6Address,
    lambda v4: IPv6Address(0xFFFF << 32 | v4),
    lambda v4: IPv6Address(0x64FF9B << 96 | v4),
    lambda v4: IPv6Address(0x64FF9B0001 << 80 | v4),
    lambda v4: IPv6Address(0x2002 << 112 | v4 << 80 | 1),
    lambda v4: IPv6Address(0x20010000 << 96 | 0x08080808 << 64 | v4 ^ 0xFFFFFFFF),
    lambda v4: IPv6Address(0x20010000 << 96 | v4 << 64 | 0x08080808),
]
SPECIAL_IPV4 = [address for address, name in CLASSES if ":" not in address and name != "MALFORMED"]
IPV4 = st.one_of(st.ip_addresses(v=4), st.sampled_from(SPECIAL_IPV4).map(IPv4Address))


@pytest.mark.parametrize(("address", "name"), CLASSES)
def test_the_class_of(address, name):
    assert verdict(address) is AddressClass[name]
    assert verdict(address).denied is (name != "PUBLIC")


@pytest.mark.parametrize(
    "address",
    [
        *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255"),
        *("192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255"),
        *("198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "168.63.129.15", "168.63.129.17"),
        *("2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "3ffe:ffff::", "2a00::1"),
    ],
)
def test_the_neighbour_of_a_special_range_is_public(address):
    assert verdict(address) is AddressClass.PUBLIC


@given(IPV4)
def test_no_embedding_hides_what_is_denied(address):
    plain = verdict(address)
    assert verdict(IPv6Address(0xFFFF << 32 | int(address))) is plain
    for embed in EMBEDDINGS:
        wrapped = verdict(embed(int(address)))
        assert wrapped.denied or embed is EMBEDDINGS[1]
        if plain is AddressClass.METADATA:
            assert wrapped is AddressClass.METADATA


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_the_stdlib_calls_special_is_denied(address):
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    special = address.is_private or address.is_multicast or address.is_reserved or address.is_unspecified
    assert verdict(address).denied or not special
    assert verdict(str(address)) is verdict(address)


@given(st.text(max_size=50))
def test_any_text_has_a_verdict(text):
    known = verdict(text)
    if known is not AddressClass.MALFORMED:
        ip_address(text)
    assert known.reason


@pytest.mark.parametrize("host", BLOCKED)
def test_every_spelling_of_an_internal_host_is_denied(host):
    found = host_verdict(parse_target(f"http://{host}/").target.host)
    assert found is not None
    assert found.denied


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "localhost.example.com",
        "mylocalhost",
        "local.example",
        "localtest.me",
        "127.0.0.1.nip.io",
        "postgres",
    ],
)
def test_other_names_are_judged_by_their_addresses(host):
    assert host_verdict(normal_host(host)) is None


@given(st.text(max_size=40))
def test_any_host_is_judged_or_refused(text):
    try:
        host = normal_host(text)
    except BadTarget:
        return
    assert host_verdict(host) in {None, *AddressClass} - {AddressClass.MALFORMED}
