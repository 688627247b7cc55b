"""A check on its way between workers: nothing is lost by the way, and nothing strange is taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.cookies import Cookie, Jar
from linkcrawl.check.outcome import Outcome
from linkcrawl.check.procedure import Next, Rules, answered, begin
from linkcrawl.cluster.codec import VERSION, Ticket, TransferredCheck, read_transfer, ticket_from_token
from linkcrawl.errors import UnreadableTransfer
from linkcrawl.items import Category, DueLink, LinkState

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
LINKS = st.builds(
    DueLink,
    id=st.one_of(st.integers(0, 2**63 - 1), TEXT),
    url=st.just("http://a.example/x"),
    host=st.just("a.example"),
    collections=st.lists(TEXT, max_size=3).map(tuple),
    providers=st.lists(TEXT, max_size=3).map(tuple),
    expected_mime=st.none() | TEXT,
    state=st.builds(LinkState, attempt=st.integers(0, 99), hard_since=st.none() | st.floats(0, 1e10)),
    last_category=st.none() | st.sampled_from(Category),
)


def travelling(link: DueLink, location: str = "http://b.example/y") -> TransferredCheck:
    step = begin(link.url, Rules())
    assert isinstance(step, Next)
    headers = {"location": location}
    cookie = ("sid=1\udce9; Path=/",)
    outcome = Outcome(
        sent_at=1.0, ended_at=2.5, duration_ms=1500, status=302, headers=headers, set_cookie=cookie, ip="192.0.2.1"
    )
    step = answered(step.check, outcome)
    assert isinstance(step, Next)
    return TransferredCheck(version=VERSION, ticket=Ticket.of(link, "home"), link=link, check=step.check)


@given(LINKS)
def test_arrives_as_it_left(link: DueLink) -> None:
    sent = travelling(link)
    assert read_transfer(sent.text()) == sent
    assert ticket_from_token(sent.ticket.token, "home") == sent.ticket


def test_cookies_and_hops_travel() -> None:
    arrived = read_transfer(travelling(DueLink(id=1, url="http://a.example/x", host="a.example")).text())
    cookie = Cookie(name="sid", value="1\udce9", domain="a.example", host_only=True, path="/", secure=False)
    assert arrived.check.chain.jar == Jar(cookies=(cookie,))
    assert [(hop.url, hop.status, hop.ip) for hop in arrived.check.hops] == [("http://a.example/x", 302, "192.0.2.1")]


def changed(**changes: object) -> str:
    row = json.loads(travelling(DueLink(id=1, url="http://a.example/x", host="a.example")).text())
    for name, value in changes.items():
        if value is None:
            del row[name]
        else:
            row[name] = value
    return json.dumps(row)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "not JSON",
        changed(version=VERSION + 1),
        changed(link=None),
        changed(check={}),
        changed(more=1),
        changed(check=json.loads(changed())["check"] | {"ask": None}),
    ],
)
def test_what_is_no_travelling_check_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTransfer):
        read_transfer(text)
