"""What a Gatekeeper needs of the crawl or command that it works for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from linkcrawl.config import Config
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.rules import Policies


class CrawlContext(Protocol):
    """A crawl's Session, or a command's StoreSnapshot.

    `clean`: the crawl before ended in good order; `started_at`, `now`: Unix seconds; `skew`: seconds by which the
    machine's clock differs from `now` while it isn't known which of them is right.
    """

    @property
    def config(self) -> Config: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def hosts(self) -> HostStateCache: ...
    @property
    def clean(self) -> bool: ...
    @property
    def started_at(self) -> float: ...
    @property
    def now(self) -> Callable[[], float]: ...
    @property
    def skew(self) -> float: ...
