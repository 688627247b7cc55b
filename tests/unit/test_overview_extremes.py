"""What `scrapy hosts` says where a robots.txt or a policy asks for centuries: one host must not spoil the list."""

from __future__ import annotations

import json

import pytest

from linkcrawl.cli.terminal import columns, facts
from linkcrawl.items import iso
from linkcrawl.status.hosts import HostStatusReport
from linkcrawl.status.render import HEAD, host_facts, host_row, line
from tests.unit.frontier_kit import T0
from tests.unit.test_overview import HOST, RULE, memory, outlook

END_OF_TIME = "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "asked",
    [
        {"robots": "Crawl-delay: 99999999"},
        {"robots": f"Crawl-delay: {'9' * 300}"},
        {"robots": "Request-rate: 1/99999999999d"},
        {"rules": f"{RULE}delay = 1e9"},
        {"rules": f'{RULE}crawl_delay = 1e9\nagreement = "by mail"'},
        {"rules": f"{RULE}max_per_day = 1"},
    ],
)
def test_a_delay_of_centuries_is_told(asked: dict[str, str]) -> None:
    overview = HostStatusReport(
        outlook(memory(last_end=T0, counts={"day": (int(T0 // 86400), 1)}), due={HOST: 5_000_000}, **asked)
    )
    (view,) = overview.hosts()
    row = json.loads(json.dumps(host_row(overview, HOST)))
    assert row["eta"] == END_OF_TIME
    assert (view.wake or 0.0) > T0
    assert row["wake"] == iso(view.wake or 0.0)
    assert END_OF_TIME in facts(host_facts(overview, HOST))
    assert max(map(len, columns(HEAD, [line(view, T0)]).splitlines())) < 300


@pytest.mark.parametrize("moment", [253402300799.9996, 1e15, 1e300, float("inf")])
def test_a_time_beyond_four_digits_of_a_year_is_the_last(moment: float) -> None:
    assert iso(moment) == END_OF_TIME
