"""What each format makes of a record, read back by those who read such files."""

from __future__ import annotations

import csv
import io
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.errors import ConfigError
from linkcrawl.exports import FORMATS, SUFFIXES, parquet, table
from linkcrawl.exports.edgi import refusal
from linkcrawl.exports.feed import FlatCsvItemExporter
from linkcrawl.exports.rows import PROXY_FIELDS, Row, redirect_chain
from linkcrawl.items import RECORD_FIELDS, Hop, Record, iso
from linkcrawl.stores.contract import Proxy
from tests.unit.exports_kit import DEAD, KINDS, NEVER_ASKED, PROXY, REDIRECTED, T, edgi_import, encoded, hop, made

kinds = pytest.mark.parametrize("record", KINDS.values(), ids=KINDS)
CHAIN = [("https://a.example/1", 301), ("https://b.example/2", 308), ("https://c.example/3", 200)]


def test_every_format_has_a_suffix() -> None:
    assert set(SUFFIXES.values()) == set(FORMATS)


# Redirects.

A, B = "https://a.example/1", "https://b.example/2"
CHAINS: list[tuple[str, dict[str, Any], list[tuple[str, int | None]]]] = [
    ("none", {"hops": (hop(A),)}, []),
    ("nothing asked", {"hops": (), "status": None}, []),
    ("a failing HEAD is no redirect", {"hops": (hop(A, 405), hop(A, 200, "GET"))}, []),
    ("a fresh try is no redirect", {"hops": (hop(A, None), hop(A, 200))}, []),
    (
        "to a dead host",
        {"hops": (hop(A, 301, location=B), hop(B, None)), "status": None, "final_url": B},
        [(A, 301), (B, None)],
    ),
    (
        "barred before the next",
        {"hops": (hop(A, 301, location=B),), "status": None, "final_url": B},
        [(A, 301), (B, None)],
    ),
    (
        "in a circle",
        {"hops": (hop(A, 302, location=B), hop(B, 302, location=A)), "status": 302, "final_url": B},
        [(A, 302), (B, 302)],
    ),
    ("to nowhere", {"hops": (hop(A, 302, location="http://"),), "status": 302, "final_url": A}, []),
    (
        "the GET's own",
        {"hops": (hop(A, 301, location=B), hop(B, 404), hop(A, 200, "GET")), "status": 200, "final_url": A},
        [],
    ),
]


