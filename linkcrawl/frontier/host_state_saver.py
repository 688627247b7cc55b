"""Stores changed host memory every few seconds; at once, where a server has asked for silence or banned us."""

from __future__ import annotations

import asyncio
import logging

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.ports import Ownership
from linkcrawl.frontier.tasks import start_task
from linkcrawl.session import Session

logger = logging.getLogger(__name__)

#: Seconds until what a server has asked for by itself is stored: the requests of many servers are one write.
URGENT = 0.2


class HostStateSaver:
    """Stores the session's HostStateCache, as far as this crawl owns the hosts, and the robots.txt files it has
    fetched."""

    def __init__(self, session: Session, ownership: Ownership):
        self._session = session
        self._ownership = ownership
        self._urgent: asyncio.Task[None] | None = None

    async def save(self) -> None:
        """Store what has changed. Raises StoreLost; what could not be stored is stored next time."""
        session = self._session
        changed = [memory for memory in session.hosts.take_changed() if self._ownership.keeps_state_of(memory.host)]
        if changed:
            try:
                await session.worker.call(session.store.remember, changed)
            except BaseException:  # cancelled before its turn, too
                session.hosts.still_changed(changed)
                raise
        await self._save_robots()

    async def _save_robots(self) -> None:
        """Store the robots.txt files that were fetched. They come after host memory, and apart: whatever is wrong with
        one of them must not keep a delay or a ban from being remembered."""
        session = self._session
        files = session.robots.take_changed()
        if not files:
            return
        try:
            await session.worker.call(session.store.remember_robots, files)
        except (StoreLost, asyncio.CancelledError):
            session.robots.still_changed(files)
            raise
        except Exception:
            logger.exception("%d robots.txt files can't be stored: the next crawl fetches them again", len(files))

    def save_soon(self) -> None:
        """Store soon: a server has asked for silence, or turned us away, and that must outlive a crash."""
        if self._urgent is None or self._urgent.done():
            self._urgent = start_task("saving host state", self._save_soon())

    def close(self) -> None:
        """Save nothing more by itself."""
        if self._urgent is not None:
            self._urgent.cancel()

    async def _save_soon(self) -> None:
        await asyncio.sleep(URGENT)
        try:
            await self.save()
        except StoreLost as fault:  # the next look stores it
            logger.debug("What is known of hosts can't be stored: %s", fault)
