"""The demo's output in the README is one that today's demo and verdicts could print."""

from __future__ import annotations

import re
import sys

import pytest

from linkcrawl.check import verdict
from tests.docs.pages import ROOT, blocks, read

(OUTPUT,) = blocks(read("README.md"), "text")


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's modules as its own script sees them."""
    monkeypatch.syspath_prepend(str(ROOT / "demo"))
    for name in ("catalogue", "landscape"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_verdicts_are_those_of_the_table() -> None:
    results = OUTPUT.partition("What the hosts saw")[0]
    told = re.findall(r"^ ([A-Z]\w+) +([a-z]\w+) ", results, re.MULTILINE)
    assert len(told) >= 10
    for category, reason in told:
        assert verdict.judge(reason).category == category


@pytest.mark.usefixtures("demo")
def test_hosts_are_those_of_the_landscape() -> None:
    import landscape

    told = re.findall(r"^ ([\w-]+) {2,}(\S.*?) {2,}\d+ +([\d.]+) s", OUTPUT, re.MULTILINE)
    assert [(name, about) for name, about, _ in told] == [(host.name, host.about) for host in landscape.HOSTS]


@pytest.mark.usefixtures("demo")
def test_pauses_are_as_long_as_was_promised() -> None:
    import landscape

    promised = {host.name: 1.0 if "Crawl-delay: 1\n" in (host.robots or "") else 0.3 for host in landscape.HOSTS}
    told = re.findall(r"^ ([\w-]+) {2,}\S.*? {2,}\d+ +([\d.]+) s", OUTPUT, re.MULTILINE)
    assert {name for name, pause in told if float(pause) < promised[name]} == set()


@pytest.mark.usefixtures("demo")
def test_the_number_of_records_is_that_of_distinct_links() -> None:
    import catalogue

    urls = {row["url"] for row in catalogue.seeds(8000)} - {catalogue.ODDITIES[-1]}
    assert f" {len(urls)} records" in OUTPUT
