"""PURE, no I/O. Reads one answer from a connection's bytes: its head, a body where one is wanted, and whether the
connection may be used again."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from linkcrawl.check.fields import bare_mime, is_html
from linkcrawl.network.body import BodyReader
from linkcrawl.network.fault import Fault
from linkcrawl.network.head import Head, HeadParser


@frozen(kw_only=True)
class ReceivedAnswer:
    """A whole answer. `body`: empty unless one is wanted. `broken`: the body ended early or its framing was wrong.
    `reusable`: nothing stands on the connection after this answer, so it may carry another request.
    """

    head: Head
    body: bytes = b""
    broken: bool = False
    reusable: bool = False


class AnswerReader:
    """Bytes in, a ReceivedAnswer or a Fault out. `body_limit`: bytes of the body to wait for at most; None: none.
    `page_limit`: the same, where the answer is a readable HTML page. `on_head`: called once the head is in."""

    def __init__(
        self,
        method: str,
        body_limit: int | None,
        page_limit: int | None = None,
        on_head: Callable[[], None] = lambda: None,
    ) -> None:
        self.began = False  # True from the answer's first byte on
        self._bodiless = method == "HEAD"
        self._limit = body_limit
        self._page_limit = page_limit
        self._on_head = on_head
        self._parser = HeadParser()
        self._under_way: tuple[Head, BodyReader] | None = None

    def feed(self, data: bytes) -> ReceivedAnswer | Fault | None:
        self.began = True
        if self._under_way is None:
            got = self._parser.feed(data)
            return self._begin_body(got) if isinstance(got, Head) else got
        head, body = self._under_way
        body.feed(data)
        return self._answer(head, body) if body.done else None

    def end(self, *, orderly: bool) -> ReceivedAnswer | None:
        """The connection is closed; `orderly`: by FIN, not by a reset. None where no whole head had come."""
        if self._under_way is None:
            return None
        head, body = self._under_way
        body.end(orderly=orderly)
        return evolve(self._answer(head, body), reusable=False)

    def cut_short(self) -> ReceivedAnswer | None:
        """What has come of a page when its time is over; None where no head has come, or all of the body is needed."""
        if self._under_way is None or self._page_limit is None:
            return None
        return evolve(self._answer(*self._under_way), reusable=False)

    def _begin_body(self, head: Head) -> ReceivedAnswer | None:
        self._on_head()
        if self._bodiless or head.status in (204, 304):  # RFC 9112, 6.3
            return ReceivedAnswer(head=head, reusable=head.persistent and not head.rest)
        if self._limit is None and self._page_limit is not None and _is_page(head):
            self._limit = self._page_limit
        # Where the body isn't wanted it is read as far as it has come: if that is all of it, the connection is clean.
        body = BodyReader(head, len(head.rest) if self._limit is None else self._limit)
        body.feed(head.rest)
        self._under_way = head, body
        return self._answer(head, body) if body.done or self._limit is None else None

    def _answer(self, head: Head, body: BodyReader) -> ReceivedAnswer:
        wanted = self._limit is not None
        return ReceivedAnswer(
            head=head,
            body=bytes(body.data) if wanted else b"",
            broken=wanted and not body.complete and not body.truncated,
            reusable=head.persistent and body.complete and not body.stray,
        )


def _is_page(head: Head) -> bool:
    """True for a 2xx answer that is HTML and has no content coding."""
    plain = set(head.values("content-encoding")) <= {"identity"}
    return 200 <= head.status < 300 and plain and is_html(bare_mime(", ".join(head.values("content-type"))))
