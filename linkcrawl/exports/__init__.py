"""Records for other programs: rows out of the store, and the formats that they are written in.

A format turns rows into pieces of bytes, one after the other, so that an export of any size needs the memory of a few
rows. A further format is one module and one line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from linkcrawl.exports import edgi, jsonl, parquet, table, vlo
from linkcrawl.exports.rows import Row


@frozen(kw_only=True)
class Format:
    """How rows become a file.

    `encode`: pieces of the file in order, for rows of which all or none have a proxy, as the second argument says.
    `refusal`: why the program that the format is made for would refuse a row, in one word; None where it takes it.
    `proxies`: whether it has rows for resource proxies. `chunk`: a file holds so many pieces at most. `compressed`:
    it compresses by itself.
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

#: The format that a file's suffix stands for.
SUFFIXES = {".ndjson": "jsonl"} | {f".{name}": name for name in FORMATS}
