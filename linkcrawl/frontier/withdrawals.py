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
from linkcrawl.politeness.pacing.persistence import unsettled_bans
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost

logger = logging.getLogger(__name__)

#: Seconds after a ban was noticed until the records since its beginning are withdrawn: by then they are stored.
SETTLED = 1.0


class Withdrawals:
    """Withdraws the records of refusals. By gate and tenant of it (politeness.pacing.tenants): the task that will, the
    links, and since when (Unix seconds)."""

    def __init__(self, session: Session, keeper: Gatekeeper):
        self._session = session
        self._keeper = keeper
        self._pending: dict[tuple[str, str], tuple[asyncio.Task[None], tuple[int | str, ...], float]] = {}

    def begin(self, gate: str, tenant: str, since: float) -> None:
        """A tenant of a gate has turned us away since then: withdraw soon what it has refused."""
        self._begin((gate, tenant), self._keeper.pace_of(gate, tenant).refused_links, since)

    def resume(self, names: Iterable[str]) -> None:
        """Withdraw soon what the crawl before could not, at those of the gates that the store has a ban of."""
        for name in names:
            for tenant, links, since in unsettled_bans(self._session.hosts.get(name).pace):
                self._begin((name, tenant), links, since)

    def _begin(self, key: tuple[str, str], links: tuple[int | str, ...], since: float) -> None:
        known = self._pending.pop(key, None)
        if known is not None:
            known[0].cancel()
            links, since = tuple(dict.fromkeys((*known[1], *links))), min(known[2], since)
        task = start_task(f"taking back records of {_name(key)}", self._withdraw_soon(key))
        self._pending[key] = (task, links, since)

    async def close(self) -> None:
        """Withdraw at once what was to be withdrawn soon: by now everything is stored. Raises StoreLost."""
        for key in list(self._pending):
            self._pending[key][0].cancel()
            await self._withdraw(key)

    async def _withdraw_soon(self, key: tuple[str, str]) -> None:
        await asyncio.sleep(SETTLED)
        try:
            await self._withdraw(key)
        except StoreLost as fault:  # the next crawl does it
            logger.debug("Records of %s can't be taken back: %s", _name(key), fault)

    async def _withdraw(self, key: tuple[str, str]) -> None:
        _, links, since = self._pending[key]
        session, name = self._session, _name(key)
        error = f"{name} has turned us away since; what it answered says nothing of its links"
        count = await retry_while_store_lost(
            session, session.store.withdraw, links, since - 1.0, "host_blocked", error, session.now()
        )
        del self._pending[key]
        self._keeper.forget_refusals(*key, links)
        logger.warning("%d records of %s are withdrawn", count, name)


def _name(key: tuple[str, str]) -> str:
    gate, tenant = key
    return tenant or gate
