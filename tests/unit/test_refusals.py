"""Hosts that turn us away: counted by wall and host, and written to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from linkcrawl import urls
from linkcrawl.audit.log import AuditEntry
from linkcrawl.audit.pace import HostPace, pace_at
from linkcrawl.commands import hosts
from linkcrawl.items import Category, HostMemory
from linkcrawl.reports.make import make_report
from linkcrawl.reports.page import page
from linkcrawl.status.letter import Letter, write_letter
from linkcrawl.status.refusals import (
    Refusal,
    WallCount,
    WalledHost,
    refusals_of,
    walls_by_host,
    walls_by_product,
)
from linkcrawl.status.render import walls_text
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, link
from tests.unit.frontier_kit import T0, config
from tests.unit.test_audit_command import run

DAY = 86400.0
ANUBIS: dict[str, Any] = {"category": Category.UNDETERMINED, "reason": "bot_challenge", "wall": "anubis"}
UNKNOWN_WALL: dict[str, Any] = {**ANUBIS, "wall": None}
FORBIDDEN: dict[str, Any] = {"category": Category.RESTRICTED, "reason": "http_403", "status": 403}


def fill(store: Store) -> None:
    """Host a: five links, of which Anubis keeps two of C and one of D from us, and 403 one; one was let in since. The
    third is a link of a resolver that leads to a. Host b: a wall without a name."""
    store.add([entry(n, "a.example", collection=name) for n, name in ((1, "C"), (2, "C"), (4, "D"), (5, "D"))])
    store.add([entry(3, "doi.example", collection="D"), entry(6, "b.example", collection="C")])
    a, at_a = "a.example", {"final_url": "https://a.example/x"}
    store.finish([check(link(store, n, a), T0 - 9 * DAY + n, **ANUBIS) for n in (1, 2, 5)])
    store.finish([check(link(store, 3, "doi.example"), T0 - DAY, **ANUBIS | at_a)])
    store.finish([check(link(store, 4, a), T0 - 2 * DAY, **FORBIDDEN)])
    store.finish([check(link(store, 1, a), T0 - DAY + 1, **ANUBIS), check(link(store, 5, a), T0 - DAY)])
    store.finish([check(link(store, 6, "b.example"), T0 - DAY, **UNKNOWN_WALL)])


@pytest.mark.parametrize(
    "url",
    ["HTTP://A.Example?x", "https://a.example./x", "http://[::1]:81/x", "http://[::1]", "https://a.example.:8443/"],
)
def test_a_host_is_found_however_its_url_is_written(tmp_path: Path, url: str) -> None:
    target = urls.read(url)
    assert isinstance(target, urls.Target)
    with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as store:
        store.add([entry(1, "a.example")])
        store.finish([check(link(store, 1, "a.example"), T0, **FORBIDDEN, final_url=target.url)])
        assert [refusal.links for refusal in refusals_of(store, target.host)] == [1]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as opened:
        fill(opened)
        yield opened


def test_walls_are_counted_at_the_host_that_shows_them(store: Store) -> None:
    walls = walls_by_host(store)
    assert walls == {"a.example": {"anubis": 3}, "b.example": {"unnamed": 1}}
    assert walls_by_product(walls) == (
        WallCount(wall="anubis", links=3, host_count=1, hosts=(WalledHost(host="a.example", links=3),)),
        WallCount(wall="unnamed", links=1, host_count=1, hosts=(WalledHost(host="b.example", links=1),)),
    )
    assert walls_text({"unnamed": 3, "anubis": 1200, "vercel": 3}) == "anubis 1,200, unnamed 3, vercel 3"


def test_the_refusals_of_a_host(store: Store) -> None:
    assert refusals_of(store, "a.example") == (
        Refusal(
            reason="bot_challenge",
            status=200,
            wall="anubis",
            links=3,
            collections=(("C", 2), ("D", 1)),
            first=T0 - 9 * DAY + 1,
            last=T0 - DAY + 1,
        ),
        Refusal(
            reason="http_403",
            status=403,
            wall=None,
            links=1,
            collections=(("D", 1),),
            first=T0 - 2 * DAY,
            last=T0 - 2 * DAY,
        ),
    )
    assert refusals_of(store, "doi.example") == ()


def test_the_report_counts_walls(store: Store) -> None:
    made = make_report(store, T0, 1.0)
    assert [(wall.wall, wall.links) for wall in made.walls] == [("anubis", 3), ("unnamed", 1)]
    assert json.loads(json.dumps(made.row()))["walls"][0] == {
        "wall": "anubis",
        "links": 3,
        "host_count": 1,
        "hosts": [{"host": "a.example", "links": 3}],
    }
    assert b"scrapy hosts letter a.example" in page(made)


def entries(host: str, *times: tuple[float, float]) -> list[AuditEntry]:
    return [AuditEntry(sent, ended, host, host, 1.0, "x", (), "HEAD", 200) for sent, ended in times]


def test_the_pace_at_a_host() -> None:
    told = [*entries("b", (T0, T0 + 9)), *entries("a", (T0 + 5, T0 + 6), (T0, T0 + 1.5), (T0 + 2 * DAY, T0 + 2 * DAY))]
    assert pace_at("a", told) == HostPace(
        requests=3, first=T0, last=T0 + 2 * DAY, busiest_day=2, shortest_gap=pytest.approx(3.5)
    )
    assert pace_at("b", told) == HostPace(requests=1, first=T0, last=T0, busiest_day=1, shortest_gap=None)
    assert pace_at("c", told) is None


def letter(*refusals: Refusal, contact: str = "https://example.org/linkcheck", pace: HostPace | None = None) -> Letter:
    given = config(LINKCRAWL_CONTACT=contact)
    return write_letter(given, "a.example", refusals, delay=8.5, origin="answer time", pace=pace)


def refusal(wall: str | None = "anubis", reason: str = "bot_challenge", **more: Any) -> Refusal:
    facts: dict[str, Any] = {"status": 200, "links": 3, "collections": (("C", 3),), "first": T0 - 9 * DAY, "last": T0}
    return Refusal(reason=reason, wall=wall, **facts | more)


def test_the_letter_says_what_happened_and_how_we_ask() -> None:
    pace = HostPace(requests=1234, first=T0 - 30 * DAY, last=T0, busiest_day=99, shortest_gap=8.52)
    forbidden = refusal(None, "http_403", status=403, links=2, collections=(("D", 2), ("C", 1)))
    text = letter(refusal(), forbidden, pace=pace).text()
    assert text.startswith("Subject: Links to a.example in a metadata catalogue: our link checker is turned away\n\n")
    for said in (
        "5 of them lead to your server, which has turned us away since 2026-12-26",
        "C (4), D (2)",
        "a challenge of anubis: status 200, 3 links, first on 2026-12-26, last on 2027-01-04",
        "The server does not give us the resource: status 403, 2 links",
        "8.5 s from the end of your answer to our next request (answer time)",
        "1,234 requests from 2026-12-05 to 2027-01-04, at most 99 on one day, never sooner than 8.52 s after an answer",
        "User-Agent: linkcrawl/",
        "https://example.org/linkcheck",
    ):
        assert said in " ".join(text.split())
    assert text == "\n".join(line for line in text.split("\n") if line.isprintable())


def test_many_collections_are_not_all_named() -> None:
    text = letter(refusal(collections=tuple((f"C{n}", 9 - n) for n in range(8)))).text()
    assert "C4 (5) and 3 more collections" in text
    assert "C5" not in text


def test_names_of_strangers_stay_on_their_line() -> None:
    assert "C\\nSubject: x" in letter(refusal(collections=(("C\nSubject: x", 1),))).text()


AGENT = "linkcrawl/0.1.0 (+https://example.org/linkcheck)"
OTHERS = [
    "linkcrawl/0.1.0 (+https://evil.example/)",
    f"Mozilla/5.0 {AGENT}",
    "linkcrawl/x (+https://example.org/linkcheck)",
]


@pytest.mark.parametrize(
    ("walls", "titles"),
    [
        (["anubis"], ["Anubis"]),
        (["cloudflare"], ["Cloudflare"]),
        (["turnstile", "anubis"], ["Anubis", "Cloudflare"]),
        (["datadome"], ["nginx"]),
        (["anubis", "datadome"], ["Anubis", "nginx"]),
        ([None], ["nginx"]),
    ],
)
def test_the_rule_fits_the_wall(walls: list[str | None], titles: list[str]) -> None:
    rules = letter(*map(refusal, walls)).rules()
    assert [title.split(",")[0] for title, _ in rules] == titles


def test_the_rule_for_anubis_is_a_policy_that_lets_us_and_only_us_in() -> None:
    ((_, rule),) = letter(refusal("anubis")).rules()
    (bot,) = yaml.safe_load(rule)
    assert (bot["name"], bot["action"]) == ("linkcrawl", "ALLOW")
    assert re.search(bot["user_agent_regex"], AGENT)
    assert not any(re.search(bot["user_agent_regex"], other) for other in OTHERS)


def test_the_rule_for_cloudflare() -> None:
    ((_, rule),) = letter(refusal("cloudflare")).rules()
    assert rule == (
        '(starts_with(http.user_agent, "linkcrawl/") and http.user_agent contains "https://example.org/linkcheck")'
    )


def test_the_rule_for_nginx() -> None:
    ((_, rule),) = letter(refusal(None, "rate_limited", status=429)).rules()
    (pattern,) = re.findall(r'"~(.*)" 1;', rule)
    assert re.search(pattern, AGENT)
    assert not any(re.search(pattern, other) for other in OTHERS)


def test_without_a_contact_the_letter_says_what_is_missing() -> None:
    given = config(LINKCRAWL_CONTACT="ops@example.org")
    told = write_letter(given, "a.example", (refusal(),), delay=1.0, origin="x", pace=None)
    assert told.text().endswith("Kind regards,\nops@example.org")
    with pytest.raises(ValueError, match="turns nothing of ours away"):
        write_letter(given, "a.example", (), delay=1.0, origin="x", pace=None)


def test_the_command(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audit.jsonl").write_text(
        "".join(f"{one.text()}\n" for one in entries("a.example", (T0, T0), (T0 + 9, T0 + 9)))
    )
    assert run(hosts, tmp_path, "letter", "a.example", LINKCRAWL_CONTACT="mailto:ops@example.org") == 0
    text = capsys.readouterr().out
    assert "Dear administrator of a.example," in text
    assert "2 requests from 2027-01-04" in text
    assert run(hosts, tmp_path, "letter", "https://A.example/x", "--format", "json") == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["walls"], row["links"], row["pace"]["requests"]) == (["anubis"], 4, 2)
    assert "LINKCRAWL_CONTACT is not set" in row["text"]


@pytest.mark.parametrize(
    ("host", "said"), [("nobody.example", "is not known"), ("doi.example", "turns nothing of ours away")]
)
def test_no_letter_where_there_is_nothing_to_write(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str], host: str, said: str
) -> None:
    store.remember([HostMemory(host="doi.example", last_end=T0)])
    assert run(hosts, tmp_path, "letter", host) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(rf"linkcrawl: scrapy hosts letter: {re.escape(host)} {said}[^\n]*\n", told.err)


def test_an_audit_log_that_is_none_is_told(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audit.jsonl").write_text("what\nwhat\n")
    assert run(hosts, tmp_path, "letter", "a.example") == 2
    assert "LINKCRAWL_AUDIT: " in capsys.readouterr().err


def test_hosts_shows_walls(tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(hosts, tmp_path, "show", "a.example") == 0
    assert re.search(r"^walls +anubis 3$", capsys.readouterr().out, re.MULTILINE)
    assert run(hosts, tmp_path, "show", "a.example", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["walls"] == {"anubis": 3}
    assert run(hosts, tmp_path, "list", "--format", "json") == 0
    assert {row["host"]: row["walls"] for row in json.loads(capsys.readouterr().out)}.get("a.example") == {"anubis": 3}
    assert run(hosts, tmp_path) == 0
    assert "anubis 3" in capsys.readouterr().out
