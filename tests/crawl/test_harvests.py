"""Harvests and crawls: what is retired while it waits in memory isn't asked any more, and a crawl that could not retire
what its seeds lack ends with status 2."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

from linkcrawl.stores.contract import Query
from linkcrawl.stores.opening import open_store
from tests.crawl.harness import Crawler, environment, until
from tests.site.client import running_site
from tests.site.crowds import healthy


def _harvest(crawler: Crawler, urls: list[str], name: str) -> Path:
    path = crawler.folder / name
    path.write_text("".join(json.dumps({"url": url, "collection": "A"}) + "\n" for url in urls))
    return path


def test_what_is_retired_beside_a_crawl_is_asked_no_more(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        urls = [site.url(healthy(0), f"/of-a-{number}") for number in range(20)]
        arguments = ("-a", f"seeds={_harvest(crawler, urls, 'all.jsonl')}")
        with crawler.running(*arguments, settings={"DOWNLOAD_DELAY": "1"}) as running:
            until(lambda: site.count() >= 3, "the first links are asked")
            less = _harvest(crawler, urls[:4], "less.jsonl")
            command = crawler.command("seed", str(less), "--complete", "--force")
            done = subprocess.run(command, cwd=crawler.folder, env=environment(), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert running.wait().status == 0
        asked = {request.target for request in site.requests()} - {"/robots.txt"}
    books = crawler.books()
    assert (books.links, books.due) == (20, 0)
    assert books.retired + books.active == 20
    with closing(open_store(crawler.store_url)) as store:
        recorded = {record.url for each in (False, True) for record in store.records(Query(retired=each))}
    assert len(recorded) == len(asked) < 15  # the rest of twenty seconds was not needed


def test_a_crawl_whose_seeds_are_half_a_harvest_checks_all_and_ends_with_2(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        urls = [site.url(healthy(0), f"/{number}") for number in range(4)]
        settings = {"DOWNLOAD_DELAY": "0.02"}
        whole, half = _harvest(crawler, urls, "whole.jsonl"), _harvest(crawler, urls[:2], "half.jsonl")
        assert crawler.run("-a", f"seeds={whole}", "-a", "complete=1", settings=settings).status == 0
        crawl = crawler.run("-a", f"seeds={half}", "-a", "complete=1", "-a", "recheck=1", settings=settings)
    assert crawl.status == 2
    assert "the harvest lacks 2 of its 4 links" in crawl.stderr
    books = crawler.books()
    assert (books.active, books.records) == (4, 8)
