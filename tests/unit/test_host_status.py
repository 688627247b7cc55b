"""What `scrapy hosts` and `scrapy explain` say, from what the store remembers and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from linkcrawl import urls
from linkcrawl.cli.options import host_key
from linkcrawl.cli.terminal import name_list, table
from linkcrawl.errors import ConfigError
from linkcrawl.items import Act, HostMemory, Order, Seed
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.limits import WINDOWS, Window
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.status.explain import explain
from linkcrawl.status.hosts import HostStatusReport, State
from linkcrawl.status.render import HOST_COLUMNS, explanation_facts, host_facts, host_line
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.contract import LinkEntry, Store
from linkcrawl.stores.opening import open_store
from linkcrawl.text import span
from tests.contract.making import check
from tests.unit.frontier_kit import T0, config, policies, read_robots_of

HOST = "a.example"
RULE = '[[policy]]\nname = "p"\nhosts = ["a.example"]\n'


def snapshot(
    *memories: HostMemory,
    due: dict[str, int] | None = None,
    rules: str = "",
    orders: dict[str, Order] | None = None,
    robots: str = "",
    **settings: Any,
) -> StoreSnapshot:
    told = config(**settings)
    made = StoreSnapshot(
        config=told,
        policies=policies(rules),
        hosts=HostStateCache(memories),
        robots=RobotsCache(token=told.product, ttl=told.robots_ttl),
        orders=orders or {},
        due={HOST: 10} if due is None else due,
        started_at=T0,
        now=lambda: T0,
    )
    if robots:
        read_robots_of(made, HOST, f"User-agent: *\n{robots}\n", T0)
    return made


def memory(host: str = HOST, **pace: Any) -> HostMemory:
    return HostMemory(host=host, pace=pace_to_row(Pace(**pace)))


BLOCK = {HOST: Order(host=HOST, act=Act.BLOCK, at=T0 - 9, reason="asked")}


@pytest.mark.parametrize(
    ("given", "state", "wake", "why"),
    [
        (snapshot(), State.READY, None, ""),
        (snapshot(memory(last_end=T0 - 0.25)), State.WAITING, T0 + 0.75, "delay of 1 s (DOWNLOAD_DELAY)"),
        (snapshot(memory(last_end=T0 - 60)), State.READY, None, ""),
        (snapshot(memory(last_end=T0 - 8, asked_at=T0 - 5)), State.IN_FLIGHT, None, "asked 5 s ago"),
        (snapshot(memory(asked_at=T0 - 5)), State.IN_FLIGHT, None, "asked 5 s ago"),
        (snapshot(memory(last_end=T0 - 90, asked_at=T0 - 80)), State.READY, None, ""),
        (snapshot(memory(last_end=T0 - 3, asked_at=T0 - 4)), State.READY, None, ""),
        (snapshot(memory(silent_until=T0 + 900)), State.WAITING, T0 + 900, "silenced by the server"),
        (snapshot(memory(blocked_since=T0 - 50)), State.BLOCKED, None, "turned us away since 2027-01-04T11:59:10.000Z"),
        (snapshot(orders=BLOCK), State.BLOCKED, None, "blocked: asked"),
        (snapshot(memory(asked_at=T0 - 5), orders=BLOCK), State.BLOCKED, None, "blocked: asked"),
        (snapshot(rules=RULE + "paused = true"), State.BLOCKED, None, "paused by policy p"),
        (snapshot(rules=RULE + 'quiet = ["mon 11:00-13:00 UTC"]'), State.QUIET, T0 + 3600, "quiet hours"),
        (snapshot(robots="Visit-time: 1300-1400"), State.QUIET, T0 + 3600, "Visit-time of robots.txt"),
        *(
            (
                snapshot(
                    memory(last_end=T0 - 5, counts={window.name: (window.number(T0), 3)}),
                    rules=f"{RULE}{window.key} = 3",
                ),
                State.WAITING,
                (T0 // window.seconds + 1) * window.seconds,
                f"{window.key} of 3 is reached",
            )
            for window in WINDOWS
        ),
    ],
)
def test_the_state_of_a_host(given: StoreSnapshot, state: State, wake: float | None, why: str) -> None:
    (status,) = HostStatusReport(given).hosts()
    assert (status.state, status.wake) == (state, wake)
    assert why in status.why
    assert bool(why) == bool(status.why)


def test_an_unblock_that_no_crawl_has_met_yet_counts() -> None:
    orders = {HOST: Order(host=HOST, act=Act.UNBLOCK, at=T0)}
    assert HostStatusReport(snapshot(memory(blocked_since=T0 - 50), orders=orders)).host(HOST).state is State.READY
    early = {HOST: Order(host=HOST, act=Act.UNBLOCK, at=T0 - 60)}
    assert HostStatusReport(snapshot(memory(blocked_since=T0 - 50), orders=early)).host(HOST).state is State.BLOCKED


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (snapshot(), 9.0),
        (snapshot(due={HOST: 1}), 0.0),
        (snapshot(memory(answer_time=0.1)), 10.0),
        (snapshot(memory(silent_until=T0 + 100)), 109.0),
        (snapshot(due={HOST: 1401}, robots="Crawl-delay: 3600"), 1400 * 3600.0),
        *((snapshot(due={HOST: 7}, rules=f"{RULE}{window.key} = 2"), 3 * window.seconds) for window in WINDOWS),
        (snapshot(due={HOST: 3, "b.example": 2}, rules=RULE.replace('["a', '["b.example", "a') + "group = true"), 4.0),
    ],
)
def test_how_long_the_links_take_at_least(given: StoreSnapshot, seconds: float) -> None:
    assert HostStatusReport(given).host(HOST).eta == pytest.approx(T0 + seconds)


@pytest.mark.parametrize("given", [snapshot(due={}, orders=BLOCK), snapshot(orders=BLOCK)])
def test_no_time_is_told_where_nothing_goes(given: StoreSnapshot) -> None:
    assert HostStatusReport(given).host(HOST).eta is None


def test_an_hour_of_delay_is_told_in_days() -> None:
    told = name_list(
        host_facts(HostStatusReport(snapshot(due={HOST: 1400}, robots="Crawl-delay: 3600")).details(HOST), T0)
    )
    assert "1400, one every 60 min: they take 58.3 d at least" in told
    assert "delay       3.6e+03 s" not in told
    assert "3,600 s from Crawl-delay" in told


def test_hosts_that_shared_a_gate_last_time_share_it_here() -> None:
    follower = HostMemory(host="b.a.example", pace={"gate": HOST})
    report = HostStatusReport(snapshot(memory(silent_until=T0 + 30), follower, due={"b.a.example": 2}))
    status = report.host("b.a.example")
    assert (status.gate, status.members, status.wake) == (HOST, (HOST, "b.a.example"), T0 + 30)
    assert "a.example, shared with a.example" in name_list(host_facts(report.details("b.a.example"), T0))


def test_a_stranger_at_the_gate_is_shown_with_its_own_word_and_the_gates() -> None:
    """What the others ask for doesn't show at it; the end of the gate's last request does."""
    own = Pace(last_end=T0 - 0.5, own_end=T0 - 9, silent_until=T0 + 30, blocked_since=T0 - 99, answer_time=0.1)
    follower = HostMemory(host="b.example", pace={"gate": HOST})
    kept = HostMemory(host=HOST, pace=pace_to_row(own))
    report = HostStatusReport(snapshot(kept, follower, due={HOST: 5, "b.example": 2}, robots="Crawl-delay: 3600"))
    status, shut = report.host("b.example"), report.host(HOST)
    assert (status.state, status.wake, status.gate) == (State.WAITING, T0 + 0.5, HOST)
    assert (status.delay.seconds, status.delay.origin) == (1.0, "DOWNLOAD_DELAY")
    assert status.eta == pytest.approx(T0 + 0.5 + 1.1 * 6 + 0.1)
    assert (shut.state, shut.delay.seconds, shut.eta) == (State.BLOCKED, 3600.0, None)
    assert status.strangers == (HOST,)
    told = name_list(host_facts(report.details("b.example"), T0))
    assert "strangers   a.example: they share the server, and nothing that they ask for holds here" in told


def test_gates_and_limits_are_no_hosts() -> None:
    memories = [memory("policy p"), memory("clock collection c"), memory()]
    assert [status.host for status in HostStatusReport(snapshot(*memories, due={})).hosts()] == [HOST]


def test_a_line_for_each_host_the_longest_first() -> None:
    given = snapshot(due={"b.example": 3, HOST: 9, "c.example:8080": 0}, orders=BLOCK)
    lines = table(HOST_COLUMNS, [host_line(status, T0) for status in HostStatusReport(given).hosts()]).splitlines()
    assert [row.split()[0] for row in lines] == ["HOST", "b.example", HOST, "c.example:8080"]
    assert "blocked: asked" in lines[2]


def test_json_has_every_number_that_was_considered() -> None:
    row = json.loads(json.dumps(HostStatusReport(snapshot(robots="Crawl-delay: 4")).details(HOST).row()))
    numbers = {number["origin"]: number["seconds"] for number in row["considered"]}
    assert numbers["DOWNLOAD_DELAY"] == 1.0
    assert numbers["Crawl-delay"] == 4.0
    assert (row["delay"], row["origin"], row["due"], row["state"]) == (4.0, "Crawl-delay", 10, "ready")


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("example.org", "example.org"),
        ("EXAMPLE.org.", "example.org"),
        ("example.org:80", "example.org"),
        ("example.org:443", "example.org"),
        ("example.org:8080", "example.org:8080"),
        ("https://example.org:8443/x", "example.org:8443"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_host_key(typed: str, key: str) -> None:
    assert host_key(typed) == key


@pytest.mark.parametrize("typed", ["", "a b", "a/b", "user@a", "ftp://a/", "policy museum", "a:99999", "a..b"])
def test_what_is_no_host_is_told(typed: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a host; example\.org or example\.org:8080 would work"):
        host_key(typed)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.5, "0.5 s"), (90, "90 s"), (200, "3.33 min"), (7200, "2 h"), (58.3 * 86400, "58.3 d")],
)
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text
    assert span(26300 * 86400) == "26,300 d"


# One URL.


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as opened:
        yield opened


@pytest.fixture
def seeded(store: Store) -> Callable[[str], None]:
    def add(text: str) -> None:
        tidied = urls.tidy(text)
        target = urls.read_tidy(tidied)
        host = target.host if isinstance(target, urls.Target) else ""
        seed = Seed(url=text, collection="north 1", provider="endpoint")
        store.add([LinkEntry(key=urls.key(tidied, target), url=tidied, host=host, seed=seed)])

    return add


def explained(store: Store, given: StoreSnapshot, text: str) -> dict[str, Any]:
    explanation = explain(store, given, text)
    assert name_list(explanation_facts(explanation))
    row: dict[str, Any] = json.loads(json.dumps(explanation.row()))
    return row


URL = "http://a.example/page.pdf"


@pytest.mark.parametrize(
    ("given", "reason", "says"),
    [
        (snapshot(), None, "asked by HEAD as soon as it is its turn, once robots.txt is read"),
        (snapshot(robots="Disallow: /x"), None, "asked by HEAD as soon as it is its turn"),
        (snapshot(robots="Disallow: /page"), "robots_disallowed", "recorded as Blocked_By_Robots_txt"),
        (snapshot(rules=RULE + 'skip = ["*.pdf"]'), "skipped_by_policy", "policy p skips it"),
        (snapshot(rules=RULE + 'method = "GET"'), None, "asked by GET"),
        (snapshot(HostMemory(host=HOST, head_useless_since=T0 - 60)), None, "asked by GET"),
        (snapshot(HostMemory(host=HOST, head_useless_since=T0 - 1e8)), None, "asked by HEAD"),
        (snapshot(orders=BLOCK), None, "not asked: blocked: asked; the link stays due"),
        (snapshot(rules=RULE + "paused = true"), None, "not asked: paused by policy p; the link stays due"),
        (snapshot(memory(silent_until=T0 + 60)), None, "at 2027-01-04T12:01:00.000Z at the earliest"),
        (
            snapshot(rules='[[policy]]\nname = "c"\ncollections = ["north *"]\npaused = true'),
            None,
            "not asked: paused by policy c; the link stays due",
        ),
        (
            snapshot(
                HostMemory(host="clock collection north 1", pace=pace_to_row(Pace(last_end=T0 - 1))),
                rules='[[policy]]\nname = "c"\ncollections = ["north *"]\ndelay = 31',
            ),
            None,
            "at 2027-01-04T12:00:30.000Z at the earliest",
        ),
    ],
)
def test_what_would_become_of_a_link(
    store: Store, seeded: Callable[[str], None], given: StoreSnapshot, reason: str | None, says: str
) -> None:
    seeded(URL)
    row = explained(store, given, URL)
    assert row["reason"] == reason
    assert says in row["would_be"]
    assert (row["in_store"], row["due"], row["collections"]) == (True, True, ["north 1"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ftp://a.example/x", "unsupported_scheme"),
        ("http://a.example:22/", "forbidden_port"),
        ("http://0x7f.1/", "forbidden_address"),
        ("http://[::ffff:10.0.0.1]:8080/", "forbidden_address"),
        ("http://a..example/", "invalid_url"),
    ],
)
def test_what_is_never_asked_is_told_with_its_reason(store: Store, text: str, reason: str) -> None:
    row = explained(store, snapshot(due={}), text)
    assert (row["reason"], row["in_store"], row["due"]) == (reason, False, False)


def test_what_is_shown_of_a_url_has_no_password(store: Store) -> None:
    told = name_list(explanation_facts(explain(store, snapshot(), "http://me:secret@a.example/")))
    assert "secret" not in told


@pytest.mark.parametrize("text", ["\x1b[31mred", "two\nlines", "\x9b2J", "\u202ebackwards", "nul\0"])
def test_what_strangers_wrote_cannot_steer_the_terminal(text: str) -> None:
    for told in (name_list([("found in", text), ("", text)]), table(["HOST", "WHY"], [[text, text]])):
        lines = told.split("\n")
        assert len(lines) == 2
        assert all(line.isprintable() for line in lines)
    assert name_list([("collection", "Bücher 🐘")]) == "collection  Bücher 🐘"


def test_every_policy_that_matches_is_told_with_what_it_says(store: Store) -> None:
    rules = RULE + 'delay = 3\nexpensive = { "*.pdf" = 4 }\nquiet = ["sat 01:00-02:00 UTC"]\nrecheck = { ok = "14d" }'
    row = explained(store, snapshot(rules=rules), URL)
    (rule,) = row["policies"]
    assert rule["name"] == "p"
    for said in ("delay = 3", "expensive *.pdf = 4", "quiet sat 01:00-02:00 UTC", "recheck ok = 14 d"):
        assert said in rule["says"]
    assert (row["cost"], row["delay"], row["origin"]) == (4.0, 3.0, "policy p")
    built_in = explained(store, snapshot(due={}), "doi:10.1/x")
    assert (built_in["delay"], [rule["says"] for rule in built_in["policies"]]) == (0.1, ["delay = 0.1"])


def test_the_last_check_and_the_next_are_told(store: Store, seeded: Callable[[str], None]) -> None:
    seeded(URL)
    found = store.link(urls.identity(URL))
    assert found is not None
    store.finish([check(found, T0 - 60, next_at=T0 + 600)])
    row = explained(store, snapshot(), URL)
    assert (row["due"], row["next_check_at"]) == (False, "2027-01-04T12:10:00.000Z")
    assert (row["last"]["category"], row["last"]["url"]) == ("Ok", URL)
    told = name_list(explanation_facts(explain(store, snapshot(), URL)))
    assert "no, again at 2027-01-04T12:10:00.000Z" in told
    assert "Ok (ok), 200 by HEAD" in told


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.key)
def test_a_quota_is_told_with_what_is_used_of_it(window: Window) -> None:
    given = snapshot(
        memory(last_end=T0 - 5, counts={window.name: (window.number(T0), 3)}),
        rules=f'{RULE}{window.key} = 9\n[[policy]]\nname = "c"\ncollections = ["c"]\n{window.key} = 7',
    )
    details = HostStatusReport(given).details(HOST)
    told = dict(host_facts(details, T0))
    assert f"9 requests {window.each} at most" in told["considered"]
    assert f"3 {window.current}" in told["requests"]
    assert told["policies"] == f"p: {window.key} = 9"
    assert details.row()["quotas"] == [{"key": window.key, "most": 9, "requests": 3}]
    (limit,) = given.policies.of_link(HOST, ("c",)).limits
    assert limit.text == f"collection c: 7 requests {window.each} at most by policy c"
