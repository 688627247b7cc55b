"""Rows as Parquet: typed, times as UTC timestamps in milliseconds, hops nested. Needs pyarrow (extra `parquet`)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from linkcrawl.errors import ConfigError
from linkcrawl.exports.rows import PROXY_FIELDS, Row
from linkcrawl.items import (
    CATEGORY,
    FIELDS_OF_HOP,
    FIELDS_OF_RECORD,
    HOPS,
    TIME,
    FieldType,
    Hop,
    Record,
    RecordField,
)
from linkcrawl.stores.rows import to_json

if TYPE_CHECKING:
    import pyarrow

#: Rows of a row group, which is held in memory. Readers skip by row group: smaller ones would be slow to read.
GROUP = 20_000

#: Names, types and order of the columns; `[...]` is a list of them. Every column but `url` may be null in its type.
HOP_TYPES = {part.name: part.type.arrow for part in FIELDS_OF_HOP}
TYPES = {part.name: part.type.arrow for part in FIELDS_OF_RECORD}
PROXY_TYPES = TYPES | dict.fromkeys(PROXY_FIELDS, "text")


def schema(types: dict[str, str]) -> pyarrow.Schema:
    """The Arrow schema of a table with these columns."""
    import pyarrow as pa

    plain = {
        "text": pa.string(),
        "integer": pa.int64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("ms", tz="UTC"),
    }
    hop = pa.struct([(name, plain[kind]) for name, kind in HOP_TYPES.items()])
    known = plain | {"[text]": pa.list_(pa.string()), "[hop]": pa.list_(hop)}
    return pa.schema([(name, known[kind]) for name, kind in types.items()])


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """The file in pieces, one for each row group. Raises ConfigError where pyarrow isn't installed."""
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError(
            "--format parquet: needs the package pyarrow; pip install 'linkcrawl[parquet]' would work"
        ) from None
    return _pieces(iter(rows), schema(PROXY_TYPES if proxies else TYPES))


def _pieces(rows: Iterator[Row], columns: pyarrow.Schema) -> Iterator[bytes]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    drain = _Drain()
    with ParquetWriter(drain, columns, compression="zstd") as writer:
        while group := [_values(row) for row in islice(rows, GROUP)]:
            writer.write_batch(pa.RecordBatch.from_pylist(group, schema=columns), row_group_size=GROUP)
            yield drain.taken()
    yield drain.taken()


def _values(row: Row) -> dict[str, Any]:
    values = _fields(row.record, FIELDS_OF_RECORD)
    if row.proxy is not None:
        values |= {"expected_mime": row.expected_mime, "mime_matches": row.mime_matches}
        values |= row.mention()
        values["extra"] = to_json(values["extra"]) if values["extra"] else None
    return values


def _fields(value: Record | Hop, fields: Iterable[RecordField]) -> dict[str, Any]:
    return {part.name: _value(getattr(value, part.name), part.type) for part in fields}


def _value(value: Any, type: FieldType) -> Any:
    if value is None:
        return None
    if type is TIME:
        return round(value * 1000)  # rounded as `items.iso` does, so that all formats tell one time
    if type is HOPS:
        return [_fields(hop, FIELDS_OF_HOP) for hop in value]
    return str(value) if type is CATEGORY else value


class _Drain(io.RawIOBase):
    """A file for ParquetWriter, from which written bytes are taken piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._held.append(bytes(data))
        self._position += len(self._held[-1])
        return len(self._held[-1])

    def taken(self) -> bytes:
        held, self._held = b"".join(self._held), []
        return held
