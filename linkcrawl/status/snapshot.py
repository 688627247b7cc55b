"""The state that a command reads without running a crawl: store, policy file and settings at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from linkcrawl.config import Config
from linkcrawl.items import HostMemory, Order
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import load
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.stores.contract import Store


@frozen(kw_only=True)
class StoreSnapshot:
    """What a Gatekeeper needs to know (`frontier.gates.context.CrawlContext`), with links and orders by host. While a
    crawl runs, host memory is some seconds old: as the crawl last stored it. `robots`: the files of one host at most.
    `due`: links due now, by host."""

    config: Config
    policies: Policies
    hosts: HostStateCache
    robots: RobotsCache
    orders: Mapping[str, Order]
    due: Mapping[str, int]
    started_at: float
    now: Callable[[], float]
    skew: float = field(default=0.0, init=False)
    clean: bool = field(default=True, init=False)  # a crash slows down the next crawl, which finds out by itself

    @classmethod
    def of(
        cls, store: Store, config: Config, policies: Policies, moment: float, *, robots_of: str | None = None
    ) -> StoreSnapshot:
        """The state at a moment (Unix seconds), with the robots.txt files of a host. Raises StoreLost."""
        snapshot = cls.remembered(
            config,
            policies,
            HostStateCache(store.hosts(), now=lambda: moment),
            moment,
            orders=store.orders(),
            due={line.host: line.due for line in store.backlog(moment) if line.host},
        )
        if robots_of:
            snapshot.robots.restore(store.robots([f"http://{robots_of}", f"https://{robots_of}"]), moment)
        return snapshot

    @classmethod
    def remembered(
        cls,
        config: Config,
        policies: Policies,
        hosts: HostStateCache,
        moment: float,
        *,
        orders: Mapping[str, Order],
        due: Mapping[str, int],
    ) -> StoreSnapshot:
        """The state with this memory of hosts."""
        return cls(
            config=config,
            policies=policies,
            hosts=hosts,
            robots=RobotsCache(token=config.product, ttl=config.robots_ttl),
            orders=orders,
            due=due,
            started_at=moment,
            now=lambda: moment,
        )

    def knows(self, host: str) -> bool:
        """True where the host has due links, or host memory has anything of it."""
        return host in self.due or self.hosts.get(host) != HostMemory(host=host)


def policies_of(config: Config) -> Policies:
    """The rules of the policy file, none where LINKCRAWL_POLICIES is not set. Raises PolicyError."""
    return load(config.policies) if config.policies else Policies()
