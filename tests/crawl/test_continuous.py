"""`-a continuous=1`: new seeds, links that come due and changed policies are taken up; idling costs next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

from attrs import evolve

from linkcrawl.items import Finished, LinkState
from linkcrawl.stores.opening import open_store
from tests.contract.mongodb import database, looking_at, server_url
from tests.crawl.harness import Crawler, Running, environment, until
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

INTERRUPTED = 130


def _seed(crawler: Crawler, urls: list[str], name: str) -> None:
    path = crawler.seeds(urls, name)
    done = subprocess.run(
        crawler.command("seed", str(path)), cwd=crawler.folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _processor_seconds(running: Running) -> float:
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _asked(site: RunningSite, urls: list[str]) -> bool:
    targets = {url.rpartition("/")[2] for url in urls}
    return targets <= {request.target.lstrip("/") for request in site.requests()}


def test_what_comes_later_is_taken_up_and_waiting_for_it_is_cheap(crawler: Crawler) -> None:
    policies = crawler.folder / "policies.toml"
    policies.write_text("")
    with running_site(crawler.folder, hosts=4) as site:
        first, second, third, fourth = (
            [site.url(healthy(host), f"/of-{host}-{i}") for i in range(3)] for host in range(4)
        )
        settings = {"LINKCRAWL_POLICIES": str(policies)}
        arguments = ("-a", "continuous=1", "-a", f"seeds={crawler.seeds(first, 'first.jsonl')}")
        with crawler.running(*arguments, settings=settings) as running:
            until(lambda: _asked(site, first), "the first seeds are asked")
            before, spent = time.monotonic(), _processor_seconds(running)
            time.sleep(5)
            idle = (_processor_seconds(running) - spent) / (time.monotonic() - before)
            assert idle < 0.1, f"idling takes {idle:.0%} of a processor"

            _seed(crawler, second, "second.jsonl")
            until(lambda: _asked(site, second), "seeds added by another process are asked")

            until(lambda: crawler.books().checked == len(first) + len(second), "their records are stored")
            with closing(open_store(crawler.store_url)) as store:
                asked = site.count()
                link_ids = [record.link_id for record in store.records()]
                due = time.time() + 3
                store.withdraw(link_ids, 0.0, "host_blocked", "made due by a test", due)
            until(lambda: site.count() >= asked + len(first) + len(second), "links that come due are asked")

            host = healthy(2).partition(":")[0]
            policies.write_text(f'[[policy]]\nname = "p"\nhosts = ["{host}", "{host}:*"]\npaused = true\n')
            until(lambda: "Policies read again" in running.stderr, "the policy file is read again")
            _seed(crawler, [*third, *fourth], "third.jsonl")
            until(lambda: _asked(site, fourth), "hosts that are not paused are asked")
            assert not _asked(site, third[:1])
            policies.write_text("")
            until(lambda: _asked(site, third), "a host that is no longer paused is asked")

            running.signal(signal.SIGINT)
            assert running.wait().status == INTERRUPTED
    books = crawler.books()
    assert books.never_checked == 0
    assert books.checked == 12


def test_new_documents_of_a_collection_are_taken_up(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=2) as site, database(server_url()) as url, looking_at(url) as seeds:
        first, second = ([site.url(healthy(host), f"/of-{host}-{i}") for i in range(3)] for host in range(2))
        seeds["seeds"].insert_many([{"url": each, "collection": "c"} for each in first])
        with crawler.running("-a", "continuous=1", "-a", f"seeds={url}/seeds") as running:
            until(lambda: _asked(site, first), "the documents that were there are asked")
            seeds["seeds"].insert_many([{"url": each, "expectedMimeType": "text/html"} for each in second])
            seeds["seeds"].insert_one({"collection": "no url"})
            until(lambda: _asked(site, second), "new documents are asked")
            until(lambda: "no url" in crawler.folder.joinpath("rejects.jsonl").read_text(), "a bad one is rejected")
            running.signal(signal.SIGINT)
            assert running.wait().status == INTERRUPTED
    assert crawler.books().links == 6


def test_old_history_is_pruned_when_a_crawl_ends(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        url = site.url(healthy(0), "/x")
        assert crawler.run("-a", f"seeds={crawler.seeds([url])}").status == 0
        day = 86400.0
        noon = (time.time() // day - 400) * day + day / 2
        with closing(open_store(crawler.store_url)) as store:
            (link,) = store.due(url.split("/")[2], 1e12, 10)
            (record,) = store.records()
            state = LinkState()
            old = [evolve(record, checked_at=noon + hour * 3600) for hour in range(3)]
            store.finish([Finished(record=each, state=state) for each in old])
            assert link.id == record.link_id
        ended = crawler.run(settings={"LINKCRAWL_HISTORY_DAYS": "365"})
        assert ended.status == 0
    assert "History pruned: 2 records removed" in ended.stderr
    assert len(crawler.kept()) == 2
