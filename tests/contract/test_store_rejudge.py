"""Latest records that are judged again: `Store.judged_before` and `Store.rejudge`, and the command on both stores."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest
from attrs import evolve
from scrapy.settings import Settings

from linkcrawl.check import rejudge as judging
from linkcrawl.check.verdict import VERDICT_VERSION
from linkcrawl.commands.rejudge import Command
from linkcrawl.items import Category, DueLink, Finished, LinkState, Record, Rejudged
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, link, links, own_check
from tests.contract.processes import ROOT

DAY = 86_400.0
BROKEN = {"category": Category.BROKEN, "reason": "http_404", "status": 404, "confirmed": False}
SUSPECTED = LinkState(attempt=1, interval=DAY, hard_since=10.0, hard_count=1)


def latest(store: Store, n: int) -> Record:
    found = store.latest(key(n))
    assert found is not None
    return found


def judged(store: Store, n: int, state: LinkState | None = SUSPECTED) -> Rejudged:
    """The latest record of link n, judged again."""
    before = latest(store, n)
    now = evolve(before, category=Category.BROKEN, reason="http_404", confirmed=False, error="gone")
    now = evolve(now, attempt=1, wall="anubis", verdict_version=2)
    now = evolve(now, next_check_at=before.next_check_at if state is None else 777.0)
    return Rejudged(before=before, record=now, state=state)


def test_only_latest_records_of_older_tables_are_given_in_order(store: Store) -> None:
    store.add([entry(n, collection="C") for n in range(7)])
    store.add([entry(9, "b.example", provider="P")])
    store.finish([check(found, 10.0) for found in links(store)[:6]])
    store.finish([check(link(store, 9, "b.example"), 10.0, verdict_version=2)])
    store.finish([check(link(store, 1), 20.0, verdict_version=3)])
    store.finish([check(link(store, 2), 20.0, **BROKEN)])
    pages, after = [], None
    while found := store.judged_before(3, 2, after):
        assert len(found) <= 2
        after = found[-1][0].id
        pages += found
    assert [record.url for _, record in pages] == [f"https://{name}" for name in
        ("a.example/0", "a.example/2", "a.example/3", "a.example/4", "a.example/5", "b.example/9")]  # fmt: skip
    for of, record in pages:
        assert of == next(found for found in links(store, of.host) if found.id == of.id)
        assert record == next(found for found in store.records() if found.link_id == of.id)
    assert [record.url[-1] for _, record in store.judged_before(2, 99)] == ["0", "2", "3", "4", "5"]
    assert store.judged_before(1, 99) == []


def test_a_judgement_takes_the_place_of_the_one_before(store: Store) -> None:
    store.add([entry(n, collection="C") for n in range(3)])
    store.finish([check(found, 9.0) for found in links(store)])
    store.finish([check(found, 10.0) for found in links(store)])
    one, two = judged(store, 1), judged(store, 2, None)
    for _ in range(2):
        assert store.rejudge([one, two]) == frozenset()
        assert (latest(store, 1), latest(store, 2)) == (one.record, two.record)
        assert sorted(record.checked_at for record in store.records(Query(history=True))) == [9.0] * 3 + [10.0] * 3
        assert {record.reason for record in store.records(Query(history=True, until=10.0))} == {"ok"}
        found = {int(each.url[-1]): each for each in links(store)}
        assert (found[1].state, found[1].next_check_at, found[1].last_category) == (SUSPECTED, 777.0, Category.BROKEN)
        assert (found[2].state, found[2].next_check_at) == (LinkState(), 604_810.0)
        assert found[1].last_checked_at == found[2].last_checked_at == 10.0
        tallies = {tally.reason: tally.count for tally in store.summary(11.0).collections[0].tallies}
        assert tallies == {"ok": 1, "http_404": 2}
        assert [record.url[-1] for _, record in store.judged_before(2, 99)] == ["0"]
    store.finish([own_check(link(store, 1), 20.0)])
    assert latest(store, 1).reason == "ok"


def test_nothing_that_came_meanwhile_is_undone(store: Store) -> None:
    store.add([entry(n) for n in range(4)])
    store.finish([check(found, 10.0) for found in links(store)])
    given_out = {n: link(store, n) for n in range(4)}
    late = [judged(store, n) for n in range(4)]
    store.finish([own_check(given_out[0], 20.0)])
    store.withdraw([given_out[1].id], 5.0, "host_blocked", "why", 15.0)
    store.rejudge([evolve(late[2], record=evolve(late[2].record, reason="http_410", verdict_version=3))])
    stood = [latest(store, n) for n in range(3)], [link(store, n) for n in range(3)]
    assert store.rejudge(late) == {given_out[n].id for n in (0, 1, 2)}
    assert ([latest(store, n) for n in range(3)], [link(store, n) for n in range(3)]) == stood
    assert latest(store, 3) == late[3].record


def test_a_check_that_was_begun_before_is_stored_after(store: Store) -> None:
    store.add([entry(1)])
    store.finish([check(link(store, 1), 10.0)])
    begun = link(store, 1)
    store.rejudge([judged(store, 1)])
    assert store.finish([own_check(begun, 20.0, state=LinkState(interval=5.0))]) == frozenset()
    assert (latest(store, 1).checked_at, link(store, 1).state) == (20.0, LinkState(interval=5.0))


# -- the command ------------------------------------------------------------------------------------------------


def rejudge(url: str, *arguments: str) -> int:
    """`scrapy rejudge` with these arguments; its exit status."""
    command, parser = Command(), argparse.ArgumentParser()
    command.settings = Settings()
    command.settings.setmodule("linkcrawl.settings")
    command.settings.set("LINKCRAWL_STORE", url)
    command.add_options(parser)
    command.run([], parser.parse_args(list(arguments)))
    return int(command.exitcode)


def fill(store: Store) -> None:
    """Links by number: 0 to 4 Ok as they were, 5 and 6 broken by a word that is not any more, 7 withdrawn."""
    store.add([entry(n) for n in range(8)])
    found = links(store)
    store.finish([check(one, 10.0) for one in found[:5]])
    old = {"category": Category.BROKEN, "reason": "tls_expired", "status": None, "confirmed": False, "attempt": 1}
    store.finish([Finished(record=check(one, 10.0, DAY, **old).record, state=SUSPECTED) for one in found[5:7]])
    store.finish([check(found[7], 10.0)])
    store.withdraw([found[7].id], 0.0, "host_blocked", "why", 20.0)


def is_judged(store: Store) -> bool:
    """Whether all of it is judged; each record and its link tell the same, whatever happened."""
    versions = set()
    for n in range(8):
        record, of = latest(store, n), link(store, n)
        assert (of.last_category, of.next_check_at) == (record.category, record.next_check_at)
        versions.add(record.verdict_version)
        if n in (5, 6):
            is_done = record.verdict_version == VERDICT_VERSION
            assert (record.category is Category.UNDETERMINED) == is_done == (of.state.hard_count == 0)
        else:
            assert record.reason == ("host_blocked" if n == 7 else "ok")
    return versions == {VERDICT_VERSION}


CHANGE = "2      Broken tls_expired (suspected)  Undetermined tls_expired\n"


def test_it_tells_what_changes_and_changes_it_once(
    url: str, opened: Callable[[str], Store], capsys: pytest.CaptureFixture[str]
) -> None:
    store = opened(url)
    fill(store)
    assert rejudge(url, "--dry-run") == 0
    told = capsys.readouterr().out
    assert CHANGE in told
    assert told.endswith("8 latest records of older tables: 2 would be judged otherwise, 6 as before\n")
    assert not is_judged(store)
    assert rejudge(url) == 0
    told = capsys.readouterr().out
    assert CHANGE in told
    assert told.endswith("8 latest records of older tables: 2 judged otherwise, 6 as before\n")
    assert is_judged(store)
    stood = list(store.records()), links(store)
    assert rejudge(url) == 0
    assert capsys.readouterr().out == "0 latest records of older tables: 0 judged otherwise, 0 as before\n"
    assert (list(store.records()), links(store)) == stood


def test_beside_a_crawl_it_leaves_what_the_crawl_has_done(
    url: str, opened: Callable[[str], Store], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(url)
    store.claim()
    fill(store)
    plain = judging.rejudge

    def crawled_meanwhile(of: DueLink, record: Record, *rest: object) -> Rejudged:
        if of.url.endswith("/5"):
            store.finish([own_check(of, 30.0, verdict_version=VERDICT_VERSION)])
        return plain(of, record, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("linkcrawl.commands.rejudge.rejudge", crawled_meanwhile)
    assert rejudge(url) == 0
    assert "7 latest records of older tables: 1 judged otherwise, 6 as before; 1 were changed by a crawl" in (
        capsys.readouterr().out
    )
    assert (latest(store, 5).checked_at, latest(store, 5).category) == (30.0, Category.OK)


def test_without_a_store_it_is_status_2_and_makes_none(
    new_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = new_url()
    for arguments in ([], ["--dry-run"]):
        assert rejudge(url, *arguments) == 2
        assert "there is no store" in capsys.readouterr().err


DYING = """
import os, signal, sys
import pymongo.monitoring
from linkcrawl.commands import rejudge
from linkcrawl.stores.sqlite import schema
url, dies_at = sys.argv[1], int(sys.argv[2])
rejudge.BATCH = 2
count = 0
def step(*_):
    global count
    count += 1
    if count == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
