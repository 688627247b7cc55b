"""Fixtures that more than one folder of tests uses, and what holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent.parent

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_configure(config: pytest.Config) -> None:
    # No test may depend on how fast the machine is. On CI the same examples each time: a run tells of its commit, and
    # chance finds its bugs on developers' machines.
    settings.register_profile("linkcrawl", deadline=None, derandomize=os.environ.get("CI") == "true")
    settings.load_profile("linkcrawl")
    config.addinivalue_line("markers", "long: takes up to 90 s; leave out with -m 'not long'")


#: Folders whose tests mostly wait, in the order in which they begin. All others compute, and come last.
WAITING = ("crawl", "deploy", "contract")
#: In a file it means that tests share something, and follow each other in one worker.
SHARED = 'scope="module"'


class Spread(LoadScopeScheduling):
    """Gives tests to the workers of pytest-xdist so that all of these end together: those that wait one by one, where
    they share nothing, and quick ones by file. (Its --dist loadgroup does nothing with pytest 9.2, and loadfile has one
    worker run the file that takes longest while all others are done.)"""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if is_whole(path) else nodeid


@cache
def is_whole(path: str) -> bool:
    """Whether one worker runs all tests of a file."""
    if path.split("/")[1] not in WAITING:
        return True
    return SHARED in (ROOT / path).read_text()


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    if config.getvalue("dist") != "load":  # somebody wants another one
        return None
    config.option.loadscopereorder = False  # pytest_collection_modifyitems knows the order
    return Spread(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first in a worker of pytest-xdist: long tests, then whole files of those that wait."""
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, int]:
    path = item.nodeid.partition("::")[0]
    folder = path.split("/")[1]
    if folder not in WAITING:
        return 3, 0
    if item.get_closest_marker("long"):
        return 0, 0
    return (1 if is_whole(path) else 2), WAITING.index(folder)


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
