"""How many host names redirects may add to a crawl. PURE.

A site that answers under every name (wildcard DNS) may redirect each request to a name of its own. Each is a host: with
a gate, a robots.txt that is fetched and kept, and memory that outlives the crawl. Names that cost their owner nothing
are those of one registered domain, so these are counted.
"""

from __future__ import annotations

from collections.abc import Callable

from linkcrawl.units import DAY
from linkcrawl.urls.domains import registered_domain

#: Names of one registered domain that redirects may add in a day. The largest universities and museums have some
#: hundred servers; ports of one name count, too.
MOST = 1000


class RedirectNames:
    """The names that redirects have added since the day began."""

    def __init__(self, is_known: Callable[[str], bool], now: Callable[[], float], most: int = MOST):
        """`is_known`: True for a host key that the crawl, or one before it, has met. `now`: Unix seconds."""
        self._is_known = is_known
        self._now = now
        self._most = most
        self._day = 0
        self._names: dict[str, set[str]] = {}

    def admit(self, host: str) -> bool:
        """True where a redirect to this host (key) may be followed; it counts from then on."""
        day = int(self._now() // DAY)
        if day != self._day:
            self._day, self._names = day, {}
        names = self._names.setdefault(registered_domain(host), set())
        if host in names or self._is_known(host):
            return True
        if len(names) >= self._most:
            return False
        names.add(host)
        return True
