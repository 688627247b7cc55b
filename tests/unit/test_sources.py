"""Sources of every format: what comes out, in what order, and that a bad row never stops the rest."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl import sources
from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.lines import MAX_LINE, read_jsonl, read_txt
from linkcrawl.sources.tables import MAX_ROW_LINES, read_csv, read_tsv
from tests.rights import held_to_permissions
from tests.unit.growth_kit import assert_linear

READERS = {"jsonl": read_jsonl, "csv": read_csv, "tsv": read_tsv, "txt": read_txt}


def rows_of(suffix: str, data: bytes) -> list[Seed | Reject]:
    return list(READERS[suffix](io.BytesIO(data), "it"))


def urls_of(rows: list[Seed | Reject]) -> list[str]:
    return [row.url for row in rows if isinstance(row, Seed)]


def rejects_of(rows: list[Seed | Reject]) -> list[tuple[int, str]]:
    return [(row.line, row.why) for row in rows if isinstance(row, Reject)]


FULL = Seed(
    url="http://a.example/",
    collection="c",
    record="r",
    expected_mime="text/html",
    provider="p",
    resource_type="Resource",
    priority=3,
    extra={"note": "n"},
)


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (
            "jsonl",
            b'{"url":"http://a.example/","collection":"c","record":"r","expected_mime":"text/html","provider":"p",'
            b'"resource_type":"Resource","priority":3,"note":"n"}\n',
        ),
        (
            "csv",
            b"url,collection,record,expected_mime,provider,resource_type,priority,note\r\n"
            b"http://a.example/,c,r,text/html,p,Resource,3,n\r\n",
        ),
        (
            "tsv",
            b"note\tURL \tcollection\trecord\texpectedMimeType\tprovider\tresource_type\tpriority\n"
            b"n\thttp://a.example/\tc\tr\ttext/html\tp\tResource\t3\n",
        ),
    ],
)
def test_every_field_of_every_format(suffix: str, data: bytes) -> None:
    assert rows_of(suffix, data) == [FULL]


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ('"expectedMimeType": "text/plain"', "expected_mime", "text/plain"),
        ('"expectedMimeType": "text/plain", "expected_mime": "text/html"', "expected_mime", "text/html"),
        ('"expectedMimeType": "text/plain", "expected_mime": ""', "expected_mime", "text/plain"),
        ('"collection": null', "collection", None),
        ('"collection": "  "', "collection", None),
        ('"collection": " c "', "collection", "c"),
        ('"record": 17', "record", "17"),
        ('"priority": null', "priority", 0),
        ('"priority": ""', "priority", 0),
        ('"priority": " -5 "', "priority", -5),
        ('"priority": 5.0', "priority", 5),
        ('"collection": "http://me:secret@host/"', "collection", "http://host/"),
        (
            '"more": {"list": [1, null, "http://me:secret@host/"]}',
            "extra",
            {"more": {"list": [1, None, "http://host/"]}},
        ),
    ],
)
def test_values_are_read_tolerantly(row: str, field: str, value: object) -> None:
    (seed,) = rows_of("jsonl", f'{{"url": "http://a.example/", {row}}}'.encode())
    assert isinstance(seed, Seed)
    assert getattr(seed, field) == value


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("not json", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('"http://a.example/"', "not a JSON object"),
        ('["http://a.example/"]', "not a JSON object"),
        ("{}", "no url"),
        ('{"url": null}', "no url"),
        ('{"url": " "}', "no url"),
        ('{"url": 5}', "url is 5, not text"),
        ('{"url": ["http://a.example/"]}', "url is ['http://a.example/'], not text"),
        ('{"url": "a.example/x"}', "url has no scheme"),
        ('{"url": "me:secret@a.example/x"}', "url has no scheme"),
        ('{"url": "http://a.example/", "priority": "abc"}', "priority is 'abc', not an integer"),
        ('{"url": "http://a.example/", "priority": 1.5}', "priority is 1.5, not an integer"),
        ('{"url": "http://a.example/", "priority": true}', "priority is True, not an integer"),
        (
            '{"url": "http://a.example/", "priority": 9999999999}',
            "priority 9999999999 is out of range; up to 2147483647 would work",
        ),
        ('{"url": "http://a.example/", "collection": ["a", "b"]}', "collection is ['a', 'b'], not text"),
        ('{"url": "http://a.example/", "collection": true}', "collection is True, not text"),
        ('{"url": "http://a.example/", "note": NaN}', "not JSON: NaN is not JSON"),
    ],
)
def test_bad_lines_are_rejected_and_the_rest_goes_on(line: str, why: str) -> None:
    data = f'{line}\n{{"url": "http://b.example/"}}\n'
    rows = rows_of("jsonl", data.encode())
    assert rejects_of(rows) == [(1, why)]
    assert urls_of(rows) == ["http://b.example/"]


def test_nesting_without_end_is_one_reject() -> None:
    rows = rows_of("jsonl", b"[" * 200_000 + b'\n{"url": "http://b.example/"}')
    assert [line for line, _ in rejects_of(rows)] == [1]
    assert urls_of(rows) == ["http://b.example/"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_marks(end: str, mark: bytes, last: bool) -> None:
    text = end.join(
        ["# comment", "http://a.example/", "", "  http://b.example/#c  ", "# http://no.example/", "hdl:1/2"]
    )
    data = mark + (text + (end if last else "")).encode()
    assert urls_of(rows_of("txt", data)) == ["http://a.example/", "http://b.example/#c", "hdl:1/2"]


@given(st.lists(st.sampled_from([b"http://a.example/", b"\n", b"\r", b"\r\n", b"x" * 40])), st.integers(1, 9))
def test_lines_do_not_depend_on_how_the_bytes_arrive(parts: list[bytes], size: int) -> None:
    class Drip(io.BytesIO):
        def read1(self, _size: int | None = -1, /) -> bytes:
            return self.read(size)

    data = b"".join(parts)
    assert list(read_txt(Drip(data), "it")) == list(read_txt(io.BytesIO(data), "it"))


def test_latin_1_and_nul_and_surrogates() -> None:
    data = b'{"url": "http://a.example/\xe9"}\n{"url": "http://a.example/\\u0000\\ud800"}\n{"url": "http://a.example/\x00"}\n'
    rows = rows_of("jsonl", data)
    assert urls_of(rows) == ["http://a.example/é", "http://a.example/\x00\ud800"]
    assert [line for line, _ in rejects_of(rows)] == [3]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_text_like_any_other(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    data = f"{mark}url\r\nhttp://a.example/\u00e9\U0001f600\r\n".encode(encoding)
    assert rows_of("csv", data) == [Seed(url="http://a.example/\u00e9\U0001f600")]
    assert urls_of(rows_of("csv", data[:-5])) == ["http://a.example/\u00e9\ufffd"]  # cut within its last character


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "txt"])
def test_a_huge_line_is_rejected_in_bounded_memory(suffix: str) -> None:
    head = b"url\n" if suffix in ("csv", "tsv") else b""
    good = b'{"url": "http://b.example/"}' if suffix == "jsonl" else b"http://b.example/"
    data = head + b"http://a.example/" + b"a" * 10_000_000 + b"\n" + good + b"\n"
    stream = io.BytesIO(data)
    tracemalloc.start()
    rows = list(READERS[suffix](stream, "it"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [why for _, why in rejects_of(rows)] == [f"line is longer than {MAX_LINE} bytes"]
    assert urls_of(rows) == ["http://b.example/"]
    assert peak < 4 * MAX_LINE


def test_a_line_that_comes_byte_by_byte_is_put_together_once() -> None:
    """The time for it grows with its length: pieces are not joined to the line again and again."""

    class Dripping(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(1)

    assert_linear(lambda data: list(read_txt(Dripping(data), "it")), lambda n: b"http://a.example/" + b"a" * n)


def test_quotes_that_never_close_cost_each_line_once_for_each_row() -> None:
    """Each of these lines opens quotes, whether they were open before or not: a row is given up after MAX_ROW_LINES."""
    read: list[int] = []
    original = csv.reader

    def counting(texts: Iterable[str], **named: Any) -> Any:
        return original((read.append(len(text)) or text for text in texts), **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "reader", counting)
        rows = list(read_csv(io.BytesIO(b"url\n" + b'a","\n' * 200), "it"))
    assert len(rows) == 200
    assert sum(read) <= 200 * (MAX_ROW_LINES + 1) * 7


def test_a_megabyte_of_url_is_taken() -> None:
    url = "http://a.example/" + "a" * 1_000_000
    assert urls_of(rows_of("jsonl", f'{{"url": "{url}"}}'.encode())) == [url]


@pytest.mark.parametrize(
    ("data", "urls", "rejects"),
    [
        ("url,note\nhttp://a.example/,x\n", ["http://a.example/"], []),
        ('url,note\n"http://a.example/?a,b","x ""y"""\n', ["http://a.example/?a,b"], []),
        (
            'note,url\n"two\nlines",http://a.example/\nx,http://b.example/\n',
            ["http://a.example/", "http://b.example/"],
            [],
        ),
        (
            "url\nhttp://a.example/\n\n  \nhttp://b.example/\n",
            ["http://a.example/", "http://b.example/"],
            [(4, "no url")],
        ),
        ("url,note\nhttp://a.example/\nhttp://b.example/,,,\n", ["http://a.example/", "http://b.example/"], []),
        ('url,note\nhttp://a.example/,a"b\n', ["http://a.example/"], []),
        (
            'url,note\n"http://a.example/,x\nhttp://b.example/,y\n"http://c.example/",z\n',
            ["http://b.example/", "http://c.example/"],
            [(2, "quotes don't match")],
        ),
        (
            "url,note\nhttp://a.example/?a,b,x\nhttp://b.example/,y\n",
            ["http://b.example/"],
            [(2, "3 cells for 2 columns; a cell with ',' in it must stand in quotes")],
        ),
        ("url;note\nhttp://a.example/?a,b;x\n", ["http://a.example/?a,b"], []),
        ('note\turl\n"a\tb"\thttp://a.example/\n', ["http://a.example/"], []),
        ("sep=|\nnote|url\nx|http://a.example/\n", ["http://a.example/"], []),
        ("\n,,\nurl\nhttp://a.example/\n", ["http://a.example/"], []),
        ("name;note\nhttp://a.example/;x\n", [], [(1, "no column is named url; there are ['name', 'note']")]),
        ("", [], []),
    ],
)
def test_csv(data: str, urls: list[str], rejects: list[tuple[int, str]]) -> None:
    rows = rows_of("csv", data.encode())
    assert urls_of(rows) == urls
    assert rejects_of(rows) == rejects


