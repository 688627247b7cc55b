"""What `scrapy simulate` makes of a store, of seeds and of an imagined catalogue, and what it tells."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.settings import Settings

from linkcrawl.config import Config, read_config
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Act, HostMemory, Order, Seed
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.file import parse
from linkcrawl.politeness.policy.limits import WINDOWS
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.simulation.scenario import Scenario, run_scenario
from linkcrawl.simulation.workload import LinkKind, Workload, of_catalogue, of_sources, of_store
from linkcrawl.stores.opening import open_store
from tests.site.client import ROOT

NOW = 1_800_000_000.0
DAY = 86400.0
PROFILE = ROOT / "benchmarks" / "catalogue_profile.json"


@pytest.fixture(scope="module")
def config() -> Config:
    settings = Settings()
    settings.setmodule("linkcrawl.settings")
    return read_config(settings, need_contact=False)


def told(work: Workload, config: Config, rules: str = "", hosts: HostStateCache | None = None) -> Scenario:
    policies = parse(rules, "policies.toml") if rules else Policies()
    return run_scenario(work, config, policies, hosts or HostStateCache(), NOW)


def test_a_catalogue_has_its_shape_and_the_crawl_is_as_short_as_can_be(config: Config) -> None:
    """The goal is 1.02 for five million links on 4,000 hosts; benchmarks/RESULTS.md has that run."""
    work, answer_times = of_catalogue(PROFILE, 50_000, 400)
    assert sum(work.values()) == pytest.approx(50_000, rel=0.02)
    resolver = [kind for kind in work if kind.host == "hdl.handle.net"]
    assert sum(work[kind] for kind in resolver) == pytest.approx(22_000, rel=0.02)
    assert all(kind.redirect_host for kind in resolver)
    made = run_scenario(work, config, Policies(), HostStateCache(), NOW, answer_times=answer_times)
    assert made.result.makespan <= 1.02 * made.result.bound


def test_what_a_delay_costs_and_what_a_group_costs(config: Config) -> None:
    work: Workload = Workload({LinkKind("a.example.org"): 1000, LinkKind("b.example.org"): 1000})
    free = told(work, config).result.makespan
    slow = told(work, config, '[[policy]]\nname = "slow"\nhosts = ["a.example.org"]\ndelay = 10').result.makespan
    group = '[[policy]]\nname = "one"\nhosts = ["*.example.org"]\ngroup = true\ndelay = 10'
    grouped = told(work, config, group)
    assert free < 1000 * 4
    assert slow == pytest.approx(1000 * 10.44, rel=0.01)
    assert grouped.result.makespan == pytest.approx(2000 * 10.44, rel=0.01)
    assert grouped.times[0].name == "policy one"
    assert grouped.origins["policy one"] == "policy one"


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        ('collections = ["Slow *"]\ndelay = 7', 99 * 7.0),
        *((f'collections = ["Slow *"]\n{window.key} = 50', 99 * window.seconds / 50) for window in WINDOWS),
        *((f'hosts = ["a.example.org"]\n{window.key} = 50', 100 * window.seconds / 50) for window in WINDOWS),
        ('providers = ["P"]\ndelay = 9', 99 * 9.0),
    ],
)
def test_spacings_and_quotas_count(config: Config, rule: str, seconds: float) -> None:
    work: Workload = Workload({LinkKind("a.example.org", ("Slow one",), ("P",)): 100})
    made = told(work, config, f'[[policy]]\nname = "it"\n{rule}')
    assert made.result.makespan == pytest.approx(seconds, rel=0.02)


def test_paused_links_stay_due(config: Config) -> None:
    work: Workload = Workload({LinkKind("a.example.org"): 10, LinkKind("b.example.org"): 5})
    made = told(work, config, '[[policy]]\nname = "wait"\nhosts = ["a.example.org"]\npaused = true')
    assert made.result.left == 10
    assert set(made.result.ends) == {"b.example.org"}


def test_links_of_blocked_hosts_stay_due(config: Config) -> None:
    """Blocked by a person, or since it turned us away."""
    work: Workload = Workload(
        {LinkKind("a.example.org"): 10, LinkKind("b.example.org"): 5, LinkKind("c.example.org"): 3}
    )
    book = HostStateCache([HostMemory(host="b.example.org", pace=pace_to_row(Pace(blocked_since=NOW - 60)))])
    orders = {"a.example.org": Order(host="a.example.org", at=NOW - 60, act=Act.BLOCK, reason="asked to")}
    made = run_scenario(work, config, Policies(), book, NOW, orders=orders)
    assert made.result.left == 15
    assert set(made.result.ends) == {"c.example.org"}


def test_what_is_remembered_of_hosts_counts(config: Config) -> None:
    """Its answer time, and that it shares its server with another."""
    book = HostStateCache(
        [
            HostMemory(host="a.example.org", pace=pace_to_row(Pace(answer_time=4.0))),
            HostMemory(host="b.example.org", pace={"gate": "a.example.org"}),
        ]
    )
    work: Workload = Workload({LinkKind("a.example.org"): 10, LinkKind("b.example.org"): 10})
    made = told(work, config, hosts=book)
    assert [time.name for time in made.times] == ["a.example.org"]
    assert made.times[0].delay == pytest.approx(20.0)
    assert made.times[0].requests == 22


def seeds() -> list[Seed]:
    return [
        Seed(url="https://a.example.org/1", collection="Slow"),
        Seed(url="https://a.example.org/1", collection="Other", provider="P"),
        Seed(url="https://a.example.org/2", collection="Other"),
        Seed(url="https://b.example.org/1", collection="Slow"),
        Seed(url="mailto:someone@example.org", collection="Slow"),
    ]


def test_a_store_is_counted_with_the_collections_that_rules_space(tmp_path: Path) -> None:
    rules = parse('[[policy]]\nname = "it"\ncollections = ["Slow"]\ndelay = 7', "policies.toml")
    with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as store:
        store.add([link_entry(seed) for seed in seeds()])
        assert of_store(store, rules, NOW) == {
            LinkKind("a.example.org", ("Slow",)): 1,
            LinkKind("a.example.org"): 1,
            LinkKind("b.example.org", ("Slow",)): 1,
        }


def test_sources_are_counted_by_link(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    rows = [{"url": seed.url, "collection": seed.collection, "provider": seed.provider} for seed in seeds()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert of_sources([str(path)]) == {
        LinkKind("a.example.org", ("Other", "Slow"), ("P",)): 1,
        LinkKind("a.example.org", ("Other",)): 1,
        LinkKind("b.example.org", ("Slow",)): 1,
    }


@pytest.mark.parametrize("text", ["", "[]", '{"zipf": 1}'])
def test_a_profile_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"profile\.json"):
        of_catalogue(path, 10, 2)
