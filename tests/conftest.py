"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes up to 90 s; leave out with -m 'not long'")
