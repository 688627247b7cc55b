"""What happens when the store does not come back in LINKCRAWL_PATIENCE, or is another crawl's: the crawl ends."""

from __future__ import annotations

import logging

from linkcrawl.errors import ClaimLost, StoreLost
from linkcrawl.frontier.ports import Engine

logger = logging.getLogger(__name__)


class StoreLoss:
    """`is_final`: the crawl ends because its store is lost."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self.is_final = False

    def give_up(self, fault: StoreLost) -> None:
        """End the crawl with `store_lost`. Called again, it does nothing."""
        if not self.is_final:
            self.is_final = True
            why = "another crawl has taken it" if isinstance(fault, ClaimLost) else "not back in LINKCRAWL_PATIENCE"
            logger.error("The store is lost (%s), the crawl ends: %s", why, fault)
            self._engine.close("store_lost")
