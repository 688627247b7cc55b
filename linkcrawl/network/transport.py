"""What the download handler gets with a request, and what it fills in: one value under one key of `Request.meta`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from attrs import define
from scrapy.http import Request

from linkcrawl.check.outcome import Outcome
from linkcrawl.urls import Target

#: The key of `Request.meta` under which a request's context stands.
CONTEXT = "context"


def _always() -> bool:
    return True


def _nothing() -> None:
    pass


@define(kw_only=True, eq=False)
class Transport:
    """In: `target`, where the request goes, as its gate was chosen by (None: the handler reads `Request.url`);
    `address`, where the gate has its server, which is asked first, and without which nothing is sent (empty: the name
    had none; None: any will do);
    `body_limit`, bytes of the body to read (None: none); `page_limit`, bytes to read for `Outcome.page` where the
    answer is an HTML page (None: none); `may_send`, asked once more right before sending; `on_sent`, called when the
    request goes out.

    Out: `deadline`, the request's time limit while it is in flight, which may be moved to cut it short; `outcome`, set
    when it has ended, however it ended; `unsent`, that no request was made: at most a connection was opened for it.
    """

    target: Target | None = None
    address: str | None = None
    body_limit: int | None = None
    page_limit: int | None = None
    may_send: Callable[[], bool] = _always
    on_sent: Callable[[], None] = _nothing
    deadline: asyncio.Timeout | None = None
    outcome: Outcome | None = None
    unsent: bool = False


def transport_of(request: Request) -> Transport:
    """The request's context; a new one where it has none, as for a request that never passed the scheduler."""
    found: Transport | None = request.meta.get(CONTEXT)
    if found is None:
        found = request.meta[CONTEXT] = Transport()
    return found
