"""A User-Agent that block lists take for somebody else is refused before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import linkcrawl.politeness
from linkcrawl import settings
from linkcrawl.assembly import open_session
from linkcrawl.errors import ConfigError
from linkcrawl.politeness.user_agent import listed_words, refuse_listed

GOOD = "mailto:ops@example.org"
DATA = json.loads((Path(linkcrawl.politeness.__path__[0]) / "block_lists.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("contact", "word", "source", "manner"),
    [
        ("https://example.org/CodeOfConduct", "Code", "ai.robots.txt", "found anywhere"),
        ("https://example.org/Code", "Code", "ai.robots.txt", "found as a word"),
        ("https://example.org/decoder", "Code", "ai.robots.txt", "found anywhere in any case"),
        ("https://bigsurXai.example/", "bigsur.ai", "ai.robots.txt", "found anywhere as a pattern"),
        ("mailto:operator@example.org", "Operator", "ai.robots.txt", "found anywhere in any case"),
        ("mailto:Devin@example.org", "Devin", "ai.robots.txt", "found as a word"),
        ("https://kayak.example/", "YaK", "ai.robots.txt", "found anywhere in any case"),
        ("https://example.org/imgproxy", "imgproxy", "Anubis", "found anywhere"),
        ("https://example.org/HeadlessChrome", "HeadlessChrome", "Anubis", "found anywhere"),
        ("https://example.org/Mozillaclub", "Mozilla", "Anubis, generic-browser", "found anywhere"),
        ("mailto:Operations@example.org", "Opera", "Anubis, generic-browser", "found anywhere"),
    ],
)
def test_a_contact_with_a_listed_word(contact: str, word: str, source: str, manner: str) -> None:
    assert (word, source, manner) in [(hit.word, hit.list, hit.manner) for hit in listed_words(contact)]
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_CONTACT: .* would work$") as caught:
        refuse_listed("linkcrawl", contact)
    assert f"{word!r} ({source}: {manner})" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("product", "word", "source"),
    [
        ("Scrapy", "Scrapy", "ai.robots.txt"),
        ("my-spider", "Spider", "ai.robots.txt"),
        ("Mozilla", "Mozilla", "Anubis, generic-browser"),
        ("mozilla", "Mozilla", "browsers"),
        ("Chrome", "Chrome", "browsers"),
    ],
)
def test_a_product_with_a_listed_word(product: str, word: str, source: str) -> None:
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_PRODUCT: .* would work$") as caught:
        refuse_listed(product, GOOD)
    assert f"{word!r} ({source}: " in str(caught.value)


@pytest.mark.parametrize("name", [name for part in DATA["lists"].values() for name in part["names"]])
def test_every_listed_name_is_refused_as_a_product(name: str) -> None:
    assert listed_words(name, product=True)


@pytest.mark.parametrize(
    "contact",
    [
        GOOD,
        "mailto:crawler@example.org",
        "https://example.org/linkcheck",
        "https://example.org/crawler",
        "https://example.org/bot.html",
        "https://www.opera-house.example/contact",
        "https://wiki.mozilla.example/",
        "https://example.org/Chrome",
        "mailto:safari@example.org",
    ],
)
def test_a_contact_that_no_list_has(contact: str) -> None:
    refuse_listed(str(settings.LINKCRAWL_PRODUCT), contact)  # type: ignore[attr-defined]


@pytest.mark.parametrize("product", ["linkcrawl", "Link-Checker", "clarin_checker", "firefoxes"])
def test_a_product_that_no_list_has(product: str) -> None:
    refuse_listed(product, GOOD)


def test_a_login_in_the_contact_is_not_told() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_listed("linkcrawl", "https://me:hush@example.org/Code")
    assert "hush" not in str(caught.value)


def test_a_crawl_does_not_begin(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/links.db"
    told = {name: value for name, value in vars(settings).items() if name.isupper()}
    with pytest.raises(ConfigError, match=r"LINKCRAWL_CONTACT: .*ai\.robots\.txt"):
        open_session({**told, "LINKCRAWL_CONTACT": "https://example.org/CodeOfConduct", "LINKCRAWL_STORE": store}, {})
    assert not (tmp_path / "links.db").exists()


def test_the_lists_are_kept_with_source_date_and_licence() -> None:
    for part in DATA["lists"].values():
        assert part["source"].startswith("https://")
        assert part["names"]
        assert "licence" not in part or (part["licence"] == "MIT" and part["copyright"] and part["date"])
    assert DATA["MIT"].startswith("Permission is hereby granted")
