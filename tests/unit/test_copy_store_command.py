"""`scrapy copy-store` as an operator types it."""

from __future__ import annotations

import argparse
import importlib
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.settings import Settings

from linkcrawl.stores.opening import display_name, open_store
from tests.contract.making import check, entry, link


def run(*args: str) -> int:
    command = importlib.import_module("linkcrawl.commands.copy-store").Command()
    command.settings = Settings()
    command.settings.setmodule("linkcrawl.settings")
    command.run(list(args), argparse.Namespace())
    return int(command.exitcode)


@pytest.fixture
def urls(tmp_path: Path) -> tuple[str, str]:
    """A store with two links, and one that isn't there yet."""
    url = f"sqlite:///{tmp_path}/from.db"
    with closing(open_store(url)) as store:
        store.add([entry(1, collection="c"), entry(2)])
        store.finish([check(link(store, 1), 10.0)])
    return url, f"sqlite:///{tmp_path}/to.db"


@pytest.mark.parametrize("was_clean", [True, False])
def test_everything_comes_over_and_the_sums_are_printed(
    urls: tuple[str, str], capsys: pytest.CaptureFixture[str], was_clean: bool
) -> None:
    if not was_clean:
        with closing(open_store(urls[0])) as store:
            store.claim()
    assert run(*urls) == 0
    assert f"records: 1 in {urls[0]}, 1 in {urls[1]}" in capsys.readouterr().out
    for url in urls:
        with closing(open_store(url)) as store:
            assert store.books(20.0).links == 2
            assert store.was_clean() is was_clean


def test_twice_is_refused_as_it_would_mix_two_stores(urls: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*urls) == 0
    assert run(*urls) == 2
    assert "TO holds 2 links, " in capsys.readouterr().err


def test_from_is_never_made(urls: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(f"sqlite:///{tmp_path}/none.db", urls[1]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("*.db")] == ["from.db"]


def test_a_store_is_not_copied_into_itself(urls: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(urls[0], urls[0]) == 2
    assert "another TO would work" in capsys.readouterr().err


@pytest.mark.parametrize("which", [0, 1])
def test_a_store_that_a_crawl_holds_is_refused(
    urls: tuple[str, str], capsys: pytest.CaptureFixture[str], which: int
) -> None:
    with closing(open_store(urls[which])) as store:
        store.claim()
        assert run(*urls) == 2
    assert "another crawl" in capsys.readouterr().err


def test_a_password_is_never_shown() -> None:
    assert "secret" not in display_name("mongodb://me:secret@db.example.org/x?password=secret")
