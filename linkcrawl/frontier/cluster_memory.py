"""What the store remembers of hosts, brought to the worker that leases their gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from linkcrawl.frontier.cluster_parts import Parts
from linkcrawl.items import HostMemory
from linkcrawl.politeness.pace_memory import GATE
from linkcrawl.stores import StoreLost

#: Seconds between two tries to reach a lost store.
RETRY = 0.25


async def bring(parts: Parts, names: set[str], known: Callable[[str], bool] = lambda name: False) -> bool:
    """Load what is remembered under these names, and under the gates that these hosts were in before; what is `known`
    here is newer. False where everything was lost meanwhile."""
    session, epoch = parts.session, parts.session.epoch
    found = await _remembered(parts, names)
    before = {str(memory.pace[GATE]) for memory in found if GATE in memory.pace} - names
    if before:
        found += await _remembered(parts, before)
    if epoch != session.epoch:
        return False
    new = [memory for memory in found if not known(memory.host)]
    session.hosts.load(new)
    for memory in new:
        for authority, row in memory.robots.items():
            session.robots.restore(authority, row)
    return True


async def _remembered(parts: Parts, names: set[str]) -> list[HostMemory]:
    """Patiently: a gate that has been leased must be opened."""
    session, epoch = parts.session, parts.session.epoch
    while epoch == session.epoch:
        try:
            return await session.worker.call(lambda: list(session.store.hosts(sorted(names))))
        except StoreLost:
            await asyncio.sleep(RETRY)
    return []
