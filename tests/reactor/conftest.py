"""These tests run inside the reactor (pytest-twisted), in a process of their own: its loop never ends, and while it
runs no other test of the process could use asyncio.run. tests/unit/test_in_the_reactor.py starts that process."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if config.pluginmanager.hasplugin("pytest_twisted") else True
