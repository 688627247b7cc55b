"""`scrapy export` over both stores: which rows, in which order, into which files."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.commands import export as command
from linkcrawl.errors import StoreLost
from linkcrawl.exports import hourly
from linkcrawl.items import Category, iso
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.conftest import STORES
from tests.contract.making import check, entry, link
from tests.unit.exports_kit import HOUR, T, edgi_import, export, read_lines

BROKEN = {"category": Category.BROKEN, "reason": "http_404", "status": 404}
#: Checks of ten links: link, and seconds after T.
CHECKS = [(n % 10, n * 700.0 + n / 1000) for n in range(30)]


@pytest.fixture(params=sorted(STORES))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The store that is told below: link 1 in two collections, every third check broken."""
    with STORES[request.param](tmp_path, 0) as url:
        store = open_store(url)
        _tell(store)
        store.close()
        yield url


def _tell(store: Store) -> None:
    store.add([entry(n, collection="even" if n % 2 == 0 else "odd", record=f"r{n}", provider="P") for n in range(10)])
    store.add([entry(1, collection="even", record="r1b", extra={"note": "=x"}), entry(1, record="r1c")])
    links = [link(store, n) for n in range(10)]
    for place, (n, after) in enumerate(CHECKS):
        store.finish([check(links[n], T + after, **BROKEN if place % 3 == 0 else {})])


def told(path: Path) -> list[tuple[str, str]]:
    return [(line["url"], line["checked_at"]) for line in read_lines(path)]


def expected(checks: list[tuple[int, float]]) -> list[tuple[str, str]]:
    return [(f"https://a.example/{n}", iso(T + after)) for n, after in checks]


def test_the_latest_of_each_link_in_order_of_time(url: str, tmp_path: Path) -> None:
    assert export(url, "-o", tmp_path / "x.jsonl") == 0
    assert told(tmp_path / "x.jsonl") == expected(CHECKS[-10:])


def test_history_has_every_check(url: str, tmp_path: Path) -> None:
    assert export(url, "-o", tmp_path / "x.ndjson", "--history") == 0
    assert told(tmp_path / "x.ndjson") == expected(CHECKS)


def test_consecutive_ranges_neither_overlap_nor_miss(url: str, tmp_path: Path) -> None:
    """Also where a bound is a record's very moment."""
    bounds = sorted({T, *(T + after for _, after in CHECKS[::4]), T + 1234.5, T + 30 * 700.0})
    found = []
    for number, (since, until) in enumerate(pairwise(bounds)):
        path = tmp_path / f"{number}.jsonl"
        assert export(url, "-o", path, "--history", "--since", iso(since), "--until", iso(until)) == 0
        found += told(path)
    assert found == expected(CHECKS)


def test_a_time_without_a_zone_is_utc_and_zones_count(url: str, tmp_path: Path) -> None:
    since = ["--history", "--since", "2026-11-30T13:00:00"]
    assert export(url, "-o", tmp_path / "x.jsonl", *since) == 0
    assert export(url, "-o", tmp_path / "y.jsonl", *since[:2], "2026-11-30T14:00:00+01:00") == 0
    assert told(tmp_path / "x.jsonl") == told(tmp_path / "y.jsonl")
    assert told(tmp_path / "x.jsonl") == expected([moment for moment in CHECKS if moment[1] >= 2 * HOUR])


def test_narrowed_by_collection_and_category(url: str, tmp_path: Path) -> None:
    assert export(url, "-o", tmp_path / "x.jsonl", "--collection", "ev*", "--category", "Broken", "--history") == 0
    wanted = [
        moment for place, moment in enumerate(CHECKS) if place % 3 == 0 and (moment[0] % 2 == 0 or moment[0] == 1)
    ]
    assert told(tmp_path / "x.jsonl") == expected(wanted)


def test_changed_is_what_differs_from_the_check_before(url: str, tmp_path: Path) -> None:
    assert export(url, "-o", tmp_path / "x.jsonl", "--changed", "--history") == 0
    wanted = [
        moment for place, moment in enumerate(CHECKS) if place < 10 or (place % 3 == 0) != ((place - 10) % 3 == 0)
    ]
    assert told(tmp_path / "x.jsonl") == expected(wanted)


