"""Settings that are numbers: what can't be used is refused in one line that says what would work."""

from __future__ import annotations

from typing import Any

import pytest

from linkcrawl.errors import ConfigError
from tests.unit.frontier_kit import config

ANY = [None, "", "x", "nan", "inf", "-inf", "-1", -1, "1e999", float("nan"), [], {}, "1,5", "0x1"]
WHOLE = ["1.5", "1e3", float("inf")]
REFUSED: dict[str, list[Any]] = {
    "LINKCRAWL_LEASE": [*ANY, 0],
    "LINKCRAWL_TIMEOUT": [*ANY, 0],
    "LINKCRAWL_PATIENCE": ANY,
    "LINKCRAWL_ROBOTS_TTL": [*ANY, 0],
    "LINKCRAWL_HISTORY_DAYS": ANY,
    "LINKCRAWL_PROBATION": ANY,
    "DOWNLOAD_DELAY": ANY,
    "AUTOTHROTTLE_TARGET_CONCURRENCY": [*ANY, 0],
    "AUTOTHROTTLE_MAX_DELAY": ANY,
    "LINKCRAWL_METRICS_PORT": [*ANY, *WHOLE, 65536, "70000"],
    "LINKCRAWL_API_PORT": [*ANY, *WHOLE, 0, 65536],
    "LINKCRAWL_MAX_REDIRECTS": [*ANY, *WHOLE],
    "LINKCRAWL_MAX_WAITING": [*ANY, *WHOLE, 0],
    "CONCURRENT_REQUESTS": [*ANY, *WHOLE],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_number_of_its_kind(name: str) -> None:
    for value in REFUSED[name]:
        with pytest.raises(ConfigError, match=rf"^{name}: .* (at least \S+|\d+ to \d+) would work$"):
            config(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("LINKCRAWL_METRICS_PORT", "65535"), ("LINKCRAWL_METRICS_PORT", 0)])
def test_the_ends_of_a_range_are_within_it(name: str, value: Any) -> None:
    assert config(**{name: value}).metrics_port == int(value)
