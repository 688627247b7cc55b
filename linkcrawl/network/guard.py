"""PURE. Decides which addresses may be connected to: those that IANA lists as globally reachable unicast, and those
that the operator allows.

The blocks stand here and are not taken from `ipaddress.is_global`, whose tables change between patch versions of
Python; tests compare them with the IANA special-purpose registries (RFC 6890 and its updates).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED_IPV4 = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared address space (CGNAT); Alibaba's metadata service is in it
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's metadata and health service, on an address that looks public
        "169.254.0.0/16",  # link-local; the metadata address of most clouds is in it
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments; Oracle's metadata service is in it
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and the limited broadcast
    )
)

#: Everything that is routed over the Internet is in here (RFC 4291, 2.4). Loopback, unique local, link-local,
#: site-local, multicast, discard-only, IPv4-compatible, local NAT64 and segment routing identifiers are not.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

_REFUSED_IPV6 = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/23",  # IETF protocol assignments: benchmarking, ORCHID and Teredo among them
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def allowed(address: Address, exempt: Iterable[Network] = ()) -> bool:
    """True if this address may be connected to. `exempt`: networks that the operator allows whatever they are.

    An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4) is judged by that one; Teredo, which tunnels
    to whatever its bits say, is refused.
    """
    exempt = tuple(exempt)
    if any(address in network for network in exempt):
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _REFUSED_IPV4)
    carried = _carried(address)
    if carried is not None:
        return allowed(carried, exempt)
    return address in _GLOBAL_UNICAST and not any(address in block for block in _REFUSED_IPV6)


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
