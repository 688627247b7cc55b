"""Every command on the report's page yields as many rows as the number that it stands behind, whatever names there are.

Commands are read by bash and filtered by what stands on this machine; `scrapy export` itself runs in this process.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from linkcrawl.items import Category
from linkcrawl.reports.make import make_report
from linkcrawl.reports.page import page
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import FOREVER, check, entry
from tests.unit.exports_kit import export
from tests.unit.report_kit import DAY, NOW, OUTCOMES, moved

#: Names that mean something to a glob, a shell, a regular expression, awk, JSON, HTML, or to a reader's eye.
NAMES = [
    *(None, "plain", "a*b", "axb", "a?b", "[a-z]", "b", "50% $HOME `id`", "it's", 'say "hi"', "back\\slash", "-x"),
    *("new\nline", "tab\there", "  two  spaces ", "<b>&amp;", "é", "e\u0301", "\u202egnp", "nul\0", "nul?", "null"),
    *("x" * 300, "x" * 299 + "y", "y" * 301, '"provider": "plain", "resource_type": ', "a | b", "9", "10"),
]
TYPES = ["text/html", "application/pdf", 'odd"type', "it's/odd\n", None]
#: What the seed's own fields and a server's words hold counts for nothing.
EXTRA = [{}, {"copy": {"provider": "plain", "resource_type": None, "extra": {}}}]
ERRORS = [
    None,
    '"mime_matches": false,',
    '"reason": "http_404", "confirmed": false, "status": 404,',
    '"next_check_at": "',
]

# A shell function in the place of the command: it tells its arguments, and gives the rows.
SHELL = r"""scrapy() { printf '%s\0' "$@" > "$1.arguments"; cat rows; }
"""


def tell(store: Store, links: int, chance: random.Random) -> None:
    """Links in odd collections, of odd providers; some never checked, some in a collection that came later."""
    of_host = {n: f"h{n % 7}.example" for n in range(links)}
    for _ in range(2):
        named: dict[str, Any] = {"record": "r", "resource_type": "Resource"}
        store.add(
            [
                entry(n, host, collection=chance.choice(NAMES), provider=chance.choice(NAMES), **named)
                if n % 3
                else entry(n, host, collection=chance.choice(NAMES), expected_mime=chance.choice(TYPES))
                for n, host in of_host.items()
            ]
        )
    store.add([entry(n, host, provider="plain", extra=chance.choice(EXTRA)) for n, host in of_host.items() if n % 4])
    for host in sorted(set(of_host.values())):
        for link in store.due(host, FOREVER, links):
            facts = dict(chance.choice(OUTCOMES)[1])
            if facts["category"] is Category.OK and chance.random() < 0.5:
                facts |= moved(link.url, link.url.replace("https://", "https://www."), 301)
            facts["mime_matches"] = link.expected_mime and link.expected_mime == "text/html"
            at = NOW - chance.uniform(1, 90) * DAY
            if chance.random() < 0.9:
                store.finish([check(link, at, at + 40 * DAY, error=chance.choice(ERRORS), **facts)])
    store.add([entry(n, host, collection="later") for n, host in of_host.items() if n % 5 == 0])


class Rows:
    """How many rows a command yields, read and filtered by bash; an export is made once."""

    def __init__(self, url: str, folder: Path):
        self._url, self._folder = url, folder
        self._exports: dict[tuple[str, ...], bytes] = {}

    def count(self, command: str) -> int:
        self._run(command, b"")
        arguments = (self._folder / "export.arguments").read_text().split("\0")[:-1]
        assert arguments[:3] == ["export", "-o", "-"]
        return self._run(command, self._exported(tuple(arguments[3:]))).count(b"\n")

    def _run(self, command: str, rows: bytes) -> bytes:
        (self._folder / "rows").write_bytes(rows)
        run = subprocess.run(["bash", "-c", SHELL + command], cwd=self._folder, capture_output=True, check=False)
        assert run.stderr == b""
        return run.stdout

    def _exported(self, arguments: tuple[str, ...]) -> bytes:
        if arguments not in self._exports:
            file = self._folder / "exported"
            assert export(self._url, "-o", file, *arguments) == 0
            self._exports[arguments] = file.read_bytes()
        return self._exports[arguments]


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/links.db"
    store = open_store(url)
    tell(store, 210, random.Random(11))
    store.close()
    return url


def commands(url: str) -> list[tuple[str, str]]:
    """The numbers that have an export behind them, and its command."""
    store = open_store(url)
    document = html.document_fromstring(page(make_report(store, NOW, 1.0)).decode())
    store.close()
    found = [(button.text_content(), button.get("data-command")) for button in document.xpath("//button[@class='n']")]
    return [(number, command) for number, command in found if command.startswith("scrapy export ")]


def test_every_command_yields_as_many_rows_as_its_number(url: str, tmp_path: Path) -> None:
    rows = Rows(url, tmp_path)
    told = commands(url)
    assert len(told) > 300
    yielded = {command: rows.count(command) for _, command in told}
    wrong = [(number, yielded[command], command) for number, command in told if yielded[command] != int(number)]
    assert wrong == []
