"""The crawl's own feed as CSV (`-O checks.csv`), with the columns of `scrapy export`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

from itemadapter import ItemAdapter
from scrapy.exporters import BaseItemExporter

from linkcrawl.exports import table
from linkcrawl.exports.rows import Row
from linkcrawl.items import Record


class FlatCsvItemExporter(BaseItemExporter):
    """Replaces Scrapy's own, which writes hops as Python's repr and lets formulas through.

    The columns are `table.COLUMNS`, whatever FEED_EXPORT_FIELDS says: that names the fields of the other formats. A
    feed that is appended to (`-o`) gets no second header. Of an item of another class, the row has the fields that are
    named like columns.
    """

    def __init__(self, file: BinaryIO, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._file = file

    def start_exporting(self) -> None:
        self._write(table.lines((), proxies=False, header=self._file.tell() == 0))

    def export_item(self, item: Any) -> None:
        if isinstance(item, Record):
            self._write(table.lines([Row(record=item)], proxies=False, header=False))
        else:
            self._write([table.line_of(ItemAdapter(item))])

    def _write(self, lines: Iterable[str]) -> None:
        self._file.writelines(line.encode(self.encoding or "utf-8") for line in lines)
