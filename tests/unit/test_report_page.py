"""The report as a page: complete without a network, bounded, and whatever strangers wrote stays text."""

from __future__ import annotations

import argparse
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from lxml import html
from scrapy.settings import Settings

from linkcrawl.commands.export import Command
from linkcrawl.items import Act, Category, HostMemory, Order
from linkcrawl.reports import commands
from linkcrawl.reports.make import make_report
from linkcrawl.reports.page import ROWS, page
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import FOREVER, check, entry, link
from tests.unit.report_kit import NOW, fill, moved

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></script><svg onload=alert(1)>",
    "javascript:alert(1)",
    "'; alert(1); //",
    "&lt;b&gt; &amp; ]]> <!-- -->",
    "\x00\x07\x1b[31m\ud800\ufffe",
    "\u202egnp.exe",
    "x" * 5000,
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/links.db")
    yield opened
    opened.close()


def shown(store: Store) -> html.HtmlElement:
    return html.document_fromstring(page(make_report(store, NOW, 1.0)).decode())


def test_an_empty_store_has_a_page(store: Store) -> None:
    assert "The books balance" in shown(store).text_content()


def test_it_needs_nothing_from_outside(store: Store) -> None:
    fill(store, 300, random.Random(1))
    document = shown(store)
    assert not document.xpath("//link | //img | //iframe | //object | //base | //form | //script[@src]")
    assert not document.xpath("//@*[starts-with(name(), 'on')]")
    assert {target for target in document.xpath("//@href") if not target.startswith("https://")} == {"#moves"}
    assert "url(" not in "".join(document.xpath("//style/text() | //@style"))
    policy = document.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")[0]
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def stranger(store: Store, n: int, text: str) -> None:
    """A link that has this text wherever a stranger can put one."""
    host, url = f"h{text}.example", f"http://h{n}.example/{text}" if n % 2 else text
    store.add([entry(n, host, collection=text, provider=text, expected_mime=text)])
    robots = {"category": Category.BLOCKED_BY_ROBOTS, "reason": "robots_disallowed"}
    facts = moved(url, f"http://new{n}.example/{text}", 301) if n % 2 else robots
    found = next(
        one for line in store.backlog(FOREVER) for one in store.due(line.host, FOREVER, 1) if not one.last_category
    )
    store.finish([check(evolve(found, url=url), NOW - n - 1, mime=text, mime_matches=False, **facts)])
    store.give_order(Order(host=text[:300], act=Act.BLOCK, at=NOW, reason=text))
    store.remember([HostMemory(host=text[:300])])


def test_what_strangers_wrote_stays_text(store: Store) -> None:
    for n, text in enumerate(HOSTILE):
        stranger(store, n, text)
    document = shown(store)
    assert len(document.xpath("//script")) == 1
    assert not document.xpath("//*[@onerror or @onload] | //img | //b")
    assert all(re.match("https?://|#moves$", target, re.IGNORECASE) for target in document.xpath("//a/@href"))
    text = document.text_content()
    for written in HOSTILE[:6]:
        assert written in text
    assert "x" * 301 not in text
    assert not re.search("[\x00-\x08\x0b-\x1f]", text)


def test_a_page_is_bounded_however_many_collections_there_are(store: Store) -> None:
    many = 600
    store.add([entry(n, f"h{n}.example", collection=f"C{n:04d}", provider=f"P{n:04d}") for n in range(many)])
    store.finish(
        [check(link(store, n, f"h{n}.example"), NOW - 9, **moved("", "https://b.example", 301)) for n in range(many)]
    )
    document = shown(store)
    for table in ("collections", "providers"):
        assert len(document.xpath(f"//table[@id='{table}']/tbody/tr")) == ROWS
    assert len(document.xpath("//table[@id='slowest']/tbody/tr")) == 100
    assert f"The {ROWS} largest of {many}" in document.text_content()


def test_numbers_are_sorted_by_their_value(store: Store) -> None:
    fill(store, 300, random.Random(1))
    cells = shown(store).xpath("//table//td[@class='num']")
    assert len(cells) > 500
    for cell in cells:
        text = cell.text_content().replace(",", "").removesuffix(" %")
        assert float(cell.get("data-value")) == pytest.approx(-1 if text == "\u2013" else float(text), abs=1e-9)


def test_every_number_of_links_tells_its_command(store: Store) -> None:
    fill(store, 300, random.Random(1))
    row = next(iter(shown(store).xpath("//table[@id='collections']/tbody/tr")))
    with_rows = row.xpath("./td/button/@data-command")
    assert len(with_rows) >= 8
    assert all(command.startswith("scrapy export -o - ") and "Corpora of Utrecht 1" in command for command in with_rows)


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("plain", "plain"),
        ("50 % of *", "50 % of ?"),
        ("what?", "what?"),
        ("a\nb\x00", "a?b?"),
        ("\u202eabc", "?abc"),
        ("[a-z]", "[a-z]"),
        ("x" * 300, "x" * 300),
        ("x" * 301, None),
    ],
)
def test_a_collections_name_as_a_glob(name: str, glob: str | None) -> None:
    assert commands.glob_of(name) == glob


def test_a_collections_name_is_never_taken_for_an_option() -> None:
    words = shlex.split(commands.export(collection="-->"))
    command, parser = Command(), argparse.ArgumentParser()
    command.settings = Settings()
    command.add_options(parser)
    assert words[:2] == ["scrapy", "export"]
    assert parser.parse_args(words[2:]).collection == "-->"
