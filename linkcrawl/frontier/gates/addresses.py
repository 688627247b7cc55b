"""PURE. Which hosts share a server's address and so a gate, and which addresses are a CDN's that strangers share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkcrawl.urls.domains import registered_domain

#: The most registered domains at an address whose hosts share a gate. A museum's eighty subdomains are one domain, a
#: university's institutes a few; at the front end of a hosting company or CDN a catalogue has more.
FEW = 4


def server_address(addresses: Iterable[str]) -> str:
    """The address that stands for a name's server; empty for a name without addresses. IPv4 goes before IPv6: names of
    one server share the former, and often not all of them have the latter."""
    return min(addresses, key=lambda address: (":" in address, address), default="")


class Addresses:
    """Hosts by address. The first host at an address is its leader: the others share its gate."""

    def __init__(self) -> None:
        self._address: dict[str, str] = {}
        self._hosts: dict[str, list[str]] = {}
        self._domains: dict[str, set[str]] = {}

    def knows(self, host: str) -> bool:
        """True once the host's address has been learned."""
        return host in self._address

    def learn(self, host: str, addresses: Sequence[str]) -> tuple[str, ...]:
        """Learn a host's addresses. Returns the hosts that must leave their gate for one of their own, because their
        address has turned out to be shared by many strangers."""
        if host in self._address or not addresses:
            return ()
        address = server_address(addresses)
        self._address[host] = address
        hosts = self._hosts.setdefault(address, [])
        domains = self._domains.setdefault(address, set())
        shared = len(domains) <= FEW
        hosts.append(host)
        domains.add(registered_domain(host))
        return tuple(hosts[1:]) if shared and len(domains) > FEW else ()

    def leader(self, host: str) -> str:
        """The host whose gate this host shares; often the host itself."""
        address = self._address.get(host)
        if address is None or len(self._domains[address]) > FEW:
            return host
        return self._hosts[address][0]