def test_a_stray_quote_costs_its_own_line_only() -> None:
    lines = ["url,note"] + [f"http://a.example/{number},x" for number in range(3 * MAX_ROW_LINES)]
    lines[1] = '"' + lines[1]
    rows = rows_of("csv", "\n".join(lines).encode())
    assert rejects_of(rows) == [(2, "quotes don't match")]
    assert len(urls_of(rows)) == 3 * MAX_ROW_LINES - 1


@given(st.sampled_from(sorted(READERS)), st.binary())
def test_any_bytes_give_rows(suffix: str, data: bytes) -> None:
    for row in rows_of(suffix, data):
        assert isinstance(row, Seed) or row.line >= 1


@given(st.sampled_from(["csv", "tsv"]), st.text('",\t\n\rhtp:/a'))
def test_any_table_gives_rows(suffix: str, text: str) -> None:
    for row in rows_of(suffix, b"url,b\turl\n" + text.encode()):
        assert isinstance(row, Seed) or row.line >= 1


def test_rejects_are_cut_and_hold_no_login() -> None:
    (reject,) = rows_of("jsonl", b'{"url": "http://me:secret@host/", "x": "' + b"a" * 5000)
    assert isinstance(reject, Reject)
    assert len(reject.text) <= 500
    assert "secret" not in reject.text
    assert reject.source == "it"


