"""Which gate a host belongs to, the same for all workers: settled once, in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from linkcrawl.frontier.addresses import FEW, Addresses, registered_domain, server_address
from linkcrawl.frontier.cluster_parts import Parts
from linkcrawl.frontier.placing import dns_name
from linkcrawl.network.fault import Fault

#: Names looked up at a time.
LOOKUPS = 64


class SharedAddresses(Addresses):
    """Who leads the gate of a host is settled once for all workers, in Redis."""

    def __init__(self) -> None:
        super().__init__()
        self._leaders: dict[str, str] = {}

    def settle(self, leaders: Mapping[str, str]) -> None:
        """Take in what Redis has said."""
        self._leaders.update(leaders)

    def leader(self, host: str) -> str:
        return self._leaders.get(host, host)

    def clear(self) -> None:
        """Forget: a new generation may say otherwise."""
        self._leaders.clear()


class Places:
    """Settles gates for a gatekeeper."""

    def __init__(self, parts: Parts):
        self._parts = parts
        self._addresses = SharedAddresses()
        parts.keeper.share(self._addresses)

    def clear(self) -> None:
        """Forget all."""
        self._addresses.clear()
        self._parts.keeper.known.clear()

    async def locate(self, hosts: list[str]) -> None:
        """Settle the gates of hosts, by what Redis knows; else by the address that their name has."""
        unknown = [host for host in hosts if host not in self._parts.keeper.known]
        found = await self._parts.ledger.places(unknown)
        new = [host for host in unknown if host not in found and not self._has_group(host)]
        for start in range(0, len(new), LOOKUPS):
            part = new[start : start + LOOKUPS]
            found |= await self._parts.ledger.place(await self._resolved(part), FEW)
        self._addresses.settle(found)
        self._parts.keeper.known.update(unknown)

    async def _resolved(self, hosts: list[str]) -> list[tuple[str, str, str]]:
        answers = await asyncio.gather(*(self._parts.resolver.resolve(dns_name(host)) for host in hosts if host))
        named = [host for host in hosts if host]
        found = [
            (host, registered_domain(host), "" if isinstance(answer, Fault) else server_address(map(str, answer)))
            for host, answer in zip(named, answers, strict=True)
        ]
        return found + [("", "", "")] * (len(hosts) - len(named))

    def _has_group(self, host: str) -> bool:
        return self._parts.keeper.applied(host).gate is not None
