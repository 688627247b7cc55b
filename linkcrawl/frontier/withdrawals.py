"""Takes back what was judged at a host since it has turned us away, also where the crawl was killed before it could.

Which links a gate has refused lately stands in its pace, and so in the same row of the store as the ban. What the row
still names when a crawl begins, or when a worker leases the gate, was not taken back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.tasks import start_task
from linkcrawl.politeness.pacing.persistence import unsettled_ban
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost

logger = logging.getLogger(__name__)

#: Seconds after a ban was noticed until the records since its beginning are withdrawn: by then they are stored.
SETTLED = 1.0


class Withdrawals:
    """Withdraws the records of refusals. By gate: the task that will, the links, and since when (Unix seconds)."""

    def __init__(self, session: Session, keeper: Gatekeeper):
        self._session = session
        self._keeper = keeper
        self._pending: dict[str, tuple[asyncio.Task[None], tuple[int | str, ...], float]] = {}

    def begin(self, gate: str, since: float) -> None:
        """A gate has turned us away since then: withdraw soon what it has refused."""
        self._begin(gate, self._keeper.pace(gate).refused_links, since)

    def resume(self, names: Iterable[str]) -> None:
        """Withdraw soon what the crawl before could not, at those of the gates that the store has a ban of."""
        for name in names:
            ban = unsettled_ban(self._session.hosts.get(name).pace)
            if ban is not None:
                self._begin(name, *ban)

    def _begin(self, gate: str, links: tuple[int | str, ...], since: float) -> None:
        known = self._pending.pop(gate, None)
        if known is not None:
            known[0].cancel()
            links, since = tuple(dict.fromkeys((*known[1], *links))), min(known[2], since)
        task = start_task(f"taking back records of {gate}", self._withdraw_soon(gate))
        self._pending[gate] = (task, links, since)

    async def close(self) -> None:
        """Withdraw at once what was to be withdrawn soon: by now everything is stored. Raises StoreLost."""
        for gate in list(self._pending):
            self._pending[gate][0].cancel()
            await self._withdraw(gate)

    async def _withdraw_soon(self, gate: str) -> None:
        await asyncio.sleep(SETTLED)
        try:
            await self._withdraw(gate)
        except StoreLost as fault:  # the next crawl does it
            logger.debug("Records of %s can't be taken back: %s", gate, fault)

    async def _withdraw(self, gate: str) -> None:
        _, links, since = self._pending[gate]
        session = self._session
        error = f"{gate} has turned us away since; what it answered says nothing of its links"
        count = await retry_while_store_lost(
            session, session.store.withdraw, links, since - 1.0, "host_blocked", error, session.now()
        )
        del self._pending[gate]
        self._keeper.forget_refusals(gate, links)
        logger.warning("%d records of %s taken back", count, gate)