def test_a_row_for_each_resource_proxy(url: str, tmp_path: Path) -> None:
    assert export(url, "-o", tmp_path / "x.jsonl", "--rows", "proxy") == 0
    lines = read_lines(tmp_path / "x.jsonl")
    assert len(lines) == 12
    of_one = [(line["collection"], line["record"], line["extra"]) for line in lines if line["url"].endswith("/1")]
    assert of_one == [(None, "r1c", {}), ("even", "r1b", {"note": "=x"}), ("odd", "r1", {})]
    assert export(url, "-o", tmp_path / "y.jsonl", "--rows", "proxy", "--collection", "even") == 0
    assert {line["collection"] for line in read_lines(tmp_path / "y.jsonl")} == {"even"}
    assert len(read_lines(tmp_path / "y.jsonl")) == 6


@pytest.mark.parametrize("rows", ["link", "proxy"])
@pytest.mark.parametrize("name", ["csv.gz", "csv", "CSV"])
def test_csv_by_suffix(url: str, tmp_path: Path, rows: str, name: str) -> None:
    path = tmp_path / f"x.{name}"
    assert export(url, "-o", path, "--rows", rows) == 0
    with gzip.open(path, "rt", newline="") if name.endswith(".gz") else path.open(newline="") as file:
        table = list(csv.DictReader(file, strict=True))
    assert len(table) == (10 if rows == "link" else 12)
    assert table[-1]["checked_at"] == iso(T + CHECKS[-1][1])


