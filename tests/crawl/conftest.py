"""An operator's folder for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crawl.harness import Crawler


@pytest.fixture
def crawler(tmp_path: Path) -> Crawler:
    return Crawler(folder=tmp_path)
