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


#: Folders whose tests mostly wait, in the order in which they begin. All others compute, and come last.
WAITING = ("crawl", "deploy", "contract")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread tests over workers (`make test`: --dist loadgroup) so that all workers end together: what takes long first
    and each by itself, then quick tests by file. Tests that share a fixture of their file stay together."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if not _is_waiting(item) or _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_turn)


def _folder(item: pytest.Item) -> str:
    return item.nodeid.split("/")[1]


def _is_waiting(item: pytest.Item) -> bool:
    return _folder(item) in WAITING


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a fixture that the test uses is made for all tests of its file."""
    assert isinstance(item, pytest.Function)
    defined = (each[-1] for each in item._fixtureinfo.name2fixturedefs.values())
    return any(fixture.scope != "function" and fixture.baseid for fixture in defined)


def _turn(item: pytest.Item) -> tuple[int, int]:
    if item.get_closest_marker("long"):
        return 0, 0
    return (1, WAITING.index(_folder(item))) if _is_waiting(item) else (2, 0)


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
