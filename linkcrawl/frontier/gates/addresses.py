"""PURE. Which hosts share a server's address and so a gate, and which addresses are a CDN's that strangers share.

A host is at one address at a time: of those that its name has, the one that is asked first, until another answers. So
a name that lists a stranger's address beside its own shares the stranger's gate only while it is asked there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import define, field

from linkcrawl.urls.domains import registered_domain

#: The most registered domains at an address whose hosts share a gate. A museum's eighty subdomains are one domain, a
#: university's institutes a few; at the front end of a hosting company or CDN a catalogue has more.
FEW = 4


def server_address(addresses: Iterable[str]) -> str:
    """The address that stands for a name's server; empty for a name without addresses. IPv4 goes before IPv6: names of
    one server share the former, and often not all of them have the latter."""
    return min(addresses, key=lambda address: (":" in address, address), default="")


@define
class _Server:
    """Hosts at one address, in the order in which they came there, and how many of each registered domain. `crowded`:
    more domains have been there than share a gate; it stays so, for gates that change with every name keep no delay."""

    hosts: dict[str, None] = field(factory=dict)
    domains: Counter[str] = field(factory=Counter)
    crowded: bool = False


class Addresses:
    """Hosts by address. The first host at an address is its representative: the others share its gate."""

    def __init__(self) -> None:
        self._address: dict[str, str] = {}
        self._servers: dict[str, _Server] = {}

    def address(self, host: str) -> str | None:
        """The address that the host is asked at; empty where its name has none, None where nobody has looked."""
        return self._address.get(host)

    def shared(self, host: str) -> str:
        """The address that the host is at; empty where none is known, or where many strangers share it."""
        address = self._address.get(host, "")
        return "" if not address or self._servers[address].crowded else address

    def at(self, address: str) -> tuple[str, ...]:
        """The hosts at an address, first come first."""
        server = self._servers.get(address)
        return () if server is None else tuple(server.hosts)

    def representative(self, host: str) -> str:
        """The host whose gate this host shares; often the host itself."""
        address = self.shared(host)
        return next(iter(self._servers[address].hosts)) if address else host

    def learn(self, host: str, addresses: Sequence[str]) -> tuple[str, ...]:
        """Learn the addresses of a host's name, or the one that has answered. Returns the hosts met before that have
        another representative now: it has come to others, or has left them, or their address has turned out to be
        shared by many strangers."""
        before = self._address.get(host)
        if not addresses:
            self._address.setdefault(host, "")
            return ()
        if before in addresses:
            return ()
        represented_by = self.representative(host)
        moved = self._leave(host, before) if before else []
        moved += self._come(host, server_address(addresses))
        if before is not None and self.representative(host) != represented_by:
            moved.append(host)
        return tuple(dict.fromkeys(moved))

    def _leave(self, host: str, address: str) -> list[str]:
        """Returns the hosts that have lost their representative."""
        server = self._servers[address]
        led = not server.crowded and next(iter(server.hosts)) == host
        del server.hosts[host]
        server.domains[registered_domain(host)] -= 1
        server.domains += Counter()  # without those that are gone
        if not server.hosts and not server.crowded:
            del self._servers[address]
        return list(server.hosts) if led else []

    def _come(self, host: str, address: str) -> list[str]:
        """Returns the hosts that must be on their own, because this one is of one registered domain too many."""
        self._address[host] = address
        server = self._servers.setdefault(address, _Server())
        server.hosts[host] = None
        server.domains[registered_domain(host)] += 1
        if server.crowded or len(server.domains) <= FEW:
            return []
        server.crowded = True
        return list(server.hosts)[1:]
