"""A MongoDB server that goes away while hosts have more links in the store than are ready: they are fetched later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.mongodb import Mongod, mongod
from tests.crawl.harness import until
from tests.crawl.test_mongo_crawl import MongoCrawler
from tests.site.client import running_site
from tests.site.crowds import healthy

HOSTS, LINKS = 4, 250
SETTINGS = {"DOWNLOAD_DELAY": "0.03", "AUTOTHROTTLE_MAX_DELAY": "0"}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    with mongod(tmp_path_factory.mktemp("mongod")) as running:
        yield running


@pytest.fixture
def crawler(tmp_path: Path, server: Mongod) -> MongoCrawler:
    return MongoCrawler(folder=tmp_path, url=f"{server.url}/crawl?serverSelectionTimeoutMS=500", settings=SETTINGS)


def test_links_that_were_not_fetched_yet_are_asked_when_it_is_back(crawler: MongoCrawler, server: Mongod) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        with crawler.running("-a", f"seeds={crawler.seeds(urls)}") as running:
            until(lambda: site.count() >= 60 or running.ended, "some answers")
            server.kill()
            until(lambda: "store is lost" in running.stderr or running.ended, "a line about it")
            server.start()
            done = running.wait()
    assert done.status == 0, done.stderr[-2000:]
    assert Counter(record["url"] for record in done.records) == Counter(urls)
    assert done.stderr.count("The store is lost") == 1
    assert done.stderr.count("The store is back") == 1
    assert "Traceback" not in done.stderr


def test_a_server_that_stays_away_is_told_in_lines(crawler: MongoCrawler, server: Mongod) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        settings = {"LINKCRAWL_PATIENCE": "3"}
        with crawler.running("-a", f"seeds={crawler.seeds(urls)}", settings=settings) as running:
            until(lambda: site.count() >= 60 or running.ended, "some answers")
            server.kill()
            lost = running.wait()
    assert lost.status == 1, lost.stderr[-2000:]
    assert lost.stderr.count("not back in LINKCRAWL_PATIENCE") == 1
    assert "Traceback" not in lost.stderr
    assert "Warning" not in lost.stderr
