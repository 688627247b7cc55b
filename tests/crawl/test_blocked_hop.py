"""A link whose redirect leads to a blocked host: it was asked, so it has a record, also when the crawl ends at once."""

from __future__ import annotations

from tests.crawl.harness import Crawler
from tests.crawl.measures import by_host, pages
from tests.site.client import running_site


def test_a_redirect_to_a_blocked_host_has_its_record_at_the_end(crawler: Crawler) -> None:
    with running_site(crawler.folder) as site:
        place = site.place("redirect-cross-host")
        target = f"{place.other}:{place.ports.plain}"
        assert crawler.tell("hosts", "block", target, "--reason", "asked by mail").status == 0
        crawl = crawler.run("-a", f"seeds={crawler.seeds([place.url('/from'), f'http://{target}/its-own'])}")
        asked = {host: len(pages(requests)) for host, requests in by_host(site.requests()).items()}
    assert crawl.status == 0
    assert asked == {place.here: 1}
    (record,) = crawl.records
    assert (record["url"], record["category"], record["reason"]) == (place.url("/from"), "Undetermined", "host_blocked")
    assert [hop["status"] for hop in record["hops"]] == [302]
    books = crawler.books()
    assert (books.checked, books.never_checked, books.due) == (1, 1, 1)
