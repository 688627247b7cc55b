"""The spider: starts checks, gives every outcome to the check procedure, and sends what that asks for next."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import scrapy
from attrs import evolve
from scrapy.exceptions import CloseSpider
from scrapy.http import Request, Response
from twisted.python.failure import Failure as TwistedFailure

from linkcrawl import urls
from linkcrawl.assembly import open_session, ownership_of
from linkcrawl.check.conclude import conclude
from linkcrawl.check.cookies import octets
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Check, Denial, Done, Next, aborted, answered, begin, denied
from linkcrawl.errors import ConfigError, SourceLost, StoreLost
from linkcrawl.frontier.ports import RequestContext, context_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.ingest.harvest import HarvestNotes, Reconciliation, RetireRules, reconcile
from linkcrawl.ingest.ingest import add_entries
from linkcrawl.ingest.live import LiveIngest
from linkcrawl.items import DueLink, Finished
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.pacing.delay import MAX_SILENCE
from linkcrawl.politeness.pacing.hints import retry_at
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.politeness.redirect_names import MOST, RedirectNames
from linkcrawl.session import Session
from linkcrawl.stores.contract import AddCounts, LinkEntry
from linkcrawl.stores.retry import retry_while_store_lost
from linkcrawl.text import one_line

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

#: Statistic: reasons for which a complete harvest, or a collection of it, retired nothing.
HARVEST_REFUSED = "linkcrawl/harvest/refused"

#: Characters of a URL that are shown in the log.
SHOWN = 200


class _Harvests:
    """The harvests of a crawl (ingest.live.Harvests). What they refuse is counted: the crawl ends with status 2."""

    def __init__(self, spider: ResourceProxies):
        self._session, self._spider = spider.session, spider

    async def begin(self) -> int:
        session = self._session
        return await retry_while_store_lost(session, session.store.begin_harvest, session.now())

    async def retire(self, entries: Sequence[LinkEntry]) -> None:
        session = self._session
        await retry_while_store_lost(session, session.store.retire_mentions, entries, session.now())

    async def end(self, harvest: int, notes: HarvestNotes, rules: RetireRules) -> Reconciliation:
        session, now = self._session, self._session.now()
        done = await retry_while_store_lost(session, reconcile, session.store, harvest, notes, rules, now)
        await retry_while_store_lost(session, session.store.end_harvest, harvest, now)
        stats = self._spider.crawler.stats
        assert stats is not None
        stats.inc_value(HARVEST_REFUSED, len(done.refused))
        return done


class ResourceProxies(scrapy.Spider):
    """`scrapy crawl resourceproxies`: every due link of the store is checked once, each with one record."""

    name = "resourceproxies"

    def __init__(self, session: Session, **given: Any):
        super().__init__(self.name)
        self.session = session
        self._names = RedirectNames(session.hosts.is_known, session.now)
        #: Which gates the crawl may use: the frontier asks.
        self.ownership = ownership_of(session)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, session: Session | None = None, **given: Any) -> Self:
        """`session` comes from the crawl command, which judged it before anything was started."""
        spider = cls(session or open_session(crawler.settings, given))
        spider._set_crawler(crawler)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Ingest the seeds into the store. Yields nothing: the frontier hands out due links."""
        try:
            await self._live_ingest().run()
        except (ConfigError, SourceLost) as fault:
            self.logger.error("%s", fault)
            raise CloseSpider("unusable_input") from fault
        except StoreLost as fault:
            raise CloseSpider("store_lost") from fault
        except Exception as fault:  # Scrapy would go on as if all seeds had been taken up
            self.logger.exception("Seeds can't be ingested, the crawl ends")
            raise CloseSpider("ingest_failed") from fault
        return
        yield  # Scrapy wants an asynchronous generator

    def _live_ingest(self) -> LiveIngest:
        session, scheduler = self.session, self._scheduler

        async def add(entries: Sequence[LinkEntry], harvest: int) -> AddCounts:
            return await retry_while_store_lost(session, add_entries, session.store, entries, harvest)

        def taken_up() -> None:
            session.takes_up_seeds = False
            scheduler.refresh_backlog()

        return LiveIngest(
            session.seeds,
            steady=session.clock.steady,
            add=add,
            refresh_backlog=scheduler.refresh_backlog,
            on_new_links=scheduler.warn_unmeetable_rechecks,
            on_taken_up=taken_up,
            harvests=_Harvests(self),
        )

    @property
    def _scheduler(self) -> Scheduler:
        scheduler = self.crawler.engine.scheduler
        assert isinstance(scheduler, Scheduler)
        return scheduler

    def begin(self, link: DueLink, applied: Applied) -> Request | Finished:
        """The first request of a link's check, or its end where nothing can be requested. The method is the policy's
        (`applied`), else what is known of the host's HEAD."""
        head_useless = self.session.hosts.head_useless(link.host, self.session.now())
        method = applied.method or ("GET" if head_useless else "HEAD")
        try:
            step = begin(link.url, self.session.rules, method=method, expected_mime=link.expected_mime)
            return self._act(link, step)
        except Exception as fault:
            return self._aborted(link, Check(url=link.url, rules=self.session.rules), fault)

    def answered(self, response: Response) -> Iterator[Request | Finished]:
        """Callback of every request of a check that got an answer."""
        assert response.request is not None
        yield from self._go_on(response.request, None)

    def failed(self, failure: TwistedFailure) -> Iterator[Request | Finished]:
        """Errback of every request of a check that got none."""
        request: Request = failure.request  # type: ignore[attr-defined]
        yield from self._go_on(request, failure)

    def deny(self, request: Request, denial: Denial) -> Request | Finished:
        """What follows where the next request of a check may not be sent."""
        link, check = _check_of(request)
        try:
            return self._act(link, denied(check, denial, self.session.now()))
        except Exception as fault:
            return self._aborted(link, check, fault)

    def resume(self, link: DueLink, check: Check) -> Request:
        """The next request of a check that was begun by another worker."""
        assert check.request is not None
        return self._request(link, Next(check=check, request=check.request))

    def _go_on(self, request: Request, failure: TwistedFailure | None) -> Iterator[Request | Finished]:
        context = context_of(request)
        if context.lease_epoch != self.session.lease_epoch:
            return  # the link is another worker's by now
        if context.denial is not None:
            yield self.deny(request, context.denial)
            return
        outcome = context.outcome
        if outcome is None:  # a fault of ours: logged, and still a record
            self.logger.error("No outcome of %s", request, exc_info=failure.value if failure else None)
            now = self.session.now()
            error = f"internal error: {failure.type.__name__ if failure and failure.type else 'no outcome'}"
            outcome = Outcome(sent_at=now, ended_at=now, duration_ms=None, failure=Failure.PROTOCOL, error=error)
        link, check = _check_of(request)
        try:
            step = self._act(link, self._within_names(link, answered(check, outcome)), outcome)
        except Exception as fault:
            step = self._aborted(link, check, fault)
        yield step

    def _within_names(self, link: DueLink, step: Next | Done) -> Next | Done:
        """The step, unless it goes to one new name too many."""
        if not isinstance(step, Next) or step.request.target.host == link.host:
            return step
        host = step.request.target.host
        if self._names.admit(host):
            return step
        error = f"redirected to {host}, after {MOST} other new names of its registered domain today"
        return denied(step.check, Denial(reason="too_many_names", error=error), self.session.now())

    def _aborted(self, link: DueLink, check: Check, fault: Exception) -> Finished:
        """The record of a check that a fault of ours stopped, for nothing that a server or a seed says makes a check
        vanish. It asks nothing that may have been at fault."""
        session, now = self.session, self.session.now()
        self.logger.error("A step of the check of %s failed", one_line(link.url[:SHOWN]), exc_info=fault)
        done = aborted(check, f"internal error: {type(fault).__name__}", now)
        return conclude(link, done, now, session.config.crawler, session.intervals, None)

    def _act(self, link: DueLink, step: Next | Done, outcome: Outcome | None = None) -> Request | Finished:
        if isinstance(step, Next):
            return self._request(link, step)
        session, now = self.session, self.session.now()
        if step.head_useless is not None:
            session.hosts.learn_head(link.host, step.head_useless, now)
        start, final_url = step.check.start, step.finding.final_url
        redirected = start is None or start.url != final_url  # else it has been read already
        end = urls.read(final_url) if redirected and final_url else start
        host = end.host if isinstance(end, urls.Target) else link.host
        silence = session.hosts.silence(host)
        # every server that was asked for a page has first answered for its robots.txt
        robots = session.robots.get(end.authority) if isinstance(end, urls.Target) else None
        worked = robots is not None and robots.robots is not None
        again = None if outcome is None else retry_at(outcome.status, outcome.headers, outcome.ended_at)
        retry = None if again is None else min(again, now + MAX_SILENCE)
        applied = session.policies.of_link(link.host, link.collections, link.providers)
        changes: dict[str, Any] = dict(applied.recheck)
        intervals = evolve(session.intervals, **changes) if changes else session.intervals
        return conclude(link, step, now, session.config.crawler, intervals, silence, retry_at=retry, host_worked=worked)

    def _request(self, link: DueLink, step: Next) -> Request:
        """A fresh request for every hop: it goes back through the scheduler to the gate of its own host."""
        following = step.request
        headers = {"Cookie": octets(following.cookie)} if following.cookie else None
        return Request(
            following.target.url,
            method=following.method,
            headers=headers,
            callback=self.answered,
            errback=self.failed,
            dont_filter=True,
            meta={
                CONTEXT: RequestContext(
                    target=following.target,
                    link=link,
                    check=step.check,
                    lease_epoch=self.session.lease_epoch,
                    page_limit=following.page_limit,
                ),
                "dont_redirect": True,
                "handle_httpstatus_all": True,
                "verbatim_url": True,
            },
        )


def _check_of(request: Request) -> tuple[DueLink, Check]:
    """The check that a request of this spider is a step of."""
    context = context_of(request)
    assert context.link is not None
    assert context.check is not None
    return context.link, context.check
