"""What `scrapy hosts` says where a robots.txt or a policy asks for centuries: one host must not spoil the list."""

from __future__ import annotations

import json

import pytest

from linkcrawl.cli.terminal import name_list, table
from linkcrawl.items import iso
from linkcrawl.status.hosts import HostStatusReport
from linkcrawl.status.render import HOST_COLUMNS, host_facts, host_line
from tests.unit.frontier_kit import T0
from tests.unit.test_host_status import HOST, RULE, memory, snapshot

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
    report = HostStatusReport(
        snapshot(memory(last_end=T0, counts={"day": (int(T0 // 86400), 1)}), due={HOST: 5_000_000}, **asked)
    )
    (status,) = report.hosts()
    row = json.loads(json.dumps(report.details(HOST).row()))
    assert row["eta"] == END_OF_TIME
    assert (status.wake or 0.0) > T0
    assert row["wake"] == iso(status.wake or 0.0)
    assert END_OF_TIME in name_list(host_facts(report.details(HOST), T0))
    assert max(map(len, table(HOST_COLUMNS, [host_line(status, T0)]).splitlines())) < 300


@pytest.mark.parametrize("moment", [253402300799.9996, 1e15, 1e300, float("inf")])
def test_a_time_beyond_four_digits_of_a_year_is_the_last(moment: float) -> None:
    assert iso(moment) == END_OF_TIME
