"""What is unusable is said in one line, before anything is sent."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.crawl.harness import Crawl, Crawler, Running, environment, until
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

UNUSABLE = 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSite]:
    with running_site(tmp_path_factory.mktemp("site"), hosts=1, after=0.2) as running:
        yield running


def _refused(crawl: Crawl, site: RunningSite, before: int, *names: str) -> None:
    assert crawl.status == UNUSABLE, crawl.stderr
    lines = crawl.stderr.splitlines()
    assert len(lines) == 1, crawl.stderr
    assert all(name in lines[0] for name in names), lines[0]
    assert crawl.stdout == ""
    assert site.count() == before


SETTINGS: dict[str, dict[str, str | None]] = {
    "an unknown setting": {"LINKCRAWL_TYPO": "1"},
    "no contact": {"LINKCRAWL_CONTACT": None},
    "an empty contact": {"LINKCRAWL_CONTACT": " "},
    "a contact that is none": {"LINKCRAWL_CONTACT": "nobody"},
    "a contact with a name": {"LINKCRAWL_CONTACT": "Ops <ops@example.org>"},
    "a contact of two lines": {"LINKCRAWL_CONTACT": "mailto:a@example.org\nX-Evil: 1"},
    "a time limit that is no number": {"LINKCRAWL_TIMEOUT": "soon"},
    "a negative time limit": {"LINKCRAWL_TIMEOUT": "-1"},
    "a delay that is no number": {"DOWNLOAD_DELAY": "fast"},
    "a negative delay": {"DOWNLOAD_DELAY": "-0.5"},
    "an endless delay": {"DOWNLOAD_DELAY": "nan"},
    "half a redirect": {"LINKCRAWL_MAX_REDIRECTS": "1.5"},
    "a network that is none": {"LINKCRAWL_ALLOWED_NETWORKS": "127.0.0.0/8,banana"},
    "a product token with a blank": {"LINKCRAWL_PRODUCT": "link crawl"},
    "authorities that are not there": {"LINKCRAWL_CA_BUNDLE": "missing.pem"},
    "policies that are not there": {"LINKCRAWL_POLICIES": "missing.toml"},
    "a store of another kind": {"LINKCRAWL_STORE": "mysql://localhost/links"},
    "a store without a path": {"LINKCRAWL_STORE": "sqlite:"},
    "a store in a folder that is not there": {"LINKCRAWL_STORE": "sqlite:////nowhere/at/all/links.db"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(crawler: Crawler, site: RunningSite, name: str) -> None:
    before, seeds = site.count(), crawler.seeds([site.url(healthy(0), "/x")])
    crawl = crawler.run("-a", f"seeds={seeds}", settings=SETTINGS[name])
    (setting,) = SETTINGS[name]
    _refused(crawl, site, before, setting)


def test_an_unknown_setting_of_the_environment(crawler: Crawler, site: RunningSite) -> None:
    before = site.count()
    command = crawler.command("crawl", "resourceproxies", "-a", f"seeds={crawler.seeds([site.url(healthy(0))])}")
    feed = crawler.folder / "feed.jsonl"
    running = Running(command, environment() | {"LINKCRAWL_TYPO": "1"}, crawler.folder, feed)
    _refused(running.wait(), site, before, "LINKCRAWL_TYPO")


SEEDS: dict[str, str | None] = {
    "missing.jsonl": None,
    "seeds.doc": "http://example.org/\n",
    "empty-folder/": None,
    "folder.jsonl/": None,
    "mysql://host/db": None,
    "": None,
}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(crawler: Crawler, site: RunningSite, name: str) -> None:
    before = site.count()
    if name.endswith("/"):
        (crawler.folder / name).mkdir()
    elif (text := SEEDS[name]) is not None:
        (crawler.folder / name).write_text(text)
    _refused(crawler.run("-a", f"seeds={name}"), site, before, name.rstrip("/"))


def test_seeds_that_may_not_be_read(crawler: Crawler, site: RunningSite) -> None:
    before, seeds = site.count(), crawler.seeds([site.url(healthy(0))])
    seeds.chmod(0)
    crawl = crawler.command("crawl", "resourceproxies", "-a", f"seeds={seeds}")
    held = [sys.executable, "-m", "tests.rights", *crawl]
    running = Running(held, environment(), crawler.folder, crawler.folder / "none.jsonl")
    _refused(running.wait(), site, before, seeds.name, "Permission denied")


ARGUMENTS = ("speed=9", "limit=0", "limit=many", "recheck=perhaps", "continuous=maybe")


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_arguments(crawler: Crawler, site: RunningSite, argument: str) -> None:
    before, seeds = site.count(), crawler.seeds([site.url(healthy(0))])
    crawl = crawler.run("-a", f"seeds={seeds}", "-a", argument)
    _refused(crawl, site, before, argument.partition("=")[0])


OPTIONS = {
    "a feed that can't be written": ("feed", ["-O", "a-file/checks.jsonl"]),
    "a feed that is a folder": ("feed", ["-o", "a-folder:jsonl"]),
    "one feed of two": ("feed", ["-O", "good.jsonl", "-O", "a-file/below/checks.csv"]),
    "a log in a folder that is not there": ("LOG_FILE", ["--logfile", "missing/crawl.log"]),
    "a log level that is none": ("LOG_LEVEL", ["-L", "QUIET"]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(crawler: Crawler, site: RunningSite, name: str) -> None:
    (crawler.folder / "a-file").touch()
    (crawler.folder / "a-folder").mkdir()
    before, seeds = site.count(), crawler.seeds([site.url(healthy(0))])
    setting, options = OPTIONS[name]
    command = crawler.command("crawl", "resourceproxies", "-a", f"seeds={seeds}", *options)
    crawl = Running(command, environment(), crawler.folder, crawler.folder / "none.jsonl").wait()
    _refused(crawl, site, before, setting)
    assert not (crawler.folder / "good.jsonl").exists()


def test_a_feed_that_is_there_is_kept_where_the_crawl_is_refused(crawler: Crawler, site: RunningSite) -> None:
    feed = crawler.folder / "checks.jsonl"
    feed.write_text("yesterday's\n")
    command = crawler.command("crawl", "resourceproxies", "-O", feed.name, settings={"LINKCRAWL_CONTACT": None})
    _refused(Running(command, environment(), crawler.folder, crawler.folder / "none.jsonl").wait(), site, site.count())
    assert feed.read_text() == "yesterday's\n"


def test_a_spider_that_is_none(crawler: Crawler, site: RunningSite) -> None:
    running = Running(crawler.command("crawl", "links"), environment(), crawler.folder, crawler.folder / "none.jsonl")
    _refused(running.wait(), site, site.count(), "'links'", "resourceproxies")


def _no_database(crawler: Crawler) -> None:
    crawler.store_path.write_bytes(b"this is no database, whatever its name says\n" * 100)


def _folder(crawler: Crawler) -> None:
    crawler.store_path.mkdir()


def _newer(crawler: Crawler) -> None:
    assert crawler.run().status == 0
    connection = sqlite3.connect(crawler.store_path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()


@pytest.mark.parametrize("spoil", [_no_database, _folder, _newer])
def test_a_store_that_is_none(crawler: Crawler, site: RunningSite, spoil: Callable[[Crawler], None]) -> None:
    spoil(crawler)
    before, seeds = site.count(), crawler.seeds([site.url(healthy(0))])
    crawl = crawler.run("-a", f"seeds={seeds}")
    _refused(crawl, site, before, crawler.store_path.name, *(["9999"] if spoil is _newer else []))


def test_a_second_crawl_of_one_store(crawler: Crawler, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_site(tmp_path_factory.mktemp("site"), hosts=1) as site:
        seeds = crawler.seeds([site.url(healthy(0), f"/{number}") for number in range(60)])
        with crawler.running("-a", f"seeds={seeds}") as first:
            until(lambda: site.count() > 2, "the first crawl's requests")
            second = crawler.run("-a", f"seeds={seeds}")
            assert second.status == UNUSABLE, second.stderr
            assert len(second.stderr.splitlines()) == 1, second.stderr
            assert crawler.store_path.name in second.stderr
            assert str(first.process.pid) in second.stderr
            assert first.wait().status == 0
        assert len(site.requests()) == 61
