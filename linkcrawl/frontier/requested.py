"""Takes up the links that somebody has asked for (`scrapy recheck`): they go first at their gates.

They are due in the store as well, so that no link is lost where this crawl takes up none, ends, or gives its gate
away. A link is taken up here once; where it is handed back because it isn't its time, it is met again with the other
due links of its host. Links outside the crawl's narrowing are taken up too."""

from __future__ import annotations

from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.ports import Engine, Ownership
from linkcrawl.frontier.router import HostRouter
from linkcrawl.items import DueLink
from linkcrawl.session import Session

#: Links that are read from the store in one look, so that no look takes long and memory stays small.
LINKS_A_LOOK = 2000


class RequestedLinks:
    """Looks for them whenever `take_up` is called: every few seconds."""

    def __init__(
        self,
        session: Session,
        *,
        queue: DueQueue,
        feeder: Feeder,
        router: HostRouter,
        ownership: Ownership,
        engine: Engine,
    ):
        self._session = session
        self._queue = queue
        self._feeder = feeder
        self._router = router
        self._ownership = ownership
        self._engine = engine
        #: When each was last checked (Unix seconds) as it was taken up: one with a later check was asked for again.
        self._taken: dict[int | str, float | None] = {}
        self._met: set[int | str] = set()
        self._elsewhere: set[str] = set()
        self._after: int | str | None = None

    async def take_up(self) -> None:
        """Take up the next links that were asked for. Raises StoreLost."""
        epoch = self._session.lease_epoch
        self.take(await self._session.worker.call(self.read), epoch)

    def read(self) -> list[DueLink]:
        """The next links that were asked for. While the seeds of this crawl are being taken up, its links are left
        alone. Runs in the store's thread. Raises StoreLost."""
        session = self._session
        return [] if session.takes_up_seeds else session.store.asked(LINKS_A_LOOK, self._after)

    def take(self, links: list[DueLink], epoch: int) -> None:
        """Take up links that were read in this lease epoch, unless the leases have been lost since."""
        if epoch != self._session.lease_epoch or self._session.takes_up_seeds:
            return
        self._met.update(link.id for link in links)
        if len(links) < LINKS_A_LOOK:  # the last of them: what was not met any more has its record
            self._taken = {link_id: checked for link_id, checked in self._taken.items() if link_id in self._met}
            self._met, self._after = set(), None
        else:
            self._after = links[-1].id
        elsewhere = set()
        for link in links:
            if not self._ownership.feeds_host(link.host):
                elsewhere.add(link.host)
            elif link.id not in self._taken or self._taken[link.id] != link.last_checked_at:
                self._take(link)
        if elsewhere - self._elsewhere:  # their gates may be nobody's yet
            self._feeder.refresh_backlog()
        self._elsewhere = elsewhere
        if links:
            self._engine.wake()

    def _take(self, link: DueLink) -> None:
        if self._queue.take_alone(link):
            self._taken[link.id] = link.last_checked_at
            self._router.place(link)
        else:
            self._router.promote(link)
