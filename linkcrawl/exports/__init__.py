"""Records for other programs: rows of the store, and the formats that they are written in.

A format turns rows into pieces of bytes, one after the other, so that an export of any size needs the memory of a few
rows. A new format is one module and one line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from linkcrawl.exports import edgi, jsonl, parquet, table, vlo
from linkcrawl.exports.rows import Row


@frozen(kw_only=True)
class Format:
    """A file format. `encode`: from rows to the pieces of a file; its second argument says whether the rows are of
    resource proxies. `refusal`: from a row to the reason, in one word, why the format's reader would refuse it; None
    where it accepts it. `proxies`: the format has rows of resource proxies. `chunk`: pieces in one file at most.
    `compressed`: its files are compressed already.
    """

    encode: Callable[[Iterable[Row], bool], Iterator[bytes]]
    refusal: Callable[[Row], str | None] | None = None
    proxies: bool = False
    chunk: int | None = None
    compressed: bool = False


FORMATS: dict[str, Format] = {
    "jsonl": Format(encode=jsonl.encode, proxies=True),
    "csv": Format(encode=table.encode, proxies=True),
    "parquet": Format(encode=parquet.encode, proxies=True, compressed=True),
    "edgi": Format(encode=edgi.encode, refusal=edgi.refusal, chunk=edgi.CHUNK),
    "vlo": Format(encode=vlo.encode),
}

#: Formats by suffix.
SUFFIXES = {".ndjson": "jsonl"} | {f".{name}": name for name in FORMATS}
