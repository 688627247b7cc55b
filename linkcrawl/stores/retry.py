"""Waits for a store that was lost: nothing is sent meanwhile, and the log gets one line a minute."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from linkcrawl.clock import Clock
from linkcrawl.errors import ClaimLost, StoreLost
from linkcrawl.stores.worker import StoreWorker

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds between two tries to reach a lost store, and between two lines about it.
RETRY, REPEAT = 1.0, 60.0


class Patient(Protocol):
    """Settings that say how long a lost store is waited for. `patience`: seconds (LINKCRAWL_PATIENCE)."""

    @property
    def patience(self) -> float: ...


class StoreSession(Protocol):
    """What waiting for a lost store needs of a crawl. `store_lost`: one of those who wait has said so, and nothing is
    sent until it is false again. `clock`: only `steady` is asked."""

    store_lost: bool

    @property
    def worker(self) -> StoreWorker: ...

    @property
    def config(self) -> Patient: ...

    @property
    def clock(self) -> Clock: ...


class Outage:
    """One outage of a store, as one waiting call sees it. Times are seconds of any one clock."""

    def __init__(self, began: float, patience: float, *, told_elsewhere: bool = False):
        """`told_elsewhere`: another waiting call has just logged this outage, and goes on logging it."""
        self._began = began
        self._patience = patience
        self._told = began if told_elsewhere else None

    def line_is_due(self, now: float) -> bool:
        """True if a line about it is due: at first, and REPEAT seconds after the last line."""
        if self._told is not None and now - self._told < REPEAT:
            return False
        self._told = now
        return True

    def seconds(self, now: float) -> float:
        """How long it has lasted."""
        return now - self._began

    def is_too_long(self, now: float) -> bool:
        """Whether it has outlasted the patience."""
        return self.seconds(now) >= self._patience


async def retry_while_store_lost(
    session: StoreSession, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a call of the store in its thread, again and again while the store is lost. Every call of the contract may
    be repeated. Raises StoreLost when the store has not come back within LINKCRAWL_PATIENCE, and ClaimLost at once."""
    outage = None
    while True:
        try:
            result = await session.worker.call(function, *args, **kwargs)
        except ClaimLost:
            session.store_lost = True
            raise
        except StoreLost as fault:
            now = session.clock.steady()
            if outage is None:
                outage = Outage(now, session.config.patience, told_elsewhere=session.store_lost)
            session.store_lost = True
            if outage.line_is_due(now):
                logger.error("The store is lost, nothing is sent until it is back: %s", fault)
            if outage.is_too_long(now):
                raise
            await asyncio.sleep(RETRY)
        else:
            if outage is not None and session.store_lost:
                logger.warning("The store is back after %.0f s.", outage.seconds(session.clock.steady()))
                session.store_lost = False
            return result


class BlockingRetry:
    """The same for a command without an event loop: a try a second, a line a minute on standard error."""

    def __init__(self, patience: float):
        """`patience`: seconds (LINKCRAWL_PATIENCE)."""
        self._patience = patience
        self._outage: Outage | None = None

    def answered(self) -> None:
        """The store has answered: an outage is over."""
        self._outage = None

    def wait(self, fault: StoreLost) -> None:
        """Return when it is time for the next try. Raises `fault` once the store was away for longer than patience; at
        once where another crawl has taken it."""
        if isinstance(fault, ClaimLost):
            raise fault
        now = time.monotonic()
        if self._outage is None:
            self._outage = Outage(now, self._patience)
        if self._outage.line_is_due(now):
            print(f"linkcrawl: the store is lost, waiting for it: {fault}", file=sys.stderr)
        if self._outage.is_too_long(now):
            raise fault
        time.sleep(RETRY)

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a call of the store, tried again while the store is lost."""
        while True:
            try:
                result = function(*args, **kwargs)
            except StoreLost as fault:
                self.wait(fault)
            else:
                self.answered()
                return result
