"""PURE. Which hosts share a server's address, and so a gate; and which addresses are a CDN's, where strangers live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkcrawl.urls.domains import registered_domain

#: Registered domains at one address up to which its hosts share a gate: a museum's eighty subdomains are one, a
#: university's institutes a few; a hosting company's or CDN's front end has more within any catalogue.
FEW = 4


def server_address(addresses: Iterable[str]) -> str:
    """The address by which a server is known, of all that a name has; empty where it has none. IPv4 goes before IPv6:
    a server's names have the one in common, and often not all of them have the other as well."""
    return min(addresses, key=lambda address: (":" in address, address), default="")


class Addresses:
    """Hosts by address. The first host that comes to an address leads it: its gate is that of those who follow."""

    def __init__(self) -> None:
        self._address: dict[str, str] = {}
        self._hosts: dict[str, list[str]] = {}
        self._domains: dict[str, set[str]] = {}

    def knows(self, host: str) -> bool:
        """Whether the host's address has been learned."""
        return host in self._address

    def learn(self, host: str, addresses: Sequence[str]) -> tuple[str, ...]:
        """A host's addresses, of which one stands for its server (`server_address`). The hosts that have to leave the
        gate they had for one of their own, because their address has turned out to be one of many strangers."""
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
        """The host whose gate this host shares: often itself."""
        address = self._address.get(host)
        if address is None or len(self._domains[address]) > FEW:
            return host
        return self._hosts[address][0]
