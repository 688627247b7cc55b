"""Scrapy's wiring: what would let requests past the gates or lose records is refused, what adds to ours is not."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from linkcrawl import settings as ours
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.network.handler import CheckDownloadHandler
from linkcrawl.pipelines.records import RecordsPipeline
from linkcrawl.wiring import TABLES, check_wiring


class Added:
    """A component of the operator's."""


class OtherScheduler(Scheduler):
    """One made of ours."""


class OtherHandler(CheckDownloadHandler):
    """One made of ours."""


def wired(**changes: Any) -> Settings:
    found = Settings()
    found.setmodule(ours, priority="project")
    found.setdict(changes, priority="cmdline")
    return found


REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
WELL: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a middleware more": {"DOWNLOADER_MIDDLEWARES": {**ours.DOWNLOADER_MIDDLEWARES, f"{__name__}.Added": 50}},
    "a class as a middleware": {"DOWNLOADER_MIDDLEWARES": {**ours.DOWNLOADER_MIDDLEWARES, Added: 50}},
    "a pipeline more": {"ITEM_PIPELINES": {**ours.ITEM_PIPELINES, f"{__name__}.Added": 50}},
    "our pipeline as a class": {"ITEM_PIPELINES": {RecordsPipeline: 10}},
    "another place": {"ITEM_PIPELINES": {"linkcrawl.pipelines.records.RecordsPipeline": 0}},
    "tables of a command line": {"ITEM_PIPELINES": '{"linkcrawl.pipelines.records.RecordsPipeline": 1}'},
    "a scheduler made of ours": {"SCHEDULER": OtherScheduler},
    "a handler made of ours": {"DOWNLOAD_HANDLERS": {**ours.DOWNLOAD_HANDLERS, "https": OtherHandler}},
    "no reactor": {"TWISTED_REACTOR_ENABLED": False, "TWISTED_REACTOR": ""},
    "a table of no matter": {"SPIDER_MIDDLEWARES": {}},
}


@pytest.mark.parametrize("changes", WELL.values(), ids=WELL)
def test_what_adds_to_it_is_taken(changes: dict[str, Any]) -> None:
    check_wiring(wired(**changes))


ILL: dict[str, Any] = {
    "SCHEDULER": ["scrapy.core.scheduler.Scheduler", "no.Such", "x", None, Added, len],
    "DOWNLOADER": ["scrapy.core.downloader.Downloader", "no.Such"],
    "TWISTED_REACTOR": ["", None, "twisted.internet.selectreactor.SelectReactor"],
    "DOWNLOADER_MIDDLEWARES": [{}, "{}", {**ours.DOWNLOADER_MIDDLEWARES, "no.Such": 50}],
    "DOWNLOAD_HANDLERS": [
        {},
        {**ours.DOWNLOAD_HANDLERS, "https": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"},
        {**ours.DOWNLOAD_HANDLERS, "http": "no.Such"},
        {**ours.DOWNLOAD_HANDLERS, "http": None},
    ],
    "ITEM_PIPELINES": [{}, {"no.Such": 1}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ILL.items() for value in values])
def test_what_breaks_it_is_one_line(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}: .* would work$"):
        check_wiring(wired(**{name: value}))


EACH = [(name, component) for name in TABLES for component in getattr(ours, name)]


@pytest.mark.parametrize(("name", "component"), EACH)
def test_each_component_counts(name: str, component: str) -> None:
    table = dict(getattr(ours, name))
    table[component] = 500 if table[component] is None else None
    with pytest.raises(ConfigError, match=rf"^{name}: {component} "):
        check_wiring(wired(**{name: table}))