def test_edgi_comes_in_chunks(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkcrawl.exports.FORMATS", command.FORMATS)
    monkeypatch.setitem(command.FORMATS, "edgi", command.evolve(command.FORMATS["edgi"], chunk=4))
    assert export(url, "-o", tmp_path / "x.jsonl", "--format", "edgi") == 0
    paths = [tmp_path / name for name in ("x.jsonl", "x-0002.jsonl", "x-0003.jsonl")]
    lines = [path.read_bytes().splitlines(keepends=True) for path in paths]
    assert [len(part) for part in lines] == [4, 4, 2]
    versions = [edgi_import(line) for part in lines for line in part]
    assert [(version["url"], version["capture_time"]) for version in versions] == expected(CHECKS[-10:])


def test_what_edgi_refuses_is_left_out_and_counted(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(url)
    store.add([entry(11, "localhost"), entry(12)])
    store.finish([check(link(store, 11, "localhost"), T - 2.0), check(link(store, 12), T - 1.0, status=999)])
    store.close()
    assert export(url, "-o", tmp_path / "x.edgi") == 0
    assert len([edgi_import(line) for line in (tmp_path / "x.edgi").read_bytes().splitlines(keepends=True)]) == 10
    assert capsys.readouterr().err == (
        "linkcrawl: 2 records left out, as edgi would refuse them: 1 for their status, 1 for their url\n"
    )


def test_standard_output(url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert export(url, "-o", "-", "--format", "vlo") == 0
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["url"] for line in lines] == [url for url, _ in expected(CHECKS[-10:])]


# By the hour.

HOURS = [f"2026/11/30/checks-2026-11-30T{hour}.jsonl.gz" for hour in (11, 12, 13, 14, 15, 16)]


def tree(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    """The command runs at this time, when the last settled moment is `moment`."""
    monkeypatch.setattr(command.time, "time", lambda: moment + hourly.SETTLED + 300)


def test_a_file_for_each_hour_that_is_over(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    at(monkeypatch, T + 3 * HOUR - 0.001)
    assert export(url, "--hourly", folder) == 0
    assert list(tree(folder)) == HOURS[:2]
    at(monkeypatch, T + 6 * HOUR)
    assert export(url, "--hourly", folder) == 0
    assert list(tree(folder)) == HOURS
    found = []
    for number, data in enumerate(tree(folder).values()):
        lines = [json.loads(line) for line in gzip.decompress(data).splitlines()]
        assert all(iso(T + number * HOUR) <= line["checked_at"] < iso(T + (number + 1) * HOUR) for line in lines)
        found += [(line["url"], line["checked_at"]) for line in lines]
    assert found == expected(CHECKS)


def test_hours_that_are_there_stay_and_missing_ones_come_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    at(monkeypatch, T + 6 * HOUR)
    export(url, "--hourly", folder)
    before = tree(folder)
    times = {name: (folder / name).stat().st_mtime_ns for name in before}
    (folder / HOURS[2]).unlink()
    assert export(url, "--hourly", folder) == 0
    assert tree(folder) == before
    after = {name: (folder / name).stat().st_mtime_ns for name in before}
    assert {name for name in before if after[name] == times[name]} == set(HOURS) - {HOURS[2]}


def test_checks_that_come_late_are_in_their_hours_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was cut off stores what it had; a clock that was set back gives checks a time of before."""
    folder = tmp_path / "out"
    at(monkeypatch, T + 6 * HOUR)
    export(url, "--hourly", folder)
    before = tree(folder)
    store = open_store(url)
    late = [check(link(store, 1), T + 2 * HOUR + 7.0), check(link(store, 1), T + 4 * HOUR + 7.0)]
    store.finish(late)
    store.close()
    export(url, "--hourly", folder)
    after = tree(folder)
    assert {name for name in HOURS if after[name] != before[name]} == {HOURS[2], HOURS[4]}
    for name, record in zip((HOURS[2], HOURS[4]), (each.record for each in late), strict=True):
        lines = [json.loads(line) for line in gzip.decompress(after[name]).splitlines()]
        assert iso(record.checked_at) in [line["checked_at"] for line in lines]
        assert len(lines) == gzip.decompress(before[name]).count(b"\n") + 1
    times = {name: (folder / name).stat().st_mtime_ns for name in after}
    export(url, "--hourly", folder)
    assert {name: (folder / name).stat().st_mtime_ns for name in after} == times


def test_files_of_before_are_watched_from_now_on(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    at(monkeypatch, T + 6 * HOUR)
    export(url, "--hourly", folder)
    for spoilt in ("", "[1, 2]", '{"checks": 3}'):
        (folder / hourly.COUNTS).write_text(spoilt)
        times = {name: (folder / name).stat().st_mtime_ns for name in HOURS}
        assert export(url, "--hourly", folder) == 0
        assert {name: (folder / name).stat().st_mtime_ns for name in HOURS} == times
    assert set(json.loads((folder / hourly.COUNTS).read_text())) == {Path(name).name for name in HOURS}


def test_an_hour_without_checks_has_an_empty_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, T + 9 * HOUR)
    assert export(url, "--hourly", tmp_path / "out") == 0
    files = tree(tmp_path / "out")
    assert len(files) == 9
    assert [gzip.decompress(data) for data in list(files.values())[6:]] == [b"", b"", b""]


def test_hours_of_an_empty_store(empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, T)
    assert export(empty, "--hourly", tmp_path / "out") == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        ("2026-11-30T13:00", "2026-11-30T15:00", HOURS[2:4]),
        ("2026-11-30T12:00:01", "2026-11-30T15:59:59", HOURS[2:4]),
        ("2026-11-30T13:00", "2026-11-30T13:59", []),
    ],
)
def test_only_whole_hours(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str, until: str, hours: list[str]
) -> None:
    at(monkeypatch, T + 6 * HOUR)
    assert export(url, "--hourly", tmp_path / "out", "--since", since, "--until", until) == 0
    assert list(tree(tmp_path / "out")) == hours


def test_a_first_check_that_is_too_old_to_be_meant_needs_a_since(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(url)
    store.finish([check(link(store, 1), 0.001)])
    store.close()
    at(monkeypatch, T + HOUR)
    assert export(url, "--hourly", tmp_path / "out") == 2
    assert "first check is of 1970-01-01T00:00:00.001Z, " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert export(url, "--hourly", tmp_path / "out", "--since", "2026-11-30T11:00") == 0
    assert list(tree(tmp_path / "out")) == HOURS[:1]


def test_hours_in_another_format(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, T + HOUR)
    for name, file in [("edgi", "T11.edgi.gz"), ("parquet", "T11.parquet"), ("csv", "T11.csv.gz")]:
        assert export(url, "--hourly", tmp_path / name, "--format", name) == 0
        assert [Path(path).name for path in tree(tmp_path / name)] == [f"checks-2026-11-30{file}"]


# What can't be done.


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A store in which there is nothing."""
    url = f"sqlite:///{tmp_path}/empty.db"
    open_store(url).close()
    return url


UNUSABLE: list[tuple[list[str], str]] = [
    ([], "-o FILE or --hourly DIR"),
    (["-o", "x.jsonl", "--hourly", "d"], "-o FILE or --hourly DIR"),
    (["-o", "x.txt"], "--format: not given, and 'x.txt'"),
    (["-o", "x"], "--format: not given"),
    (["-o", "x.jsonl", "--since", "yesterday"], "--since: 'yesterday' is not a time"),
    (["-o", "x.jsonl", "--until", ""], "--until: '' is not a time"),
    (["-o", "x.jsonl", "--since", "2026-01-02", "--until", "2026-01-01"], "--until: '2026-01-01' is before"),
    (["-o", "x.edgi", "--rows", "proxy"], "--rows proxy: edgi has a line for each link only"),
    (["-o", "x.vlo", "--rows", "proxy"], "--rows proxy: vlo has"),
    (["-o", "x.parquet.gz"], "-o x.parquet.gz: parquet is compressed already"),
    (["-o", "absent/x.jsonl"], "-o absent/x.jsonl: No such file or directory"),
    (["--hourly", "file/d", "--since", "2026-01-01"], "--hourly file/d: Not a directory"),
]


@pytest.mark.parametrize(("arguments", "message"), UNUSABLE)
def test_what_is_unusable_is_status_2_and_one_line(
    empty: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert export(empty, *arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"linkcrawl: {message}")
    assert {path.name.partition(".db")[0] for path in tmp_path.iterdir()} <= {"file", "empty"}


def test_a_store_that_cannot_be_used_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("postgres://x", "-o", tmp_path / "x.jsonl") == 2
    assert "LINKCRAWL_STORE" in capsys.readouterr().err


def test_a_lost_store_is_status_1_and_no_file(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(self: object, query: object = None) -> Iterator[Any]:
        yield from ()
        raise StoreLost("the disk has gone")

    monkeypatch.setattr("linkcrawl.stores.sqlite.store.SqliteStore.records", lost)
    assert export(empty, "-o", tmp_path / "x.jsonl") == 1
    assert capsys.readouterr().err == "linkcrawl: the disk has gone\n"
    assert not [name for name in os.listdir(tmp_path) if "x.jsonl" in name]


def test_an_empty_store_is_an_empty_file(empty: str, tmp_path: Path) -> None:
    for name, size in [("x.jsonl", 0), ("x.edgi", 0), ("x.vlo", 0)]:
        assert export(empty, "-o", tmp_path / name) == 0
        assert (tmp_path / name).stat().st_size == size
    assert export(empty, "-o", tmp_path / "x.csv") == 0
    assert (tmp_path / "x.csv").read_text().startswith("url,collections,checked_at,")


def test_a_mistyped_store_is_no_empty_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(f"sqlite:///{tmp_path}/mistyped.db", "-o", tmp_path / "x.jsonl") == 2
    assert "there is no store" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--confirmed", "--suspected"], "no record is both"),
        (["--due", "--retired"], "a retired link is never due"),
        (["--reason", "http_40x"], "'http_40x' is no reason"),
        (["--status", "4xx"], "'4xx' is no status"),
        (["--due", "soon"], "'soon' is not a time"),
    ],
)
def test_what_can_not_be_chosen_is_said(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/links.db"
    open_store(url).close()
    assert export(url, "-o", tmp_path / "out.jsonl", *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
