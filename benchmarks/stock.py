"""The least that a Scrapy user would write to check links: one spider, every setting as Scrapy has it.

`scrapy runspider benchmarks/stock.py -a urls=FILE`; a URL a line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy


class Stock(scrapy.Spider):
    name = "stock"
    handle_httpstatus_all = True

    async def start(self) -> AsyncIterator[Any]:
        with open(self.urls) as lines:  # type: ignore[attr-defined]  # noqa: ASYNC230  # as users do
            for line in lines:
                yield scrapy.Request(line.strip(), method="HEAD", errback=self.failed)

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "status": response.status}

    def failed(self, failure: Any) -> Iterator[dict[str, Any]]:
        yield {"url": failure.request.url, "status": None}
