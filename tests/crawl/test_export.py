"""After a real crawl: the export says what the feed said, whatever the format, and behaves in a shell."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from linkcrawl.exports.table import COLUMNS
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, links
from tests.crawl.harness import Crawler, environment
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy
from tests.unit.exports_kit import edgi_import


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RunningSite]:
    with running_site(tmp_path, hosts=2) as running:
        yield running


def seeds(site: RunningSite, crawler: Crawler) -> str:
    rows = [{"url": site.url(healthy(host), f"/{page}"), "collection": "=C"} for host in range(2) for page in range(2)]
    return f"seeds={crawler.seeds([*rows, {'url': 'mailto:a@b.example'}])}"


def shell(crawler: Crawler, line: str) -> subprocess.CompletedProcess[str]:
    """`EXPORT` in the line is scrapy export with the crawl's settings."""
    export = " ".join(f"'{part}'" for part in crawler.command("export"))
    return subprocess.run(
        ["bash", "-c", line.replace("EXPORT", export)],
        cwd=crawler.folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_export_and_feed_are_the_same(site: RunningSite, crawler: Crawler) -> None:
    crawl = crawler.run("-a", seeds(site, crawler))
    done = shell(crawler, "EXPORT -o - && EXPORT -o x.csv && EXPORT -o x.edgi && EXPORT --hourly out")
    assert done.returncode == 0
    exported = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(exported, key=lambda record: record["url"]) == sorted(crawl.records, key=lambda record: record["url"])
    assert len(exported) == 5
    versions = [edgi_import(line) for line in (crawler.folder / "x.edgi").read_bytes().splitlines(keepends=True)]
    assert len(versions) == 4
    assert done.stderr.splitlines() == [
        "linkcrawl: 1 records left out, as edgi would refuse them: 1 for their url",
        "0 hours written to out",
    ]


def test_the_csv_feed_has_the_columns_of_the_export(site: RunningSite, crawler: Crawler) -> None:
    """Added to twice: one line of names."""
    told = seeds(site, crawler)
    for arguments in (("-a", told), ("-a", "recheck=1")):
        command = crawler.command("crawl", "resourceproxies", "-o", "feed.csv", *arguments)
        done = subprocess.run(
            command, cwd=crawler.folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
    with (crawler.folder / "feed.csv").open(newline="") as file:
        names, *rows = csv.reader(file, strict=True)
    assert tuple(names) == COLUMNS
    assert len(rows) == 10
    fed = [dict(zip(names, row, strict=True)) for row in rows]
    assert {row["collections"] for row in fed} == {"'=C", ""}
    assert shell(crawler, "EXPORT -o export.csv --history").returncode == 0
    with (crawler.folder / "export.csv").open(newline="") as file:
        exported = list(csv.DictReader(file, strict=True))
    assert sorted(map(str, exported)) == sorted(map(str, fed))


def test_whoever_has_read_enough_hears_nothing(crawler: Crawler) -> None:
    with closing(open_store(crawler.store_url)) as store:
        store.add([entry(n) for n in range(1000)])
        store.finish([check(link, 10.0 + n) for n, link in enumerate(links(store))])
    # a reader that goes after the first line, and one that is gone before it
    for reader in ("head -n 1", "true"):
        done = shell(crawler, f"set -o pipefail; EXPORT -o - | {reader}")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == (1 if reader != "true" else 0)


def test_an_unknown_option_is_status_2(crawler: Crawler) -> None:
    done = shell(crawler, "EXPORT -o x.jsonl --format nonsense")
    assert done.returncode == 2
    assert "nonsense" in done.stderr
