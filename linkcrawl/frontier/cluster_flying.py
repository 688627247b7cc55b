"""What is in flight, told to Redis: should it be a worker's last, the next holder of the gate knows over what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from linkcrawl.frontier.cluster_ledger import Ledger

#: Seconds that what is in flight waits to be told together with others.
GATHER = 0.02


class Flying:
    """`spawn` runs something beside, and deals with what it raises."""

    def __init__(self, ledger: Ledger, spawn: Callable[[Callable[[], Awaitable[None]]], None]):
        self._ledger = ledger
        self._spawn = spawn
        self._links: dict[str, str] = {}  # by gate

    def note(self, gate: str, link_id: int | str) -> None:
        """A request of a link's check goes out."""
        if not self._links:
            asyncio.get_running_loop().call_later(GATHER, self._spawn, self._tell)
        self._links[gate] = str(link_id)

    def clear(self) -> None:
        """The gates are not ours any more."""
        self._links.clear()

    async def _tell(self) -> None:
        links, self._links = self._links, {}
        if links:
            await self._ledger.flying(links)
