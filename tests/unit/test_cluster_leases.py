"""What a worker says of a gate that it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from linkcrawl.cluster.coordinator import HeartbeatReply, HostAddress, LeaseRelease, LeaseResult, Placements
from linkcrawl.cluster.lease_table import LeaseTable
from linkcrawl.cluster.leases import Leases
from linkcrawl.cluster.rate_permits import RatePermits
from linkcrawl.cluster.transfers import CheckTransfers
from linkcrawl.frontier.ports import LocalOwnership
from linkcrawl.stores.contract import HostBacklog
from tests.unit.cluster_kit import TIME
from tests.unit.frontier_kit import Clock, frontier_of, session

BEAT = HeartbeatReply(others=1, busy=1, load=0, agreed=True, paces=(), notifications=(), missing=(), time=TIME)


@define
class Ledger:
    """A coordinator that leases whatever is asked for. `hop_gates`: those that transferred checks wait for."""

    hop_gates: list[str] = field(factory=list)
    given: list[LeaseRelease] = field(factory=list)

    async def transfer_gates(self, most: int) -> list[str]:
        return self.hop_gates

    async def place(self, hosts: Sequence[HostAddress], *, few: int, policies: str) -> Placements:
        found = {each.host: (each.host, "192.0.2.1") for each in hosts}
        return Placements(found=found, new=frozenset(), closing=())

    def take_moved(self) -> list[str]:
        return []

    async def take(
        self, gates: Sequence[tuple[str, float, int]], now: float, *, wanted: bool = False
    ) -> list[LeaseResult]:
        return [LeaseResult(standing="taken", wait=0.0, deaths={}) for _ in gates]

    async def give(self, gates: Iterable[LeaseRelease]) -> None:
        self.given += gates


@define
class Leased(LocalOwnership):
    """Owns what the table says."""

    table: LeaseTable

    def feeds_host(self, host: str) -> bool:
        return self.table.feeds_host(host)

    def keeps_state_of(self, name: str) -> bool:
        return self.table.knows(name)


def leases(folder: Path, ledger: Any, due: dict[str, int]) -> Leases:
    """Those of a worker whose look has found so many links due at these hosts. Fetching them finds none, as if others
    had checked them by then."""
    at = session(folder, Clock())
    table = LeaseTable(at)
    frontier = frontier_of(at, ownership=Leased(table))
    frontier.queue.refresh([HostBacklog(host=host, due=count) for host, count in due.items()], at.now())
    frontier.feeder.refreshed_at = at.now()
    permits = RatePermits(frontier, ledger, table, lambda act: None)
    return Leases(frontier, ledger, table=table, transfers=CheckTransfers(frontier, ledger), permits=permits)


@pytest.mark.parametrize(
    ("due", "hop_gates", "done"),
    [
        ({"a.example": 3}, [], {"a.example": True}),  # they have been fetched, and are no more
        ({}, ["a.example"], {"a.example": False}),  # taken for a hop: its own links were never looked at
        ({"b.example": 1}, ["a.example"], {"a.example": False, "b.example": True}),
    ],
)
def test_a_gate_is_done_only_where_its_links_are_known(
    tmp_path: Path, due: dict[str, int], hop_gates: list[str], done: dict[str, bool]
) -> None:
    ledger = Ledger(hop_gates=hop_gates)

    async def main() -> None:
        held = leases(tmp_path, ledger, due)
        await held.take(BEAT)
        ledger.hop_gates = []
        while len(ledger.given) < len(done):
            await asyncio.sleep(0.01)
            await held.give(BEAT)

    asyncio.run(asyncio.wait_for(main(), 120))
    assert {each.gate: each.done for each in ledger.given} == done
