"""Which gate a host belongs to, the same for all workers: settled once, in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from linkcrawl.cluster.context import WorkerContext
from linkcrawl.frontier.gates.addresses import FEW, Addresses, server_address
from linkcrawl.network.fault import Fault
from linkcrawl.network.guard import Address
from linkcrawl.urls.domains import hostname_of, registered_domain

#: Names looked up at a time, and seconds that a call waits for them: one that takes longer is for a later call.
LOOKUPS, WAIT = 64, 0.25


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


class GatePlacement:
    """Settles gates for a gatekeeper."""

    def __init__(self, parts: WorkerContext):
        self._parts = parts
        self._addresses = SharedAddresses()
        parts.keeper.share(self._addresses)
        self._lookups: dict[str, asyncio.Task[tuple[Address, ...] | Fault]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._addresses.clear()
        self._parts.keeper.known.clear()

    async def locate(self, hosts: list[str]) -> None:
        """Settle the gates of hosts, by what Redis knows; else by the address that their name has. Those whose names
        take long are left unknown to the gatekeeper: they want asking for again."""
        unknown = [host for host in hosts if host not in self._parts.keeper.known]
        found = await self._parts.ledger.places(unknown)
        new = [host for host in unknown if host not in found and not self._has_group(host)]
        for start in range(0, len(new), LOOKUPS):
            part = new[start : start + LOOKUPS]
            found |= await self._parts.ledger.place(await self._resolved(part), FEW)
        self._addresses.settle(found)
        self._parts.keeper.known.update(host for host in unknown if host in found or self._has_group(host))

    async def _resolved(self, hosts: list[str]) -> list[tuple[str, str, str]]:
        """Those whose look-up has come to its end by now: host, registered domain, address."""
        for host in hosts:
            if host and host not in self._lookups:
                self._lookups[host] = asyncio.create_task(self._parts.resolver.resolve(hostname_of(host)))
        lookups = {host: self._lookups[host] for host in hosts if host}
        if lookups:
            await asyncio.wait(lookups.values(), timeout=WAIT)
        found = [("", "", "")] if "" in hosts else []
        for host, lookup in lookups.items():
            if lookup.done():
                self._lookups.pop(host, None)
                answer = lookup.result()
                address = "" if isinstance(answer, Fault) else server_address(map(str, answer))
                found.append((host, registered_domain(host), address))
        return found

    def _has_group(self, host: str) -> bool:
        return self._parts.keeper.applied(host).gate is not None
