"""What the parts of one crawl share: its settings, arguments, store and clock. The spider has it as `session`.

`Session.open` validates a crawl's whole configuration: whatever is unusable raises ConfigError or StoreError there,
before any request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from linkcrawl.audit.log import AuditLog
from linkcrawl.check.procedure import Rules
from linkcrawl.check.recheck import Intervals
from linkcrawl.clock import Clock
from linkcrawl.config import LOCAL, Config, read_config
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.harvest import RetireRules, Scope
from linkcrawl.ingest.ingest import check_sources
from linkcrawl.ingest.live import CrawlSeeds
from linkcrawl.network.descriptors import raise_limit
from linkcrawl.network.resolver import be_patient
from linkcrawl.network.tls import client_context
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import PolicyFile
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.politeness.user_agent import refuse_listed
from linkcrawl.sources import MONGODB, REDIS, STDIN
from linkcrawl.sources.redis_key import PushedKey
from linkcrawl.stores.contract import ClusterName, LinkFilter, Store
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.worker import StoreWorker
from linkcrawl.urls.userinfo import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


#: Seconds by which a moment may be ahead of our clock without being of the future: machines differ by so much.
FUTURE = 60.0

#: scrapy-redis' key for the spider's seeds.
PUSHED = "resourceproxies:start_urls"


@frozen(kw_only=True)
class Arguments:
    """The spider's arguments (`-a name=value`), typed. `seeds`: a source; `complete`: what it is the whole
    harvest of, None where it isn't one; `limit`: checks to begin at most."""

    seeds: str | None = None
    complete: Scope | None = None
    collection: str | None = None
    host: str | None = None
    recheck: bool = False
    limit: int | None = None
    continuous: bool = False

    @property
    def has_finite_seeds(self) -> bool:
        """Whether the seeds have an end. What is pushed to a continuous crawl, or written to its standard input, may go
        on for ever."""
        seeds = self.seeds
        return seeds is not None and not (self.continuous and (seeds == STDIN or seeds.startswith(REDIS)))

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Arguments:
        """Raises ConfigError for an argument that doesn't exist or a value that can't be used."""
        known = {
            "seeds": str,
            "collection": str,
            "host": str,
            "recheck": _flag,
            "limit": _count,
            "continuous": _flag,
            "complete": _scope,
        }
        given = {name: value for name, value in given.items() if name != "_job"}  # scrapyd's own
        for name in given:
            if name not in known:
                raise ConfigError(f"-a {name}: no such argument; there are {', '.join(known)}")
        return cls(
            **{
                name: known[name](value) if known[name] is str else known[name](name, value)  # type: ignore[operator]
                for name, value in given.items()
            }
        )


def _flag(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text in {"1", "true", "yes"}:
        return True
    if text in {"0", "false", "no"}:
        return False
    raise ConfigError(f"-a {name}: {value!r} is neither yes nor no; 1 or 0 would work")


def _scope(name: str, value: Any) -> Scope | None:
    if str(value) == Scope.CATALOGUE:
        return Scope.CATALOGUE
    return Scope.COLLECTIONS if _flag(name, value) else None


def _count(name: str, value: Any) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"-a {name}: {value!r} is not a whole number from 1")
    return int(text)


