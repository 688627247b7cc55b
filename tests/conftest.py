"""Fixtures that more than one folder of tests uses, and what holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import settings

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_configure(config: pytest.Config) -> None:
    # No test may depend on how fast the machine is. On CI the same examples each time: a run tells of its commit, and
    # chance finds its bugs on developers' machines.
    settings.register_profile("linkcrawl", deadline=None, derandomize=os.environ.get("CI") == "true")
    settings.load_profile("linkcrawl")
    config.addinivalue_line("markers", "long: takes up to 90 s; leave out with -m 'not long'")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _not_skipped_on_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _not_skipped_on_ci((yield))


def _not_skipped_on_ci(report: Report) -> Report:
    """A test that lacks something may be skipped on a developer's machine; on CI nobody would see that: it fails."""
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, which is a failure with CI=true: {report.longrepr[2]}"  # type: ignore[index]
    return report