def test_seeds_hold_no_login() -> None:
    assert urls_of(rows_of("jsonl", b'{"url": "http://me:secret@host/"}')) == ["http://host/"]


JSON_LINE = b'{"url": "http://a.example/"}\n'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", JSON_LINE),
        ("a.NDJSON", JSON_LINE),
        ("a.jsonl.gz", gzip.compress(JSON_LINE, mtime=0)),
        ("a.jsonl", gzip.compress(JSON_LINE, mtime=0)),
        ("a.TXT.GZ", gzip.compress(b"http://a.ex", mtime=0) + gzip.compress(b"ample/\n", mtime=0)),
        ("a.csv", b"url\nhttp://a.example/"),
        ("a.tsv", b"url\nhttp://a.example/"),
    ],
)
def test_files_by_name(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert urls_of(list(sources.read(str(tmp_path / name)))) == ["http://a.example/"]


def test_gzip_that_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    lines = b"".join(b"http://a.example/%d-%s\n" % (number, os.urandom(20).hex().encode()) for number in range(20_000))
    whole = gzip.compress(lines)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(whole[: len(whole) // 2])
    rows = list(sources.read(str(path)))
    assert len(urls_of(rows)) > 5000
    assert [why for _, why in rejects_of(rows)] == [
        "can't be read further: Compressed file ended before the end-of-stream marker was reached"
    ]
    assert isinstance(rows[-1], Reject)


def test_gzip_by_name_only_is_one_reject(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(JSON_LINE)
    assert len(rejects_of(list(sources.read(str(path))))) == 1


@pytest.mark.parametrize("data", [JSON_LINE * 2, gzip.compress(JSON_LINE * 2, mtime=0)])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert urls_of(list(sources.read("-"))) == ["http://a.example/"] * 2


def test_a_folder_is_read_whole_and_sorted(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/1.txt.gz", "b/c/1.csv", "z.jsonl", "a.tsv", "readme.md", "a/ignored.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "url\n" if path.suffix in (".csv", ".tsv") else ""
        text = f"{head}http://a.example/{name}\n"
        if path.suffix == ".jsonl":
            text = f'{{"url": "http://a.example/{name}"}}'
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    assert urls_of(list(sources.read(str(tmp_path)))) == [
        f"http://a.example/{name}" for name in ("a.tsv", "z.jsonl", "b/1.txt.gz", "b/2.txt", "b/c/1.csv")
    ]


def test_what_cannot_be_read_in_a_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("http://a.example/\n")
    (tmp_path / "nowhere.txt").symlink_to(tmp_path / "missing")
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    (tmp_path / "again").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "bad\udcff.txt").write_text("nothing\n")
    rows = list(sources.read(str(tmp_path)))
    assert urls_of(rows) == ["http://a.example/"]
    rejected = {Path(row.source).name: row.why for row in rows if isinstance(row, Reject)}
    assert rejected == {
        "nowhere.txt": "can't be read: No such file or directory",
        "loop.txt": "can't be read: Too many levels of symbolic links",
        "pipe.txt": "can't be read: not a regular file",
        "bad\ufffd.txt": "url has no scheme",
    }


@held_to_permissions
def test_what_may_not_be_read(tmp_path: Path) -> None:
    locked = tmp_path / "locked.txt"
    locked.write_text("http://a.example/\n")
    locked.chmod(0)
    assert rejects_of(list(sources.read(str(tmp_path)))) == [(0, "can't be read: Permission denied")]
    with pytest.raises(ConfigError, match="Permission denied"):
        sources.check_source(str(locked))


@pytest.mark.parametrize(
    "name",
    ["", "missing.jsonl", "missing", "empty", "other.json", "other.gz", "nul\0.txt", "foo://me:secret@host/x"],
)
def test_an_unusable_source_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty/below").mkdir(parents=True)
    (tmp_path / "empty/below/other.md").touch()
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "other.gz").write_bytes(gzip.compress(JSON_LINE))
    for use in (sources.check_source, sources.read):
        with pytest.raises(ConfigError) as caught:
            use(name)
        text = str(caught.value)
        assert text.isprintable()
        assert "would work" in text
        assert "secret" not in text
        assert repr(name.replace("me:secret@", "")) in text


def test_a_closed_standard_input_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for use in (sources.check_source, sources.read):
        with pytest.raises(ConfigError, match="standard input is closed"):
            use("-")


def test_checking_reads_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    sources.check_source(str(tmp_path / "pipe.jsonl"))
    sources.check_source("-")


def test_memory_stays_flat_over_a_folder(tmp_path: Path) -> None:
    line = b'{"url": "http://a.example/%d", "collection": "c", "note": "' + b"n" * 200 + b'"}\n'
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_bytes(b"".join(line % row for row in range(8_000)))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 8_000_000
    tracemalloc.start()
    count = sum(1 for _ in sources.read(str(tmp_path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 32_000
    assert peak < 3_000_000
