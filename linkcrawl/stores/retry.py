"""Waiting for a store that was lost: nothing is sent meanwhile, and an operator reads one line a minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from linkcrawl.errors import StoreLost
from linkcrawl.session import Session

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds between two tries to reach a lost store, and between two lines about it.
RETRY, REPEAT = 1.0, 60.0


async def retry_while_store_lost(session: Session, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call of the store in its thread, again and again while the store is lost. Every call of the contract may
    be repeated. Raises StoreLost when the store has not come back in LINKCRAWL_PATIENCE."""
    began = told = None
    while True:
        try:
            result = await session.worker.call(function, *args, **kwargs)
        except StoreLost as fault:
            now = session.now()
            if began is None:
                began = now
                told = now if session.store_lost else None  # another who waits has told of it, and goes on telling
            session.store_lost = True
            if told is None or now - told >= REPEAT:
                told = now
                logger.error("The store is lost, nothing is sent until it is back: %s", fault)
            if now - began >= session.config.patience:
                raise
            await asyncio.sleep(RETRY)
        else:
            if began is not None and session.store_lost:
                logger.warning("The store is back after %.0f s.", session.now() - began)
                session.store_lost = False
                session.wake_engine()
            return result
