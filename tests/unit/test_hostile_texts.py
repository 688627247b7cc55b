"""Whatever strangers write is read in time that grows with its length only, and ends in a seed, a reject or a record.

Entrances: seeds of each format, Location, Set-Cookie and other header fields, robots.txt, policy files, pushed seeds.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from linkcrawl import urls
from linkcrawl.check import fields, logins, suspects, walls
from linkcrawl.check.cookies import Jar
from linkcrawl.check.procedure import Done, Next, Rules, answered, begin
from linkcrawl.errors import PolicyError
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Reject, Seed
from linkcrawl.network import fault, outcomes
from linkcrawl.network.head import HeadParser
from linkcrawl.network.request import read_target
from linkcrawl.politeness.pacing.hints import retry_at
from linkcrawl.politeness.policy import file as policy_file
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.politeness.robots.fetch import Fetched, Fetching, RobotsAvailability, step
from linkcrawl.politeness.robots.parser import MAX_MATCHING, Robots, read_robots
from linkcrawl.sources.cmdi import read_cmdi
from linkcrawl.sources.databases import seed_of
from linkcrawl.sources.lines import read_jsonl, read_txt
from linkcrawl.sources.pushed import _row as pushed_row
from linkcrawl.sources.tables import read_csv, read_tsv
from linkcrawl.text import one_line
from linkcrawl.urls.userinfo import redact, without_userinfo
from tests.unit.check_kit import answer
from tests.unit.growth_kit import assert_linear
from tests.unit.hostile_kit import LONG, hostile_texts

SOURCE = urls.read("http://a.example/dir/page")
assert isinstance(SOURCE, urls.Target)
HERE: urls.Target = SOURCE


def target_of(url: str) -> urls.Target:
    """What is requested for a URL, or HERE."""
    target = urls.read(url)
    return target if isinstance(target, urls.Target) else HERE


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def read_head(text: str) -> object:
    raw = encoded(text)
    return HeadParser().feed(b"HTTP/1.1 200 OK\r\nX: " + raw + b"\r\n" + raw + b"\r\n\r\n")


def read_xml(text: str) -> list[Seed | Reject]:
    record = b'<CMD xmlns="http://www.clarin.eu/cmd/1"><Header><MdSelfLink>%s</MdSelfLink></Header></CMD>'
    return list(read_cmdi(io.BytesIO(record % encoded(text)), "it", record="r", collection=None))


def read_policies(text: str) -> None:
    for document in (text, f"x = {text}", f"[[policy]]\nname = 'a'\nhosts = [{text!r}]\nquiet = [{text!r}]"):
        with contextlib.suppress(PolicyError):
            policy_file.parse(document, "policies.toml")


def read_robots_txt(text: str) -> Robots:
    lines = "\n".join(f"{field}: {text}" for field in ("Disallow", "Crawl-delay", "Request-rate", "Visit-time"))
    return read_robots(encoded(f"User-agent: *\n{lines}\n{text}\nUser-agent: {text}"), "linkcrawl")


def take_cookies(text: str) -> str | None:
    lines = [text, f"a=b;{text}", f"a=b;expires={text}", f"a=b;path=/{text}", f"a={text}"]
    return Jar().take(lines, HERE, 0.0).field(HERE).value


def wait(text: str) -> float | None:
    names = ("retry-after", "date", "ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset", "age")
    waits = [retry_at(429, {name: text}, 0.0) for name in names]
    return max((seconds for seconds in waits if seconds is not None), default=None)


def follow(text: str) -> Next | Done:
    """A check whose first answer redirects to the text, with the text in its other fields."""
    step = begin("http://a.example/dir/page", Rules())
    assert isinstance(step, Next)
    outcome = answer(301, text, cookies=(text, f"a=b; path={text}"), content_type=text, content_length=text)
    return answered(step.check, outcome)


def wall_by_head(text: str) -> walls.Wall | None:
    names = ("link", "via", "cache_control", "x_iinfo", "www_authenticate", "cf_mitigated", "sg_captcha", "x_dd_b")
    cookies = (text, f"{text}=", f"a={text}", f"techaro.lol-anubis-{text}=", f"a=b; max-age={text}", f"a=b;{text}")
    return walls.wall_of_answer(answer(401, cookies=cookies, **dict.fromkeys(names, text)))


def end(text: str) -> Next | Done:
    """A check that has ended at a URL of this text."""
    step = begin(f"http://a.example/{text}", Rules(), method="GET")
    return answered(step.check, answer(200, content_type=text, content_length=text)) if isinstance(step, Next) else step


def fetch_robots(text: str) -> object:
    begun = Fetching(authority="http://a.example", url="http://a.example/robots.txt")
    outcome = answer(301, text)
    step(begun, outcome)
    return step(begun, evolve(outcome, status=200, headers={"cache-control": text, "content-encoding": text}), b"x")


def read_answer(text: str) -> object:
    lines = [("x", text[start : start + 100]) for start in range(0, len(text), 100)]
    return outcomes.answered(lines, status=200, ip=None, sent_at=0.0, seconds=0.0)


def read_json(text: str) -> list[Seed | Reject]:
    rows = [text, f'{{"url": {text}}}', f'{{"url": "http://a.example/", "note": {text}}}', f'{{"url": "{text}"}}']
    return [seed for row in rows for seed in read_jsonl(io.BytesIO(encoded(row)), "it")]


def read_cells(text: str) -> list[Seed | Reject]:
    data = encoded(f"url,note\n{text}\nhttp://a.example/,{text}\n")
    return [*read_csv(io.BytesIO(data), "it"), *read_tsv(io.BytesIO(data.replace(b",", b"\t")), "it")]


def read_lines(text: str) -> list[Seed | Reject]:
    return list(read_txt(io.BytesIO(encoded(text)), "it"))


def read_document(text: str) -> list[Seed | Reject]:
    return [seed_of({"_id": 1, "url": text, "note": [text]}, "it", 1)]


def read_pushed(text: str) -> list[Seed | Reject]:
    return [pushed_row(encoded(text), "it", 1), pushed_row(encoded(f'{{"url": {text}'), "it", 1)]


SEEDS: dict[str, Callable[[str], list[Seed | Reject]]] = {
    "JSON lines": read_json,
    "tables": read_cells,
    "plain lines": read_lines,
    "CMDI": read_xml,
    "documents": read_document,
    "pushed": read_pushed,
}
READERS: dict[str, Callable[[str], Any]] = {
    "without_userinfo": without_userinfo,
    "redact": redact,
    "urls.read": urls.read,
    "urls.identity": urls.identity,
    "urls.join": lambda text: urls.join(HERE.url, text),
    "Location": follow,
    "wall by redirect": lambda text: walls.wall_of_redirect(target_of(f"http://a.example/{text}"), 302),
    "wall by head": wall_by_head,
    "wall by page": lambda text: [walls.wall_of_page(encoded(part)) for part in (text, f"<{text}", f"<script{text}")],
    "login": lambda text: logins.login_of(target_of(f"http://a.example/{text}")),
    "soft redirect": lambda text: suspects.soft_redirect_reason(HERE, target_of(f"http://a.example/?q={text}")),
    "last URL": end,
    "Location twice": lambda text: fields.redirect_target({"location": text}),
    "Set-Cookie": take_cookies,
    "Retry-After and RateLimit": wait,
    "head": read_head,
    "header fields": read_answer,
    "target": read_target,
    "log line": one_line,
    "error": fault.replace_controls,
    "robots.txt": read_robots_txt,
    "robots.txt answers": fetch_robots,
    "robots.txt rule": lambda text: read_robots_txt(text).allowed(f"http://a.example/{text}"),
    "policies": read_policies,
    **{f"seeds: {name}": read for name, read in SEEDS.items()},
}


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text_only(name: str) -> None:
    for kind, made in LONG.items():
        try:
            assert_linear(READERS[name], made)
        except AssertionError as error:
            raise AssertionError(f"{name}, {kind}: {error}") from None


@pytest.mark.parametrize("name", READERS)
def test_nothing_raises_for_long_and_deep_texts(name: str) -> None:
    for made in LONG.values():
        READERS[name](made(20_000))


@pytest.mark.parametrize("name", READERS)
@given(hostile_texts)
@settings(max_examples=50)
def test_nothing_raises_for_hostile_texts(name: str, text: str) -> None:
    READERS[name](text)


@given(hostile_texts)
@settings(max_examples=50)
def test_whatever_is_a_seed_can_be_kept(text: str) -> None:
    for read in SEEDS.values():
        for row in read(text):
            assert isinstance(row, Reject) or len(link_entry(row).key) == 16


@pytest.mark.parametrize("depth", [100, 400, 900, 5000, 100_000])
def test_a_deep_value_is_a_reject_wherever_it_stands(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for row in (f'{{"url": {deep}}}', f'{{"url": "http://a.example/", "note": {deep}}}', f'{{"priority": {deep}}}'):
        (read,) = read_jsonl(io.BytesIO(row.encode()), "it")
        assert isinstance(read, Reject)
        assert isinstance(pushed_row(row.encode(), "it", 1), Reject)
        assert isinstance(pushed_row(b"{" + deep.encode(), "it", 1), Reject)


def test_a_deep_policy_file_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"policies\.toml: is nested too deeply"):
        policy_file.parse("x = " + "[" * 5000, "policies.toml")


@pytest.mark.parametrize("count", [2, 1000, 20_000])
def test_hosts_within_hosts_are_taken_away(count: int) -> None:
    assert without_userinfo("//a@" * count + "host/") == "/" * (2 * count) + "host/"


def many_rules(rule: Callable[[int], str], size: int) -> bytes:
    lines = [f"Disallow: {rule(number)}" for number in range(size // len(f"Disallow: {rule(size)}"))]
    return "\n".join(["User-agent: *", *lines]).encode()


HOSTILE_RULES: dict[str, Callable[[int], str]] = {
    "words that are nowhere": lambda number: f"*b{number:x}",
    "words that are there almost": lambda number: f"*{'a' * (50 + number % 40)}b{'a' * (number // 40 % 40 + 1)}",
    "many stars": lambda number: f"/{'*a' * 500}{number:x}b",
}


@pytest.mark.parametrize("kind", HOSTILE_RULES)
def test_rules_times_length_is_bounded(kind: str) -> None:
    """Either nothing is allowed, and that is said, or rules times length is below the bound."""
    robots = read_robots(many_rules(HOSTILE_RULES[kind], 500_000), "linkcrawl")
    path = "/" + "a" * 16_000
    size = sum(len(line) for line in robots.rules.split("\n"))
    assert size * len(path) > MAX_MATCHING
    assert robots.is_beyond(path)
    assert not robots.allowed(path)
    assert robots.allowed("/" + "a" * 100)


def test_what_is_beyond_robots_is_disallowed_with_a_note() -> None:
    cache = RobotsCache(token="linkcrawl", ttl=3600)
    body = many_rules(HOSTILE_RULES["words that are nowhere"], 500_000)
    cache.take(Fetched(authority="http://a.example", availability=RobotsAvailability.FOUND, body=body, note="200"), 0.0)
    verdict = cache.verdict("http://a.example", "http://a.example/" + "a" * 16_000, 1.0)
    assert (str(verdict.access), verdict.note) == (
        "disallowed",
        "robots.txt has more rules with * than are held against a URL this long",
    )


def test_a_large_robots_txt_in_good_faith_is_held_against_long_urls() -> None:
    """A thousand rules with * of usual length, and a URL as long as any site makes."""
    robots = read_robots(many_rules(lambda number: f"/*?*sort={number:04}", 25_000), "linkcrawl")
    assert robots.allowed("/search?" + "a=b&" * 2000)
    assert not robots.allowed("/search?" + "a=b&" * 2000 + "sort=0007")


@given(st.text(max_size=30), st.integers(0, 40))
def test_a_matched_url_is_as_without_a_bound(text: str, times: int) -> None:
    robots = read_robots(encoded(f"User-agent: *\nDisallow: /{text * times}"), "linkcrawl")
    assert not robots.is_beyond(f"/{text}")
