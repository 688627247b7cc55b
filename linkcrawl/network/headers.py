"""Header fields as Scrapy keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from scrapy.http import Headers


@lru_cache(maxsize=1024)
def _name(name: str) -> bytes:
    return name.title().encode()


def scrapy_headers(fields: Iterable[tuple[str, str]]) -> Headers:
    """Scrapy's headers, of fields that are clean already. Its own way of making them looks at values three times."""
    headers = Headers()
    for name, value in fields:
        dict.setdefault(headers, _name(name), []).append(value.encode())
    return headers