@pytest.mark.parametrize(("fields", "chain"), [row[1:] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_the_chain_of_redirects(fields: dict[str, Any], chain: list[tuple[str, int | None]]) -> None:
    assert redirect_chain(made(**fields)) == chain
    assert redirect_chain(REDIRECTED) == CHAIN


# JSON lines.


@kinds
def test_json_lines_have_the_contracts_names(record: Record) -> None:
    document = json.loads(encoded("jsonl", [record]))
    assert document == record.row()
    assert list(document) == list(RECORD_FIELDS)


def test_rows_for_resource_proxies_add_the_mention() -> None:
    document = json.loads(encoded("jsonl", [made(expected_mime="x/y", mime_matches=False)], PROXY))
    assert list(document) == [*RECORD_FIELDS, *PROXY_FIELDS]
    assert {name: document[name] for name in ("collection", "provider", "resource_type", "extra")} == {
        "collection": "A",
        "provider": "X",
        "resource_type": "Resource",
        "extra": {"note": "ä", "depth": [1, None]},
    }
    assert document["record"] == "oai:x:1"
    assert (document["expected_mime"], document["mime_matches"]) == (PROXY.expected_mime, True)


def test_what_json_cannot_hold_becomes_null() -> None:
    extra = {"a": float("nan"), "b": [float("inf"), {"c": -float("inf")}], "d": 1.5}
    proxy = Proxy(collection=None, record=None, expected_mime=None, provider=None, resource_type=None, extra=extra)
    finite = {"a": None, "b": [None, {"c": None}], "d": 1.5}
    assert json.loads(encoded("jsonl", [made()], proxy))["extra"] == finite
    assert json.loads(_table(encoded("csv", [made()], proxy))[1][-1]) == finite
    assert json.loads(_arrow(encoded("parquet", [made()], proxy)).to_pylist()[0]["extra"]) == finite


# CSV.


def _table(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


@kinds
def test_csv_is_flat_and_has_one_list_of_columns(record: Record) -> None:
    names, cells = _table(encoded("csv", [record]))
    assert tuple(names) == table.COLUMNS
    found, wanted = dict(zip(names, cells, strict=True)), record.row()
    for name in set(RECORD_FIELDS) - {"hops", "collections"}:
        value = wanted[name]
        shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        assert found[name] == shown
    assert found["collections"] == "A | B"
    assert found["requests"] == str(len(record.hops))


def test_the_csv_feed_takes_the_items_of_others() -> None:
    file = io.BytesIO()
    feed = FlatCsvItemExporter(file)
    feed.start_exporting()
    for item in ({"url": "=1+1", "note": "theirs", "status": None, "confirmed": True}, DEAD):
        feed.export_item(item)
    theirs, ours = csv.DictReader(io.StringIO(file.getvalue().decode()))
    assert {name: value for name, value in theirs.items() if value} == {"url": "'=1+1", "confirmed": "true"}
    assert ours["url"] == DEAD.url


def test_csv_sums_up_the_hops() -> None:
    names, cells = _table(encoded("csv", [REDIRECTED]))
    found = dict(zip(names, cells, strict=True))
    assert found["redirect_chain"].split(" ") == [url for url, _ in CHAIN]
    assert found["redirect_statuses"] == "301 308 200"
    assert found["ip"] == "2001:db8::3"


def test_csv_rows_for_resource_proxies() -> None:
    names, cells = _table(encoded("csv", [made()], PROXY))
    assert tuple(names) == table.PROXY_COLUMNS
    assert cells[-len(PROXY_FIELDS) :] == ["A", "oai:x:1", "X", "Resource", '{"note": "ä", "depth": [1, null]}']


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
@pytest.mark.parametrize("name", ["url", "final_url", "expected_mime", "error", "collections", "record", "provider"])
def test_no_cell_is_a_formula(start: str, name: str) -> None:
    text = f'{start}HYPERLINK("x")'
    fields: dict[str, Any] = {name: (text,) if name == "collections" else text}
    of_record = name not in ("record", "provider")
    proxy = Proxy(collection=text, record=text, expected_mime=text, provider=text, resource_type=text)
    data = encoded("csv", [made(**fields if of_record else {})], None if name == "expected_mime" else proxy)
    names, cells = _table(data)
    assert dict(zip(names, cells, strict=True))[name] == f"'{text}"


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
RISKY = st.builds(
    lambda start, rest: start + rest, st.sampled_from(["=", "+", "-", "@", "\t", "\r", "'", '"', ""]), ANY
)


@given(texts=st.lists(st.tuples(RISKY, RISKY, RISKY), max_size=5), numbers=st.integers())
def test_csv_survives_any_text(texts: list[tuple[str, str, str]], numbers: int) -> None:
    records = [made(url=url, error=error, collections=(name,), content_length=numbers) for url, error, name in texts]
    names, *rows = _table(encoded("csv", records))
    assert len(rows) == len(records)
    for record, cells in zip(records, rows, strict=True):
        found = dict(zip(names, cells, strict=True))
        assert found["content_length"] == str(numbers)
        for cell, text in [
            (found["url"], record.url),
            (found["error"], record.error or ""),
            (found["collections"], record.collections[0]),
        ]:
            assert cell[:1] not in {*"=+-@\t\r"} or not cell
            assert cell == (f"'{text}" if text[:1] in {*"=+-@\t\r"} and text else text)


def test_csv_is_typed_by_those_who_read_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(encoded("csv", KINDS.values()))
    frame = polars.read_csv(path, try_parse_dates=True)
    assert frame["status"].to_list() == [200, 200, None, None]
    assert frame["confirmed"].to_list() == [True, True, False, True]
    assert frame["checked_at"].dtype.is_temporal()
    [found] = duckdb.sql(
        f"SELECT count(*), sum(redirects), count(status), epoch(min(checked_at)) FROM '{path}'"
    ).fetchall()
    assert found == (4, 2, 2, T)


# Parquet.


def _arrow(data: bytes) -> pyarrow.Table:
    return pyarrow.parquet.read_table(io.BytesIO(data))


def test_parquet_columns_are_the_records_fields() -> None:
    assert list(parquet.TYPES) == list(RECORD_FIELDS)
    assert list(parquet.HOP_TYPES) == [part.name for part in Hop.__attrs_attrs__]


def test_parquet_gives_every_record_back() -> None:
    read = _arrow(encoded("parquet", KINDS.values()))
    assert read.schema.equals(parquet.schema(parquet.TYPES))
    for found, record in zip(read.to_pylist(), KINDS.values(), strict=True):
        wanted = record.row()
        for value in (*found["hops"], found):
            value |= {name: iso(part.timestamp()) for name, part in value.items() if isinstance(part, datetime)}
        assert found == wanted


def test_parquet_rows_for_resource_proxies() -> None:
    [found] = _arrow(encoded("parquet", [made()], PROXY)).to_pylist()
    assert list(found) == [*RECORD_FIELDS, *PROXY_FIELDS]
    assert (found["collection"], found["mime_matches"]) == ("A", True)
    assert json.loads(found["extra"]) == PROXY.extra


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_parquet_comes_in_row_groups(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP", 2)
    pieces = list(FORMATS["parquet"].encode((Row(record=made(T + n)) for n in range(count)), False))
    assert len(pieces) == -(-count // 2) + 1
    file = pyarrow.parquet.ParquetFile(io.BytesIO(b"".join(pieces)))
    assert file.num_row_groups == -(-count // 2)
    times = file.read()["checked_at"].to_pylist()
    assert [when.timestamp() for when in times] == [T + n for n in range(count)]


def test_parquet_in_duckdb_and_polars(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(encoded("parquet", KINDS.values()))
    hops = duckdb.sql(f"SELECT hop.url, hop.status FROM (SELECT unnest(hops) AS hop FROM '{path}')").fetchall()
    assert len(hops) == sum(len(record.hops) for record in KINDS.values())
    frame = polars.read_parquet(path)
    assert frame.schema["checked_at"] == polars.Datetime("ms", "UTC")
    assert frame["hops"].list.len().to_list() == [len(record.hops) for record in KINDS.values()]


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"linkcrawl\[parquet\]"):
        FORMATS["parquet"].encode([], False)


# EDGI.


@kinds
def test_edgi_lines_pass_a_strict_reader(record: Record) -> None:
    assert refusal(Row(record=record)) is None
    version = edgi_import(encoded("edgi", [record]))
    assert (version["url"], version["status"], version["media_type"]) == (record.url, record.status, record.mime)
    assert datetime.fromisoformat(version["capture_time"]).timestamp() == record.checked_at
    assert version["source_metadata"]["reason"] == record.reason


def test_edgi_tells_what_has_no_answer_as_an_error() -> None:
    assert edgi_import(encoded("edgi", [DEAD]))["network_error"] == "dns_not_found"
    assert edgi_import(encoded("edgi", [NEVER_ASKED]))["network_error"] == "robots_disallowed"
    assert edgi_import(encoded("edgi", [made(status=404)]))["network_error"] is None


def test_edgi_tells_redirects_with_their_statuses() -> None:
    metadata = edgi_import(encoded("edgi", [REDIRECTED]))["source_metadata"]
    assert list(zip(metadata["redirects"], metadata["statuses"], strict=True)) == CHAIN
    assert "redirects" not in edgi_import(encoded("edgi", [made()]))["source_metadata"]


REFUSED = [
    ("status", {"status": 999}),
    ("status", {"status": 99}),
    ("status", {"status": 600}),
    ("url", {"url": "http://localhost/"}),
    ("url", {"url": "http://localhost:8080/a.bc"}),
    ("url", {"url": "http://[2001:db8::1]/a.bc"}),
    ("url", {"url": "mailto:a@b.example"}),
    ("url", {"url": "http://"}),
    ("url", {"url": "nonsense"}),
    ("url", {"url": "http://a.example/\0"}),
    ("url", {"url": "http://localhost?a.bc"}),
    (None, {"url": "HTTP://A.Example"}),
    (None, {"url": "http://192.0.2.1:8080/x"}),
    (None, {"url": "https://bücher.example/ä ö"}),
    (None, {"url": "ftp://a.example/x"}),
    (None, {"status": 100}),
    (None, {"status": 599}),
]


@pytest.mark.parametrize(("why", "fields"), REFUSED)
def test_edgi_leaves_out_what_its_importer_refuses(why: str | None, fields: dict[str, Any]) -> None:
    assert refusal(Row(record=made(**fields))) == why
    if why is None:
        edgi_import(encoded("edgi", [made(**fields)]))


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"mime": "x/y"}, {"media_type": None}),
        ({"mime": "text/x'y"}, {"media_type": None}),
        ({"content_length": 2**31}, {"content_length": None}),
        ({"content_length": 2**31 - 1}, {"content_length": 2**31 - 1}),
        ({"error": "a\0b", "collections": ("a\0",), "expected_mime": "\\u0000\0"}, {}),
    ],
)
def test_edgi_leaves_out_only_the_field_that_is_minded(fields: dict[str, Any], kept: dict[str, Any]) -> None:
    version = edgi_import(encoded("edgi", [made(**fields)]))
    assert {name: version[name] for name in kept} == kept
    assert version["source_metadata"]["content_length"] == fields.get("content_length")


@given(
    url=st.sampled_from(["https://a.example/", "http://b", "x:", "ftp://c.org", "http://[::1]", ""]).flatmap(
        lambda start: ANY.map(lambda rest: start + rest)
    ),
    status=st.none() | st.integers(-1, 1000),
    mime=st.none() | ANY,
    length=st.none() | st.integers(-(2**40), 2**40),
    text=ANY,
)
def test_edgi_takes_whatever_is_not_left_out(
    url: str, status: int | None, mime: str | None, length: int | None, text: str
) -> None:
    record = made(url=url, status=status, mime=mime, content_length=length, error=text, collections=(text,))
    if refusal(Row(record=record)) is None:
        edgi_import(encoded("edgi", [record]))


# VLO.


@kinds
def test_vlo_lines(record: Record) -> None:
    assert json.loads(encoded("vlo", [record])) == {
        "url": record.url,
        "type": record.mime,
        "status": record.status,
        "lastChecked": round(T * 1000),
    }


def test_vlo_type_is_what_is_expected_where_nothing_was_found() -> None:
    data = encoded("vlo", [made(mime=None, expected_mime="audio/x-wav"), made(mime="a/b", expected_mime="c/d")])
    assert [json.loads(line)["type"] for line in data.splitlines()] == ["audio/x-wav", "a/b"]
