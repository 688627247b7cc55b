"""A host that has turned us away is tried again by single requests, where the operator wants that."""

from __future__ import annotations

from itertools import pairwise

from tests.crawl.harness import Crawler
from tests.crawl.measures import pages
from tests.site.client import running_site
from tests.site.manners import REFUSED, WELL, where

LINKS, PROBATION = 40, 1.5


def test_one_request_at_a_time_finds_out_that_a_host_has_relented(crawler: Crawler) -> None:
    settings = {"LINKCRAWL_PROBATION": str(PROBATION), "LINKCRAWL_PATIENCE": "20", "DOWNLOAD_DELAY": "0.05"}
    with running_site(crawler.folder, table="manners") as site:
        seeds = crawler.seeds([site.url(where("ban"), f"/{number}") for number in range(LINKS)])
        first = crawler.run("-a", f"seeds={seeds}", settings=settings)
        asked = pages(site.requests())
        again = crawler.run(settings=settings)
    assert first.status == again.status == 0
    turned = 8  # refusals until it is blocked
    probes = asked[WELL + turned - 1 : WELL + REFUSED + 1]
    assert len(probes) == REFUSED - turned + 2, "the last refusal before, and the first answer that is none"
    assert min(later.started - before.started for before, later in pairwise(probes)) >= PROBATION
    after = asked[WELL + REFUSED + 1 :]
    assert after, "it is open again"
    assert first.stderr.count("answers again after its probation") == 1
    kept = crawler.kept()
    assert {record["reason"] for record in kept} <= {"ok", "host_blocked"}
    assert {record["category"] for record in kept} <= {"Ok", "Undetermined"}
    books = crawler.books()
    assert (books.links, books.due) == (LINKS, 0)