@define(kw_only=True)
class Session:
    """One crawl. `started_at`: Unix seconds. `clean`: True where the crawl before ended cleanly; else every gate waits
    one full delay first."""

    config: Config
    arguments: Arguments
    store: Store
    worker: StoreWorker
    clock: Clock
    started_at: float
    clean: bool
    policy_file: PolicyFile | None
    policies: Policies
    rules: Rules
    intervals: Intervals
    hosts: HostStateCache
    robots: RobotsCache
    audit: AuditLog
    #: While the store is lost nothing is sent, for records could not be stored (stores/retry.py).
    store_lost: bool = field(default=False, init=False)
    #: While the finite seeds of this crawl are being taken up, no check begins: a link is judged by its present
    #: collections, rules and expected media type.
    takes_up_seeds: bool = field(default=False, init=False)
    #: How often this worker of a cluster has lost all its leases; what began in an earlier epoch is void.
    lease_epoch: int = field(default=0, init=False)

    @classmethod
    def open(
        cls,
        settings: Mapping[str, Any],
        given: Mapping[str, Any],
        clock_of: Callable[[Config], Clock],
        cluster_of: Callable[[Config], ClusterName | None],
    ) -> Session:
        """Judge the configuration, open the store and take it. `clock_of`: the crawl's time, and `cluster_of`: its
        cluster, by its configuration; they are asked once all else of that has been judged. Raises ConfigError or
        StoreError, each one line."""
        config = read_config(settings)
        refuse_listed(config.product, config.contact)
        raise_limit()
        be_patient()
        client_context(config.ca_bundle)  # a bundle that can't be used must be told before anything is sent
        arguments = Arguments.parse(given)
        _check_complete(arguments)
        policy_file = PolicyFile(config.policies) if config.policies else None
        if arguments.seeds is not None:
            check_sources([arguments.seeds], config.rejects)
        _check_shared_store(config)
        cluster = cluster_of(config)
        clock = clock_of(config)
        store = open_store(config.store)
        alone = cluster is None
        store.claim(cluster)
        hosts = HostStateCache(
            store.hosts() if alone else (), now=clock.now
        )  # a worker learns of hosts with their gates
        session = cls(
            config=config,
            arguments=arguments,
            store=store,
            worker=StoreWorker(store),
            clock=clock,
            started_at=clock.now(),
            clean=store.was_clean() if alone else True,  # in a cluster each gate has its own
            policy_file=policy_file,
            policies=policy_file.policies if policy_file else Policies(),
            rules=Rules(max_redirects=config.max_redirects),
            intervals=Intervals(),
            hosts=hosts,
            robots=RobotsCache(token=config.product, ttl=config.robots_ttl),
            audit=_audit_log(config),
        )
        session.takes_up_seeds = arguments.has_finite_seeds
        return session

    @property
    def now(self) -> Callable[[], float]:
        """The time of this crawl, Unix seconds (clock.Clock.now)."""
        return self.clock.now

    @property
    def skew(self) -> float:
        """Seconds by which the machine's clock is ahead of `now`, where it was set a moment ago."""
        return self.clock.skew

    def narrow(self) -> LinkFilter:
        """The links that this crawl takes now."""
        return LinkFilter(
            collection=self.arguments.collection,
            host=self.arguments.host,
            recheck_before=self.started_at if self.arguments.recheck else None,
            recheck_after=self.now() + FUTURE,
        )

    @property
    def seeds(self) -> CrawlSeeds:
        """Where this crawl's seeds come from."""
        source, continuous = self.arguments.seeds, self.arguments.continuous
        pushed = None if self.config.frontier == LOCAL else PushedKey(server=self.config.frontier, key=PUSHED).source
        if source is not None and source.startswith(REDIS):
            pushed = source
        complete = self.arguments.complete
        return CrawlSeeds(
            source=source,
            rules=None if complete is None else RetireRules(scope=complete, limit=self.config.retire_limit),
            watched=source if continuous and source is not None and source.startswith(MONGODB) else None,
            pushed=pushed if continuous else None,
            rejects=self.config.rejects,
        )

    def due_before(self) -> float:
        """Links that are due before this moment (Unix seconds) are checked: now in a continuous crawl; else the crawl's
        start, so that it can end."""
        return self.now() if self.arguments.continuous else self.started_at


def _check_complete(arguments: Arguments) -> None:
    if arguments.complete is not None and (arguments.seeds is None or arguments.seeds.startswith(REDIS)):
        raise ConfigError(
            "-a complete: goes with -a seeds=SOURCE, where SOURCE is a whole harvest: a file, a folder, - or "
            "mongodb://HOST:PORT/DB/COLLECTION would work"
        )


def _check_shared_store(config: Config) -> None:
    if config.frontier != LOCAL and not config.store.startswith("mongodb"):
        raise ConfigError(
            f"LINKCRAWL_STORE: {without_userinfo(config.store)!r} serves one process, and LINKCRAWL_FRONTIER shares "
            "the work out to several; mongodb://HOST:PORT/DB would work"
        )


def _audit_log(config: Config) -> AuditLog:
    try:
        return AuditLog(config.audit)
    except OSError as fault:
        raise ConfigError(f"LINKCRAWL_AUDIT: {str(config.audit)!r} can't be written: {fault.strerror}") from None


def session_of(crawler: Crawler) -> Session:
    """The session of the crawl that this component belongs to."""
    session = getattr(crawler.spider, "session", None)
    if not isinstance(session, Session):
        raise TypeError("linkcrawl's scheduler and middlewares serve the spider resourceproxies only")
    return session
