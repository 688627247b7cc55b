"""Which gate a host belongs to, the same for all workers: recorded in Redis, where hosts may move.

A worker goes by what it has heard of Redis once. Only the session that leases a host's gate may move the host, and
whoever leases a gate hears with it what has moved since it asked last: so nobody sends to a host through a gate that
the host has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from linkcrawl.cluster.coordinator import Coordinator, HostAddress
from linkcrawl.cluster.lease_table import LeaseTable
from linkcrawl.cluster.policy_version import fingerprint
from linkcrawl.frontier.gates.addresses import FEW, Addresses, server_address
from linkcrawl.frontier.parts import Frontier
from linkcrawl.network.fault import Fault
from linkcrawl.network.guard import Address
from linkcrawl.politeness.keys import group_gate
from linkcrawl.urls.domains import hostname_of, registered_domain

logger = logging.getLogger(__name__)

#: Names looked up at a time, and seconds that a call waits for them: one that takes longer is for a later call.
LOOKUPS, WAIT = 64, 0.25


class SharedAddresses(Addresses):
    """Gates and addresses of hosts as Redis has them."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, tuple[str, str]] = {}

    def record(self, found: Mapping[str, tuple[str, str]]) -> None:
        """Take in what Redis has recorded: gate and address by host."""
        self._found.update(found)

    def representative(self, host: str) -> str:
        return self._found.get(host, (host, ""))[0]

    def address(self, host: str) -> str | None:
        found = self._found.get(host)
        return None if found is None else found[1]

    def hosts_of(self, gate: str) -> list[str]:
        """The hosts that Redis has in this gate, as far as was heard."""
        return [host for host, (representative, _) in self._found.items() if representative == gate]

    def forget(self, host: str) -> None:
        """What was heard of a host doesn't hold any more."""
        self._found.pop(host, None)

    def clear(self) -> None:
        """Forget all: a new generation, or other policies, may say otherwise."""
        self._found.clear()


class GatePlacement:
    """Finds the gates of hosts for a gatekeeper, and moves hosts. `close`: begin no more checks at a gate, where it is
    ours: its hosts are to leave it."""

    def __init__(
        self, frontier: Frontier, coordinator: Coordinator, table: LeaseTable, *, close: Callable[[str], None]
    ):
        self._session, self._keeper, self._resolver = frontier.session, frontier.keeper, frontier.resolver
        self._host_states = frontier.host_states
        self._coordinator, self._table, self._close = coordinator, table, close
        self._addresses = SharedAddresses()
        frontier.keeper.use_addresses(self._addresses)
        self._lookups: dict[str, asyncio.Task[tuple[Address, ...] | Fault]] = {}
        self._moving: dict[str, str] = {}

    def clear(self) -> None:
        """Forget all."""
        self._addresses.clear()
        self._moving.clear()
        self._keeper.looked_up.clear()

    def move(self, host: str, addresses: tuple[str, ...]) -> bool:
        """A host's name leads to these addresses now, or this one has answered. True where it has to leave its gate: it
        has none until `locate` has found the new one."""
        at = self._addresses.address(host)
        if at is None or at in addresses or not addresses:
            return False
        self._moving[host] = server_address(addresses)
        self._forget(host)
        return True

    def follow_moves(self) -> set[str]:
        """Forget what was heard of the hosts that have moved since. Returns them. A host that is fed here stays: nobody
        else can have moved it."""
        hosts: list[str] = []
        for moved in self._coordinator.take_moved():
            kind, _, name = moved.partition(" ")
            hosts += self._addresses.hosts_of(name) if kind == "gate" else [name]
        forgotten = {host for host in hosts if host not in self._table.gate_of}
        for host in forgotten:
            self._forget(host)
        return forgotten

    async def locate(self, hosts: list[str]) -> None:
        """Find the gates of hosts: what Redis has recorded, else by the address that their name has. Hosts whose names
        take long to look up, and those that have to wait for a gate, stay unknown to the gatekeeper: ask again. Raises
        SessionLost, StoreLost, redis.RedisError."""
        unknown = [host for host in hosts if host not in self._keeper.looked_up]
        moving = [host for host in unknown if host in self._moving]
        if moving:  # what was learned at their gates goes before them
            await self._host_states.save()
        new = await self._place([self._entry(host, self._moving.get(host)) for host in unknown])
        self._table.released_hosts.difference_update(moving)
        for start in range(0, len(new), LOOKUPS):
            await self._place(await self._resolved(new[start : start + LOOKUPS]))

    async def _place(self, entries: list[HostAddress]) -> list[str]:
        """Returns the hosts that nothing is recorded of."""
        placed = await self._coordinator.place(entries, few=FEW, policies=fingerprint(self._session.policies))
        self._addresses.record(placed.found)
        self._keeper.looked_up.update(placed.found)
        for host in placed.found:
            self._moving.pop(host, None)
        for gate in placed.closing:
            self._close(gate)
        return [each.host for each in entries if each.host in placed.new]

    def _entry(self, host: str, address: str | None) -> HostAddress:
        group = self._keeper.applied(host).gate
        return HostAddress(
            host=host,
            domain=registered_domain(host),
            address=address,
            group="" if group is None else group_gate(group),
        )

    def _forget(self, host: str) -> None:
        self._addresses.forget(host)
        self._keeper.looked_up.discard(host)

    async def _resolved(self, hosts: list[str]) -> list[HostAddress]:
        """Those whose look-up has come to its end by now."""
        for host in hosts:
            if host and host not in self._lookups:
                self._lookups[host] = asyncio.create_task(self._resolver.resolve(hostname_of(host)))
        lookups = {host: self._lookups[host] for host in hosts if host}
        if lookups:
            await asyncio.wait(lookups.values(), timeout=WAIT)
        found = [self._entry("", "")] if "" in hosts else []
        for host, lookup in lookups.items():
            if lookup.done():
                self._lookups.pop(host, None)
                found.append(self._entry(host, _address(host, lookup)))
        return found


def _address(host: str, lookup: asyncio.Task[tuple[Address, ...] | Fault]) -> str:
    """The address of a host whose look-up has ended; empty where none was found. One name that a fault of ours stops
    must not keep the others of its call from their gates."""
    fault = lookup.exception()
    if fault is not None:
        logger.error("A fault of ours kept %s from being looked up", host, exc_info=fault)
        return ""
    answer = lookup.result()
    return "" if isinstance(answer, Fault) else server_address(map(str, answer))
