"""Every special-purpose block of the IANA registries, and the forms that hide one."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.network.guard import allowed

# First and last address of every block of iana-ipv4-special-registry, iana-ipv6-special-registry and the multicast
# and reserved space that is not globally reachable, and the metadata services of clouds.
REFUSED = """
0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255
169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.171
192.0.0.192 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.1 239.255.255.255 240.0.0.0 255.255.255.254
255.255.255.255 100.100.100.200 168.63.129.16
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
64:ff9b::127.0.0.1 64:ff9b::10.1.2.3 64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
100:: 100::ffff:ffff:ffff:ffff 100:0:0:1::
2001:: 2001:0:7f00:1:: 2001:1::1 2001:2:: 2001:2:0:ffff:: 2001:3:: 2001:4:112:: 2001:10:: 2001:20:: 2001:30::
2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:7f00:1:: 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe::
3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 5f00:: fc00:: fd00:ec2::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
fe80:: fe80::1%lo febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff fec0::1 ff00:: ff02::1 ff0e::1
4000:: 1fff:: 200::
"""

ALLOWED = """
1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.31.196.1 192.52.193.1 192.175.48.1 192.167.255.255 192.169.0.0
198.17.255.255 198.20.0.0 203.0.112.255 223.255.255.255 8.8.8.8
2000:: 2600:: 2001:200:: 2001:4860:4860::8888 2620:4f:8000::1 2a00:1450:4001::1 3ffe::
::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
"""


@pytest.mark.parametrize("text", REFUSED.split())
def test_special_addresses_are_refused(text):
    assert not allowed(ip_address(text))


@pytest.mark.parametrize("text", ALLOWED.split())
def test_neighbours_of_special_blocks_are_allowed(text):
    assert allowed(ip_address(text))


@pytest.mark.parametrize(
    ("text", "network", "expected"),
    [
        ("127.0.0.1", "127.0.0.0/8", True),
        ("::ffff:127.0.0.1", "127.0.0.0/8", True),
        ("::1", "127.0.0.0/8", False),
        ("::1", "::1/128", True),
        ("10.0.0.1", "127.0.0.0/8", False),
        ("fd00::1", "fd00::/8", True),
        ("10.1.0.1", "10.1.0.0/16", True),
        ("10.2.0.1", "10.1.0.0/16", False),
    ],
)
def test_only_the_exempt_networks_are_opened(text, network, expected):
    assert allowed(ip_address(text), [ip_network(network)]) is expected


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_ipv6_form(address):
    mapped = ip_address(f"::ffff:{address}")
    nat64 = ip_address(f"64:ff9b::{address}")
    six_to_four = ip_address((0x2002 << 112) | (int(address) << 80))
    assert {allowed(form) for form in (mapped, nat64, six_to_four)} == {allowed(address)}


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_is_never_allowed(address):
    # Python's own list is shorter in places and exempts two anycast addresses that no web server has.
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not allowed(address)