class Listener(pymongo.monitoring.CommandListener):
    def started(self, event): step()
    def succeeded(self, event): step()
    def failed(self, event): step()
pymongo.monitoring.register(Listener())
connect = schema.connect
def traced(*args, **kwargs):
    db = connect(*args, **kwargs)
    db.set_trace_callback(step)
    return db
schema.connect = traced
from tests.contract.test_store_rejudge import rejudge as run
assert run(url) == 0
print(count, flush=True)
"""


def dying(url: str, dies_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DYING, url, str(dies_at)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_killed_in_the_middle_the_next_run_does_the_rest(
    new_url: Callable[[], str], opened: Callable[[str], Store]
) -> None:
    url = new_url()
    with closing(open_store(url)) as store:
        fill(store)
    rehearsal = dying(url, 0)
    assert rehearsal.returncode == 0, rehearsal.stderr
    steps = int(rehearsal.stdout.split()[-1])
    for part in (0.3, 0.4, 0.5, 0.6, 0.7):
        url = new_url()
        with closing(open_store(url)) as store:
            fill(store)
        assert dying(url, int(steps * part)).returncode == -signal.SIGKILL, part
        with closing(open_store(url)) as store:  # which completes what the dead process began
            assert not is_judged(store), part
        assert rejudge(url) == 0
        assert is_judged(opened(url)), part
