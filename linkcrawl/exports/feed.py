"""The crawl's own feed as CSV (`-O checks.csv`), with the columns of `scrapy export`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

from scrapy.exporters import BaseItemExporter

from linkcrawl.exports import table
from linkcrawl.exports.rows import Row
from linkcrawl.items import Record


class FlatCsvItemExporter(BaseItemExporter):
    """In the place of Scrapy's own, which writes hops as Python's repr and lets formulas through.

    The columns are `table.COLUMNS`, whatever FEED_EXPORT_FIELDS says: that names the fields of the other formats. A
    feed that is added to (`-o`) gets no second line of names.
    """

    def __init__(self, file: BinaryIO, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._file = file

    def start_exporting(self) -> None:
        self._write(table.lines((), proxies=False, header=self._file.tell() == 0))

    def export_item(self, item: Record) -> None:
        self._write(table.lines([Row(record=item)], proxies=False, header=False))

    def _write(self, lines: Iterable[str]) -> None:
        self._file.writelines(line.encode(self.encoding or "utf-8") for line in lines)
