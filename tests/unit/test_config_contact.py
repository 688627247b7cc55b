"""LINKCRAWL_CONTACT goes out with every request: what can't stand in a header is refused before the first one."""

from __future__ import annotations

import pytest

from linkcrawl import settings
from linkcrawl.config import read_config
from linkcrawl.errors import ConfigError
from linkcrawl.network.request import request_bytes
from linkcrawl.urls import Target, read
from tests.unit.frontier_kit import config

GOOD = {
    "https://example.org/crawler": ("(+https://example.org/crawler)", "https://example.org/crawler"),
    "http://[2001:db8::1]:8080/?a=b#c": ("(+http://[2001:db8::1]:8080/?a=b#c)", "http://[2001:db8::1]:8080/?a=b#c"),
    "https://social.example/@crawler": ("(+https://social.example/@crawler)", "https://social.example/@crawler"),
    "mailto:ops@example.org": ("(mailto:ops@example.org)", "ops@example.org"),
    " ops+links@example.org\n": ("(ops+links@example.org)", "ops+links@example.org"),
}

BAD = [
    "nobody",
    "https://",
    "https:///path",
    "https://me:hush@example.org/",
    "https://example.org/a b",
    "https://example.org/(a",
    "https://example.org/a)b",
    "https://example.org/a\\",
    "https://example.org/\r\nX-Evil: 1",
    "https://exämple.org/",
    "ops@example.org\r\nX-Evil: 1",
    "ops\x1b@example.org",
    "ops@example.org\x7f",
    "Ops <ops@example.org>",
    "ops@example.org, more@example.org",
    "ops(x)@example.org",
    "ftp://example.org/",
]


@pytest.mark.parametrize("contact", GOOD)
def test_a_contact_that_can_be_sent(contact: str) -> None:
    told = config(LINKCRAWL_CONTACT=contact)
    comment, sender = GOOD[contact]
    assert told.user_agent.endswith(f" {comment}")
    assert told.sender == sender
    target = read("http://a.example/")
    assert isinstance(target, Target)
    headers = {b"User-Agent": [told.user_agent.encode()], b"From": [told.sender.encode()]}
    assert isinstance(request_bytes("HEAD", target, headers), bytes)


@pytest.mark.parametrize("contact", BAD)
def test_a_contact_that_cannot(contact: str) -> None:
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_CONTACT: .* would work") as caught:
        config(LINKCRAWL_CONTACT=contact)
    assert str(caught.value).isprintable()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("contact", [None, "", "  "])
def test_who_sends_nothing_needs_none(contact: str | None) -> None:
    with pytest.raises(ConfigError, match="LINKCRAWL_CONTACT: not set"):
        config(LINKCRAWL_CONTACT=contact)
    told = {name: value for name, value in vars(settings).items() if name.isupper()}
    assert read_config({**told, "LINKCRAWL_CONTACT": contact}, need_contact=False).contact == ""
