"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import pytest
from hypothesis import settings


def pytest_configure(config: pytest.Config) -> None:
    # No test may depend on how fast the machine is.
    settings.register_profile("linkcrawl", deadline=None)
    settings.load_profile("linkcrawl")
    config.addinivalue_line("markers", "long: takes up to 90 s; leave out with -m 'not long'")
