"""Header fields as Scrapy keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from scrapy.http import Headers


@lru_cache(maxsize=1024)
def _name(name: str) -> bytes:
    return name.title().encode()


def scrapy_headers(fields: Iterable[tuple[str, str]]) -> Headers:
    """Scrapy's headers, of fields that are clean already (`head.field_text`). Scrapy's own constructor looks at each
    value three times."""
    headers = Headers()
    for name, value in fields:
        dict.setdefault(headers, _name(name), []).append(value.encode("utf-8", "surrogateescape"))
    return headers
