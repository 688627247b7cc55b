"""Which gate a host belongs to, the same for all workers: recorded once, in Redis."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.frontier.gates.addresses import FEW, Addresses, server_address
from linkcrawl.frontier.parts import Frontier
from linkcrawl.network.fault import Fault
from linkcrawl.network.guard import Address
from linkcrawl.urls.domains import hostname_of, registered_domain

logger = logging.getLogger(__name__)

#: Names looked up at a time, and seconds that a call waits for them: one that takes longer is for a later call.
LOOKUPS, WAIT = 64, 0.25


class SharedAddresses(Addresses):
    """The host that a gate is named after is recorded once for all workers, in Redis."""

    def __init__(self) -> None:
        super().__init__()
        self._leaders: dict[str, str] = {}

    def record(self, leaders: Mapping[str, str]) -> None:
        """Take in what Redis has recorded."""
        self._leaders.update(leaders)

    def leader(self, host: str) -> str:
        return self._leaders.get(host, host)

    def clear(self) -> None:
        """Forget: a new generation may say otherwise."""
        self._leaders.clear()


class GatePlacement:
    """Finds the gates of hosts for a gatekeeper."""

    def __init__(self, frontier: Frontier, coordinator: Coordinator):
        self._keeper, self._resolver, self._coordinator = frontier.keeper, frontier.resolver, coordinator
        self._addresses = SharedAddresses()
        frontier.keeper.use_addresses(self._addresses)
        self._lookups: dict[str, asyncio.Task[tuple[Address, ...] | Fault]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._addresses.clear()
        self._keeper.looked_up.clear()

    async def locate(self, hosts: list[str]) -> None:
        """Find the gates of hosts: what Redis has recorded, else by the address that their name has. Hosts whose names
        take long to look up stay unknown to the gatekeeper: ask again. Raises SessionLost, redis.RedisError."""
        unknown = [host for host in hosts if host not in self._keeper.looked_up]
        found = await self._coordinator.places(unknown)
        new = [host for host in unknown if host not in found and not self._has_group(host)]
        for start in range(0, len(new), LOOKUPS):
            part = new[start : start + LOOKUPS]
            found |= await self._coordinator.place(await self._resolved(part), FEW)
        self._addresses.record(found)
        self._keeper.looked_up.update(host for host in unknown if host in found or self._has_group(host))

    async def _resolved(self, hosts: list[str]) -> list[tuple[str, str, str]]:
        """Those whose look-up has come to its end by now: host, registered domain, address."""
        for host in hosts:
            if host and host not in self._lookups:
                self._lookups[host] = asyncio.create_task(self._resolver.resolve(hostname_of(host)))
        lookups = {host: self._lookups[host] for host in hosts if host}
        if lookups:
            await asyncio.wait(lookups.values(), timeout=WAIT)
        found = [("", "", "")] if "" in hosts else []
        for host, lookup in lookups.items():
            if lookup.done():
                self._lookups.pop(host, None)
                found.append((host, registered_domain(host), _address(host, lookup)))
        return found

    def _has_group(self, host: str) -> bool:
        return self._keeper.applied(host).gate is not None


def _address(host: str, lookup: asyncio.Task[tuple[Address, ...] | Fault]) -> str:
    """The address of a host whose look-up has ended; empty where none was found. One name that a fault of ours stops
    must not keep the others of its call from their gates."""
    fault = lookup.exception()
    if fault is not None:
        logger.error("A fault of ours kept %s from being looked up", host, exc_info=fault)
        return ""
    answer = lookup.result()
    return "" if isinstance(answer, Fault) else server_address(map(str, answer))
