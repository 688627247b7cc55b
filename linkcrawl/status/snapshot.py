"""What a command knows of a crawl without being one: the store, the policy file and the settings of a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from linkcrawl.config import Config, read_config
from linkcrawl.items import HostMemory, Order
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import load
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache, restored
from linkcrawl.stores.contract import Store


@frozen(kw_only=True)
class StoreSnapshot:
    """Has what a Gatekeeper asks of a crawl's Session. Host memory is as the crawl has stored it last, a few seconds
    ago where one runs; `due`: links by host that are due now."""

    config: Config
    policies: Policies
    hosts: HostStateCache
    robots: RobotsCache
    orders: Mapping[str, Order]
    due: Mapping[str, int]
    started_at: float
    now: Callable[[], float]
    skew: float = field(default=0.0, init=False)
    clean: bool = field(default=True, init=False)  # what a crash means for pace is the next crawl's to say

    @classmethod
    def of(cls, store: Store, config: Config, policies: Policies, moment: float) -> StoreSnapshot:
        """How things stand at a moment. Raises StoreLost."""
        hosts = HostStateCache(store.hosts(), now=lambda: moment)
        return cls(
            config=config,
            policies=policies,
            hosts=hosts,
            robots=restored(hosts, token=config.product, ttl=config.robots_ttl),
            orders=store.orders(),
            due={line.host: line.due for line in store.backlog(moment) if line.host},
            started_at=moment,
            now=lambda: moment,
        )

    def knows(self, host: str) -> bool:
        """Whether anything is due at the host or known of it."""
        return host in self.due or self.hosts.get(host) != HostMemory(host=host)


def config_of(settings: Mapping[str, Any] | None) -> Config:
    """The settings of a command that sends nothing. Raises ConfigError."""
    return read_config(settings or {}, need_contact=False)


def policies_of(config: Config) -> Policies:
    """The rules of the policy file. Raises PolicyError."""
    return load(config.policies) if config.policies else Policies()
