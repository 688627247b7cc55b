"""What the keeper of gates has to know of the crawl or command that it works for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from linkcrawl.config import Config
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache


class CrawlContext(Protocol):
    """What a gatekeeper has to know: the Session of a crawl does, and so does the Outlook of a command."""

    @property
    def config(self) -> Config: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def hosts(self) -> HostStateCache: ...
    @property
    def robots(self) -> RobotsCache: ...
    @property
    def clean(self) -> bool: ...
    @property
    def started_at(self) -> float: ...
    @property
    def now(self) -> Callable[[], float]: ...
    @property
    def skew(self) -> float: ...
