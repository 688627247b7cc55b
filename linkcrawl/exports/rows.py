"""The rows of an export: one for each record, or one for each resource proxy (mention) of a record's link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite
from typing import Any

from attrs import frozen

from linkcrawl.check.conclude import deciding_chain
from linkcrawl.check.fields import mime_matches
from linkcrawl.check.statuses import REDIRECTS
from linkcrawl.items import Record
from linkcrawl.stores.contract import Proxy, Store
from linkcrawl.stores.rows import glob

#: The fields of a resource proxy's row besides the record's. `extra`: the unknown fields of its seed.
PROXY_FIELDS = ("collection", "record", "provider", "resource_type", "extra")
#: Links whose mentions are read in one query: one by one, MongoDB takes twenty times as long.
TOGETHER = 200


@frozen(kw_only=True)
class Row:
    """A record and, in an export of resource proxies, one mention of its link."""

    record: Record
    proxy: Proxy | None = None

    @property
    def expected_mime(self) -> str | None:
        """The media type that the mention's metadata claims; without a mention, the record's."""
        return self.record.expected_mime if self.proxy is None else self.proxy.expected_mime

    @property
    def mime_matches(self) -> bool | None:
        """`Record.mime_matches` for this row's `expected_mime`."""
        if self.proxy is None:
            return self.record.mime_matches
        return mime_matches(self.proxy.expected_mime, self.record.mime)

    def document(self) -> dict[str, Any]:
        """The row for JSON: the record under its contract names, and PROXY_FIELDS where there is a mention."""
        document = self.record.row()
        if self.proxy is not None:
            document |= {"expected_mime": self.expected_mime, "mime_matches": self.mime_matches}
            document |= self.mention()
        return document

    def mention(self) -> dict[str, Any]:
        """PROXY_FIELDS and their values, for a row that has a mention."""
        mention = {name: getattr(self.proxy, name) for name in PROXY_FIELDS}
        return mention | {"extra": _finite(mention["extra"])}


def _finite(value: Any) -> Any:
    """The value with None for NaN and infinities, which databases have and JSON hasn't."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def link_rows(records: Iterable[Record]) -> Iterator[Row]:
    """A row for each record."""
    return (Row(record=record) for record in records)


def proxy_rows(
    records: Iterable[Record], store: Store, collection: str | None, provider: str | None = None
) -> Iterator[Row]:
    """A row for each mention of each record's link; only of collections and providers that match the globs, where they
    are given."""

    def is_wanted(proxy: Proxy) -> bool:
        named = ((collection, proxy.collection), (provider, proxy.provider))
        return all(
            pattern is None or (name is not None and glob(pattern).fullmatch(name) is not None)
            for pattern, name in named
        )

    rest = iter(records)
    while batch := list(islice(rest, TOGETHER)):
        mentions = store.proxies([record.link_id for record in batch])
        for record in batch:
            for proxy in mentions[record.link_id]:
                if is_wanted(proxy):
                    yield Row(record=record, proxy=proxy)


def redirect_chain(record: Record) -> list[tuple[str, int | None]]:
    """The URLs of the deciding chain with their statuses, from the first asked to `final_url`; [] without redirects."""
    followed = [hop for hop in deciding_chain(record.hops) if hop.status in REDIRECTS and hop.location]
    if followed and (followed[-1].url, followed[-1].status) == (record.final_url, record.status):
        followed.pop()  # the deciding answer redirects itself: in a loop, or to nowhere
    if not followed or record.final_url is None:
        return []
    return [*((hop.url, hop.status) for hop in followed), (record.final_url, record.status)]
