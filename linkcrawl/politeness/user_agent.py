"""Refuses a User-Agent that public block lists take for somebody else.

Two parts of it are the operator's: product token and contact. Servers apply the lists to the whole header, so a word in
either is enough to be denied everywhere at once. The lists are kept as data with source, commit, date and licence
(block_lists.json); nothing is fetched.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from attrs import frozen

from linkcrawl.errors import ConfigError
from linkcrawl.urls.userinfo import without_userinfo

#: A list of AI scrapers; Anubis ships a copy of it as one regular expression.
_SCRAPERS = "ai.robots.txt"
#: What Anubis denies besides, and what it weighs as a browser (`generic-browser`): unanchored regular expressions.
_ANUBIS = ("Anubis", "Anubis, generic-browser")
#: Product tokens that browsers send. A browser's name within a contact misleads nobody.
_BROWSERS = "browsers"


@frozen
class Listed:
    """A word of a User-Agent that a list has. `manner`: how servers find it there, for people."""

    word: str
    list: str
    manner: str

    def __str__(self) -> str:
        return f"{self.word!r} ({self.list}: {self.manner})"


@cache
def names_of(name: str) -> tuple[str, ...]:
    """The names of one list, as it writes them."""
    data = json.loads(files(__package__).joinpath("block_lists.json").read_text(encoding="utf-8"))
    return tuple(data["lists"][name]["names"])


def listed_words(text: str, *, product: bool = False) -> list[Listed]:
    """The words of a text for which servers would deny its sender, those of one list in the list's order.

    ai.robots.txt is applied in three manners: as a word with its case (its nginx file, `\\b(...)\\b`), anywhere in any
    case (HAProxy's `hdr_sub -i` of its README), and anywhere as an unanchored regular expression (Anubis' copy, where
    `.` stands for any character). `product`: the text is the product token, which must not be a browser's either.
    """
    manners = ((name, _manner_of(name, text)) for name in names_of(_SCRAPERS))
    found = [Listed(name, _SCRAPERS, manner) for name, manner in manners if manner is not None]
    for source in _ANUBIS:
        found += [Listed(name, source, "found anywhere") for name in names_of(source) if re.search(name, text)]
    if product:
        found += [Listed(name, _BROWSERS, "product token") for name in names_of(_BROWSERS) if _same(name, text)]
    return found


def refuse_listed(product: str, contact: str) -> None:
    """Raises ConfigError, one line, where a block list has a word of the product token or of the contact."""
    for setting, value, wanted in (
        ("LINKCRAWL_PRODUCT", product, "a token of your own"),
        ("LINKCRAWL_CONTACT", contact, "a URL or an e-mail address without it"),
    ):
        found = listed_words(value, product=setting == "LINKCRAWL_PRODUCT")
        if found:
            words = ", ".join(map(str, found))
            raise ConfigError(
                f"{setting}: {without_userinfo(value)!r} has a word that servers' block lists deny: {words}; "
                f"{wanted} would work"
            )


def _manner_of(name: str, text: str) -> str | None:
    """How servers that use ai.robots.txt find a name in a text, strictest manner first; None where none does."""
    if re.search(rf"\b{re.escape(name)}\b", text):
        return "found as a word"
    if name in text:
        return "found anywhere"
    if name.lower() in text.lower():
        return "found anywhere in any case"
    return "found anywhere as a pattern" if re.search(name, text) else None


def _same(name: str, text: str) -> bool:
    return name.lower() == text.lower()
