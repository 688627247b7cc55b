"""The policy file: what it may say, what is refused, and what several rules come to together."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.recheck import Intervals
from linkcrawl.errors import PolicyError
from linkcrawl.politeness.policy.file import RECHECK_KEYS, load, parse
from linkcrawl.politeness.policy.limits import DAYS, HOURS, Quota, SharedLimit
from linkcrawl.politeness.policy.rules import Applied, Policies

EVERYTHING = """
[[policy]]
name = "europeana"
hosts = ["europeana.eu", "*.europeana.eu"]
collections = ["*_Ag_EU_*"]
providers = []
delay = 2.0
group = true
quiet = ["mon-fri 08:00-18:00 Europe/Amsterdam"]
max_per_day = 40000
max_per_hour = 2000
paused = false
skip = ["*/iiif/*"]
expensive = { "*.pdf" = 4 }
method = "HEAD"
crawl_delay = 0.5
agreement = "2026-11-02 mail from the repository's administrator"
recheck = { ok = "14d", transient = "12h" }
"""


def rules(*tables: str) -> Policies:
    """A file of rules, each the lines of one, with a name of its own."""
    return parse("\n".join(f'[[policy]]\nname = "r{n}"\n{table}' for n, table in enumerate(tables)), "policies.toml")


def names(applied: Applied) -> list[str]:
    return [rule.name for rule in applied.rules]


def test_all_keys_of_the_reference() -> None:
    applied = parse(EVERYTHING, "p").of_host("www.europeana.eu")
    monday = datetime(2026, 11, 30, 9, tzinfo=UTC).timestamp()
    assert (applied.floor, applied.floor_from, applied.gate) == (2.0, "europeana", "europeana")
    assert applied.quotas == (Quota(window=HOURS, most=2000), Quota(window=DAYS, most=40000))
    assert (applied.paused_by, applied.method) == (None, "HEAD")
    assert (applied.crawl_delay, applied.agreement) == (0.5, "2026-11-02 mail from the repository's administrator")
    assert applied.open_at(monday) == datetime(2026, 11, 30, 17, tzinfo=UTC).timestamp()
    assert applied.skipped_by("https://www.europeana.eu/iiif/1") == "europeana"
    assert applied.recheck == {"ok": 14 * 86400.0, "transient": 12 * 3600.0}


def test_no_rules_say_nothing() -> None:
    applied = Policies().of_link("example.org", ("c",), ("p",))
    assert (applied.rules, applied.floor, applied.gate, applied.limits) == ((), None, None, ())
    assert (applied.skipped_by("http://example.org/"), applied.cost("http://example.org/"), applied.open_at(5)) == (
        None,
        1,
        5,
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "policy = []"])
def test_an_empty_file_is_no_rules(text: str) -> None:
    assert parse(text, "p").rules == ()


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("europeana.eu", ["europeana.eu", "europeana.eu:8080"], ["www.europeana.eu", "europeana.eux", "xeuropeana.eu"]),
        ("*.europeana.eu", ["www.europeana.eu", "a.b.europeana.eu:1"], ["europeana.eu"]),
        ("Example.ORG.", ["example.org"], ["example.org.uk"]),
        ("example.org:8080", ["example.org:8080"], ["example.org", "example.org:80"]),
        ("127.0.*", ["127.0.0.1", "127.0.0.1:8080"], ["127.1.0.0"]),
        ("[::1]", ["[::1]", "[::1]:8080"], [":", "1"]),
        ("münchen.de", ["xn--mnchen-3ya.de"], ["münchen.de", "muenchen.de"]),
        ("host?.org", ["host1.org"], ["host.org", "host12.org"]),
        ("*", ["anything", "a.b:1"], []),
    ],
)
def test_host_globs(glob: str, yes: list[str], no: list[str]) -> None:
    policies = rules(f'hosts = ["{glob}"]')
    assert [host for host in yes if not policies.of_host(host).rules] == []
    assert [host for host in no if policies.of_host(host).rules] == []


def test_collections_and_providers_are_matched_by_their_own_globs() -> None:
    policies = rules('collections = ["*_EU_*", "Plain"]', 'providers = ["Inst*"]')
    assert names(policies.of_link("h", ("x_EU_1",), ("Institute",))) == ["r0", "r1"]
    assert names(policies.of_link("h", ("plain", "EU_x"), ("institute",))) == []
    assert names(policies.of_link("Plain", (), ())) == []


def test_strictest_of_all_that_match() -> None:
    policies = rules(
        'hosts = ["a.org"]\ndelay = 3\nmax_per_day = 100\nskip = ["*/x/*"]\nexpensive = { "*.pdf" = 2 }',
        'hosts = ["*"]\ndelay = 5\nmax_per_day = 50\nskip = ["*/y/*"]\nexpensive = { "*/big/*" = 9 }\nmethod = "HEAD"',
        'hosts = ["a.*"]\ndelay = 4\npaused = true\nmethod = "GET"\nrecheck = { ok = "9d" }',
        'hosts = ["b.org"]\ndelay = 99',
        'collections = ["c"]\nskip = ["*/z/*"]\nrecheck = { ok = "10d" }\nquiet = ["daily 00:00-24:00 UTC"]',
    )
    applied = policies.of_link("a.org", ("c",))
    assert (applied.floor, applied.floor_from, applied.quotas) == (5.0, "r1", (Quota(window=DAYS, most=50),))
    assert (applied.paused_by, applied.method, applied.recheck) == ("r2", "GET", {"ok": 10 * 86400.0})
    assert [applied.skipped_by(f"http://a.org/{part}/1") for part in "xyzw"] == ["r0", "r1", "r4", None]
    assert [applied.cost(f"http://a.org/{path}") for path in ("a", "a.pdf", "big/a.pdf")] == [1, 2, 9]
    assert applied.open_at(1e9) == math.inf
    assert names(applied) == ["r0", "r1", "r2", "r4"]


@pytest.mark.parametrize(
    ("url", "cost"),
    [
        ("http://a.org/a.pdf", 4),
        ("http://a.org/A.PDF", 4),
        ("http://a.org/a.pdf?download=1", 4),
        ("http://a.org/view?file=a.pdf", 4),
        ("http://a.org/a.pdfx", 1),
        ("http://a.org/pdf", 1),
    ],
)
def test_costs(url: str, cost: float) -> None:
    assert rules('hosts = ["*"]\nexpensive = { "*.pdf" = 4 }').of_host("a.org").cost(url) == cost


def test_the_largest_agreed_delay_counts() -> None:
    policies = rules(
        'hosts = ["a.org"]\ncrawl_delay = 2\nagreement = "mail of May"',
        'hosts = ["*"]\ncrawl_delay = 3\nagreement = "mail of June"',
    )
    assert (policies.of_host("a.org").crawl_delay, policies.of_host("a.org").agreement) == (3.0, "mail of June")


@pytest.mark.parametrize("host", ["hdl.handle.net", "doi.org"])
def test_built_in_unless_a_host_rule_has_a_delay(host: str) -> None:
    assert (Policies().of_host(host).floor, names(Policies().of_host(host))) == (
        0.1,
        ["built-in: resolvers of identifiers"],
    )
    assert rules(f'hosts = ["{host}"]\ndelay = 1').of_host(host).floor == 1.0
    assert rules(f'hosts = ["{host}"]\ndelay = 0.05').of_host(host).floor == 0.05
    assert rules(f'hosts = ["{host}"]\npaused = true').of_host(host).floor == 0.1
    assert Policies().of_host("www." + host).floor is None


def test_limits_of_collections_and_providers() -> None:
    policies = rules(
        'collections = ["a*"]\ndelay = 2',
        'collections = ["*b"]\ndelay = 3\nmax_per_day = 10',
        'collections = ["ab", "g*"]\nproviders = ["g*"]\ndelay = 7\ngroup = true',
        'collections = ["m"]\nmax_per_day = 5',
        'collections = ["n"]\npaused = true',
        'hosts = ["h"]\ndelay = 1',
    )
    assert policies.of_link("h", ("ab", "ax", "m", "n"), ("gp",)).limits == (
        SharedLimit(name="collection ab", delay=3.0, quotas=(Quota(window=DAYS, most=10),), rule="r1"),
        SharedLimit(name="collection ax", delay=2.0, rule="r0"),
        SharedLimit(name="collection m", delay=0.0, quotas=(Quota(window=DAYS, most=5),), rule="r3"),
        SharedLimit(name="policy r2", delay=7.0, rule="r2"),
    )
    assert policies.of_link("h", ("ab",)).floor == 1.0  # a collection's delay is no host's


def test_a_group_rule_gives_its_hosts_one_gate() -> None:
    policies = rules('hosts = ["*.museum.org"]\ngroup = true\ndelay = 2', 'hosts = ["*"]')
    assert {policies.of_host(f"{name}.museum.org").gate for name in "abc"} == {"r0"}
    assert policies.of_host("other.org").gate is None


def limit_names(policies: Policies, host: str, *collections: str) -> list[str]:
    return [limit.name for limit in policies.of_link(host, collections).limits]


def test_a_group_of_hosts_and_collections_has_one_clock_for_all() -> None:
    policies = rules('hosts = ["*.museum.org"]\ncollections = ["c*"]\ndelay = 2\nmax_per_day = 9\ngroup = true')
    (limit,) = policies.of_host("a.museum.org").limits
    assert limit == SharedLimit(name="policy r0", delay=2.0, quotas=(Quota(window=DAYS, most=9),), rule="r0")
    assert policies.of_link("other.org", ("c1", "c2")).limits == (limit,)
    assert policies.of_link("b.museum.org", ("c1", "d")).limits == (limit,)
    assert policies.of_link("other.org", ("d",)).limits == ()


def test_groups_that_may_meet_at_a_host_share_the_clock_of_the_later_one() -> None:
    policies = rules(
        'hosts = ["a.org", "b.org"]\ndelay = 1\ngroup = true',
        'hosts = ["b.org", "c.org"]\ndelay = 2\ngroup = true',
        'hosts = ["d.org:8080"]\ndelay = 3\ngroup = true',
        'hosts = ["c.org"]\ndelay = 4',
    )
    assert [policies.of_host(f"{name}.org").gate for name in "abcd"] == ["r0", "r0", "r1", None]
    assert [limit_names(policies, f"{name}.org") for name in "abc"] == [[], ["policy r1"], ["policy r1"]]
    assert limit_names(policies, "d.org:8080") == []


def test_groups_that_never_meet_have_no_shared_limits() -> None:
    policies = rules('hosts = ["*.a.org"]\ndelay = 1\ngroup = true', 'hosts = ["*.b.org"]\ndelay = 1\ngroup = true')
    assert limit_names(policies, "x.a.org") == limit_names(policies, "x.b.org") == []


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("nonsense", None, "not TOML"),
        ('[[policy]]\nname = "a"\nhosts = ["x"\ndelay = 1', None, "line 4"),
        ('[[policy]]\nname = "a"\nhosts = ["x"]\ndelays = 1', 4, "policy 'a': delays: no such key"),
        (
            '[[policy]]\nname = "a"\nhosts = ["x"]\n\n[[policy]]\nname = "b"\nhosts = ["y"]\ndelay = "2"',
            8,
            "'b': delay",
        ),
        ('default = 1\n[[policy]]\nname = "a"\nhosts = ["x"]', 1, "default: no such key"),
        ('[policy]\nname = "a"\nhosts = ["x"]', 1, "list of tables"),
        ("policy = [1]\n", 1, "list of tables"),
        ('[[policy]]\nhosts = ["x"]', 1, "policy 1: name: is missing"),
        ('[[policy]]\nname = "a"\nhosts = ["x"]\n[[policy]]\nname = "a"\nhosts = ["y"]', 5, "stands twice"),
        ('[[policy]]\nname = "a"', 1, "nothing to match"),
        ('[[policy]]\nname = "a"\nhosts = []', 3, "nothing to match"),
        ('[[policy]]\nname = ""\nhosts = ["x"]', 2, "name"),
        ('[[policy]]\nname = 7\nhosts = ["x"]', 2, "policy 1: name: 7 is not a line of text"),
        ('[[policy]]\nname = "a"\nhosts = "x"', 3, "is not a list"),
        ('[[policy]]\nname = "a"\nhosts = [1]', 3, "hosts"),
        ('[[policy]]\nname = "a"\nhosts = ["https://x.org/"]', 3, "is not a host"),
        ('[[policy]]\nname = "a"\nhosts = ["a..b"]', 3, "is not a host"),
        ('[[policy]]\nname = "a"\nhosts = ["*ü.org"]', 3, "is not a host"),
        ('[[policy]]\nname = "a"\nhosts = ["."]', 3, "is not a host"),
        ('[[policy]]\nname = "a"\nhosts = ["a b"]', 3, "is not a host"),
        *(
            (f'[[policy]]\nname = "a"\nhosts = ["x"]\n{bad}', 4, bad.partition(" ")[0])
            for bad in (
                "delay = -1",
                "delay = nan",
                "delay = inf",
                "delay = true",
                f"delay = 1{'0' * 400}",
                "group = 1",
                'quiet = ["mon 8-18"]',
                'quiet = "mon 08:00-18:00 UTC"',
                "max_per_day = 0",
                "max_per_day = 1.5",
                "max_per_day = true",
                "max_per_hour = 0",
                'paused = "no"',
                'skip = ["www.x.org/iiif/*"]',
                'skip = [""]',
                "expensive = 4",
                'expensive = { "*.pdf" = 0.5 }',
                'expensive = { "*.pdf" = "4" }',
                'expensive = { "pdf" = 4 }',
                'method = "POST"',
                'method = "get"',
                "method = []",
                "crawl_delay = 0.5",
                'agreement = "  "',
                "recheck = { ok = 7 }",
                'recheck = { ok = "0d" }',
                'recheck = { ok = "7 days" }',
                'recheck = { never = "7d" }',
                'recheck = "7d"',
            )
        ),
        ('[[policy]]\nname = "a"\ncollections = ["x"]\nagreement = "y"\ncrawl_delay = 1', 5, "needs hosts"),
        ('[[policy]]\nname = "a"\nhosts = ["x"]\n[policy.expensive]\n"*.pdf" = 0', 4, "expensive"),
        ('[[policy]]\nname = "a"\nhosts = ["x"]\n"delay" = -1', 4, "delay"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_key(text: str, line: int | None, told: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse(text, "policies.toml")
    message = str(error.value)
    assert message.startswith("policies.toml:" if line is None else f"policies.toml:{line}: ")
    assert told in message
    assert "\n" not in message


def test_recheck_names_are_those_of_rechecking() -> None:
    assert set(RECHECK_KEYS) <= {part.name for part in Intervals.__attrs_attrs__}


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"missing\.toml: can't be read: No such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(PolicyError, match="not UTF-8"):
        load(tmp_path / "latin.toml")


@given(st.lists(st.tuples(st.sampled_from(["*", "a.org", "*.org", "b.org"]), st.floats(0, 99)), max_size=6))
def test_a_floor_is_the_largest_delay_of_the_rules_that_match(pairs: list[tuple[str, float]]) -> None:
    policies = rules(*(f'hosts = ["{glob}"]\ndelay = {delay!r}' for glob, delay in pairs))
    expected = max((delay for glob, delay in pairs if glob != "b.org"), default=None)
    assert policies.of_host("a.org").floor == expected


def test_a_hundred_rules_and_many_hosts_are_worked_out_once() -> None:
    policies = rules(*(f'hosts = ["*.r{n}.org"]\ndelay = {n}' for n in range(100)))
    first = [policies.of_host(f"h{n}.r{n % 100}.org") for n in range(3000)]
    assert [applied.floor for applied in first] == [float(n % 100) for n in range(3000)]
    assert all(policies.of_host(f"h{n}.r{n % 100}.org") is applied for n, applied in enumerate(first))


def test_several_quotas_hold_together_the_smallest_of_each_window() -> None:
    policies = rules(
        'hosts = ["a.org"]\ncollections = ["c"]\nmax_per_hour = 100\nmax_per_day = 900',
        'hosts = ["a.org"]\nmax_per_hour = 300\nmax_per_day = 500',
    )
    assert policies.of_host("a.org").quotas == (Quota(window=HOURS, most=100), Quota(window=DAYS, most=500))
    (limit,) = policies.of_link("b.org", ("c",)).limits
    assert (limit.spacing, limit.delay) == (96.0, 0.0), "900 a day are fewer than 100 an hour"
