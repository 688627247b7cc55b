"""Tables as spreadsheets write them: names of columns, separators, marks and encodings, and workbooks."""

from __future__ import annotations

import gzip
import io
import logging
import zipfile
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from linkcrawl import sources
from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources import sheets
from linkcrawl.sources.lines import read_jsonl, read_txt
from linkcrawl.sources.sheets import read_xlsx
from linkcrawl.sources.tables import columns_of, read_csv, read_tsv

NINE = datetime.fromisoformat("2026-11-30T09:05:00")


def workbook(*rows: tuple[Any, ...], further_sheets: int = 0) -> bytes:
    made = Workbook()
    sheet: Any = made.active
    sheet.title = "Links"
    for row in rows:
        sheet.append(row)
    for _ in range(further_sheets):
        made.create_sheet()
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def repacked(data: bytes, **changed: bytes) -> bytes:
    """The workbook with other members; a name's __ stands for /, and .xml follows."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            key = name.removesuffix(".xml").replace("/", "__")
            new.writestr(name, changed[key] if key in changed else old.read(name))
    return file.getvalue()


def seeds_of(rows: Any) -> list[Seed]:
    return [row for row in rows if isinstance(row, Seed)]


def urls_of(rows: Any) -> list[str]:
    return [seed.url for seed in seeds_of(rows)]


def reasons_of(rows: Any) -> list[str]:
    return [row.why for row in rows if isinstance(row, Reject)]


@pytest.mark.parametrize(
    ("names", "fields", "link"),
    [
        (["URL"], ("url",), "URL"),
        ([" Link "], ("url",), " Link "),
        (["note", "Uri"], ("note", "url"), "Uri"),
        (["url", "Link"], ("url", "Link"), "url"),  # an unknown field is kept, whatever it is called
        (["Collection", "HREF", "Record"], ("collection", "url", "record"), "HREF"),
        (["a", "a", "", "", "Link"], ("a", "a", "", "", "url"), "Link"),
        (["Homepage"], ("Homepage",), None),
    ],
)
def test_columns(names: list[str], fields: tuple[str, ...], link: str | None) -> None:
    columns = columns_of(names, "it")
    assert (columns.fields, columns.link) == (fields, link)


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["Link", "URI"], '"Link" and "URI" may each be meant as url'),
        (["URL", "url "], '"URL" and "url " may each be meant as url'),
        (["url", "Collection", "collection"], '"Collection" and "collection" may each be meant as collection'),
    ],
)
def test_columns_that_may_be_meant_as_one_field_are_an_error_that_names_them(names: list[str], meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        columns_of(names, "it.csv")
    assert meant in str(caught.value)
    assert "it.csv" in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.xlsx", "a.xlsx.gz"])
def test_such_a_file_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    data = b"Link\tURI\nhttp://a.example/\thttp://b.example/\n"
    data = workbook(("Link", "URI"), ("http://a.example/", "http://b.example/")) if ".xlsx" in name else data
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(ConfigError, match='"Link" and "URI"'):
        sources.check_source(str(tmp_path / name))


def test_in_a_folder_it_costs_its_own_rows_only(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Link,URI\nhttp://a.example/,x\n")
    (tmp_path / "b.csv").write_text("Link\nhttp://b.example/\n")
    rows = list(sources.read(str(tmp_path)))
    assert urls_of(rows) == ["http://b.example/"]
    assert len(reasons_of(rows)) == 1


def test_one_line_says_what_was_understood(caplog: pytest.LogCaptureFixture) -> None:
    list(read_csv(io.BytesIO(b"Link;note\nhttp://a.example/;x\n"), "links.csv"))
    list(read_csv(io.BytesIO(b"url,note\nhttp://a.example/,x\n"), "plain.csv"))
    list(read_xlsx(io.BytesIO(workbook(("Uri",), ("http://a.example/",), further_sheets=1)), "links.xlsx"))
    assert [record.getMessage() for record in caplog.records] == [
        'links.csv: column "Link" is read as url, cells are separated by semicolons',
        'links.xlsx: column "Uri" is read as url, the first of 2 sheets, "Links", is read',
    ]


def test_windows_1252_is_read_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    data = "url;collection\nhttp://a.example/;\u201eGr\u00fc\u00dfe\u201c \u20ac\nhttp://b.example/;\u2026\n".encode(
        "cp1252"
    )
    caplog.set_level(logging.WARNING)
    rows = seeds_of(read_csv(io.BytesIO(data), "links.csv"))
    assert [seed.collection for seed in rows] == ["\u201eGr\u00fc\u00dfe\u201c \u20ac", "\u2026"]
    said = [record.getMessage() for record in caplog.records if "Windows-1252" in record.getMessage()]
    assert len(said) == 1
    assert "links.csv: line 2 is not UTF-8" in said[0]


def test_marks_inside_of_joined_files() -> None:
    mark = b"\xef\xbb\xbf"
    lines = mark + b'{"url": "http://a.example/1"}\n' + mark + mark + b'{"url": "http://a.example/2"}\n' + mark
    assert urls_of(read_jsonl(io.BytesIO(lines), "it")) == ["http://a.example/1", "http://a.example/2"]
    assert urls_of(read_txt(io.BytesIO(mark + b"hdl:1/2\n" + mark + b"hdl:1/3"), "it")) == ["hdl:1/2", "hdl:1/3"]
    table = mark + b"url,note\nhttp://a.example/1,x\n"
    rows = list(read_csv(io.BytesIO(table + table.replace(b"/1", b"/2")), "it"))
    assert urls_of(rows) == ["http://a.example/1", "http://a.example/2"]
    assert reasons_of(rows) == []  # the second row of names is no seed, and no fault


def test_quotes_are_plain_characters_between_tabs() -> None:
    values = ["5'9\" tall", '"Foo" bar', '"open', '""', "plain"]
    data = "url\trecord\n" + "".join(f"http://a.example/{n}\t{value}\n" for n, value in enumerate(values))
    rows = list(read_tsv(io.BytesIO(data.encode()), "it"))
    assert [seed.record for seed in seeds_of(rows)] == values
    assert reasons_of(rows) == []
    (why,) = reasons_of(read_tsv(io.BytesIO(b"url\thttp\nhttp://a.example/\tx\ty\n"), "it"))
    assert why == "3 cells for 2 columns"


def test_a_workbook_gives_what_its_cells_show() -> None:
    data = workbook(
        (None, None),
        ("URL", "priority", "record", "day", "moment", "hour", "yes", "share", "none"),
        ("http://a.example/", 3, 17.0, date(2026, 11, 30), NINE, time(9, 5), True, 0.5, None),
        (None,),
        ("a.example/x",),
        ("http://b.example/", None, None, None, None, None, None, None, None, "beside the table"),
    )
    rows = list(read_xlsx(io.BytesIO(data), "it"))
    shown = {"day": "2026-11-30", "moment": "2026-11-30T09:05:00", "hour": "09:05:00", "yes": "TRUE", "share": "0.5"}
    first, rejected, last = rows
    assert first == Seed(url="http://a.example/", priority=3, record="17", extra={**shown, "none": ""})
    assert isinstance(rejected, Reject)
    assert (rejected.line, rejected.why) == (5, "url has no scheme")
    assert isinstance(last, Seed)
    assert last.url == "http://b.example/"


def test_a_formula_gives_the_value_that_was_saved_with_it() -> None:
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        b'<row r="1"><c r="A1" t="inlineStr"><is><t>link</t></is></c></row>'
        b'<row r="2"><c r="A2" t="str"><f>HYPERLINK("http://x.example/","y")</f><v>http://a.example/</v></c></row>'
        b'<row r="3"><c r="A3"><f>"http://b.example/"</f></c></row>'
        b"</sheetData></worksheet>"
    )
    assert urls_of(read_xlsx(io.BytesIO(repacked(workbook(), xl__worksheets__sheet1=sheet)), "it")) == [
        "http://a.example/"
    ]


@pytest.mark.parametrize(
    "cell",
    [b'<row r="2"><c r="ZZZZZZZZ2"><v>1</v></c></row>', b'<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>'],
)
def test_places_that_no_sheet_has_cost_neither_memory_nor_time(cell: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_ROWS", 1000)
    head = b'<row r="1"><c r="A1" t="inlineStr"><is><t>url</t></is></c></row>'
    sheet = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>' + head + cell
    data = repacked(workbook(), xl__worksheets__sheet1=sheet + b"</sheetData></worksheet>")
    assert urls_of(read_xlsx(io.BytesIO(data), "it")) == []


@pytest.mark.parametrize("member", ["xl__worksheets__sheet1", "xl__styles", "xl__workbook"])
def test_a_bomb_is_not_unpacked(member: str) -> None:
    data = repacked(workbook(("url",)), **{member: b" " * 20_000_000})
    (why,) = reasons_of(read_xlsx(io.BytesIO(data), "it"))
    assert why == "the workbook unpacks to more than 100 times its size; CSV would work"


def test_texts_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_TEXTS", 100)
    (why,) = reasons_of(read_xlsx(io.BytesIO(workbook(("url",))), "it"))
    assert "more than 100; CSV would work" in why


@pytest.mark.parametrize("data", [b"", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 5000, b"url\nhttp://a.example/\n"])
def test_what_is_no_workbook_is_one_reject(data: bytes) -> None:
    (why,) = reasons_of(read_xlsx(io.BytesIO(data), "it"))
    assert why == sheets._NO_WORKBOOK


def test_a_workbook_that_says_nonsense_is_one_reject() -> None:
    data = repacked(workbook(("url",), ("http://a.example/",)), xl__workbook=b"<nonsense/>")
    assert [why for why in reasons_of(read_xlsx(io.BytesIO(data), "it")) if "can't be read further" in why]


WHOLE = workbook(("url", "record"), *((f"http://a.example/{n}", f"r{n}") for n in range(30)))


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=40))
def test_a_damaged_workbook_gives_rows(place: int, noise: bytes) -> None:
    for row in read_xlsx(io.BytesIO(WHOLE[:place] + noise + WHOLE[place + len(noise) :]), "it"):
        assert isinstance(row, Seed) or row.why


_CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=12)


@given(
    st.lists(st.tuples(_CELL, _CELL), max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from(["url", "URL", "Link", "uri "]),
)
def test_what_a_spreadsheet_writes_is_what_is_read(
    rows: list[tuple[str, str]], separator: str, encoding: str, name: str
) -> None:
    """Every cell in quotes, by RFC 4180, whatever the cells hold."""
    made = [(f"http://a.example/{number}", *row) for number, row in enumerate(rows)]
    table = [(name, "note", "more"), *made]
    quoted = (separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in table)
    data = "".join(f"{line}\r\n" for line in quoted).encode(encoding)
    found = list(read_csv(io.BytesIO(data), "it"))
    assert [(row.url, row.extra["note"], row.extra["more"]) for row in found if isinstance(row, Seed)] == made
    assert len(found) == len(made)
