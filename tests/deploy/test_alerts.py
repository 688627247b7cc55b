"""Prometheus reads its files, and its alerts fire in each kind of trouble and in no other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.judges import TOLD, metrics_in, needed
from tests.site.client import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((PROMETHEUS / "linkcrawl.rules.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def promtool(*arguments: str) -> str:
    judged = subprocess.run([needed("promtool"), *arguments], capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    return judged.stdout


def test_alerts_are_about_metrics_that_are_told() -> None:
    for rule in alerts():
        assert {"alert", "expr", "labels", "annotations"} <= set(rule)
        assert metrics_in(rule["expr"]) <= TOLD, rule["alert"]
    used = {name for rule in alerts() for name in metrics_in(rule["expr"])}
    assert {"linkcrawl_bans_total", "linkcrawl_lease_losses_total", "linkcrawl_lag_seconds"} <= used


def test_prometheus_understands_its_files() -> None:
    told = promtool("check", "config", str(PROMETHEUS / "prometheus.yml"))
    assert f"{len(alerts())} rules found" in told


#: Two hours of a healthy crawl, a value a minute, as promtool writes series: START+STEPxTIMES.
HEALTHY = {
    'up{job="linkcrawl", instance="worker:9410"}': "1+0x120",
    "linkcrawl_checks_total": "0+60x120",
    "linkcrawl_backlog": "1000+0x120",
    "linkcrawl_bans_total": "0+0x120",
    "linkcrawl_store_lost": "0+0x120",
    "linkcrawl_lease_losses_total": "0+0x120",
    "linkcrawl_redis_calls_total": "0+600x120",
    "linkcrawl_redis_seconds_total": "0+1x120",
    "linkcrawl_lag_seconds": "3600+0x120",
    'linkcrawl_checks_by_category_total{category="Ok"}': "0+55x120",
    'linkcrawl_checks_by_category_total{category="Undetermined"}': "0+5x120",
}
#: What is otherwise, and the alerts that it makes within these two hours.
TROUBLES: dict[str, tuple[dict[str, str], set[str]]] = {
    "none": ({}, set()),
    "nothing is left to do": ({"linkcrawl_checks_total": "7200+0x120", "linkcrawl_backlog": "0+0x120"}, set()),
    "a worker is restarted": ({'up{job="linkcrawl", instance="worker:9410"}': "1+0x110 0+0x2 1+0x8"}, set()),
    "a worker is gone": ({'up{job="linkcrawl", instance="worker:9410"}': "1+0x60 0+0x60"}, {"LinkcrawlDown"}),
    "all workers are gone": (dict.fromkeys(HEALTHY, "1+0x60 stale"), {"LinkcrawlGone"}),
    "it stands still": ({"linkcrawl_checks_total": "7200+0x120"}, {"LinkcrawlNothingChecked"}),
    "a host bans it": ({"linkcrawl_bans_total": "0+0x100 1+0x20"}, {"LinkcrawlBanned"}),
    "a ban of long ago": ({"linkcrawl_bans_total": "0+0x10 1+0x110"}, set()),
    "the store is away": ({"linkcrawl_store_lost": "0+0x110 1+0x10"}, {"LinkcrawlStoreLost"}),
    "leases are lost": ({"linkcrawl_lease_losses_total": "0+0x100 0+1x20"}, {"LinkcrawlLeasesLost"}),
    "a lease is lost": ({"linkcrawl_lease_losses_total": "0+0x100 1+0x20"}, set()),
    "redis is slow": ({"linkcrawl_redis_seconds_total": "0+300x120"}, {"LinkcrawlRedisSlow"}),
    "links wait": ({"linkcrawl_lag_seconds": "700000+0x120"}, {"LinkcrawlBehind"}),
    "our own network is down": (
        {'linkcrawl_checks_by_category_total{category="Undetermined"}': "0+90x120"},
        {"LinkcrawlManyUndetermined"},
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path, trouble: str) -> None:
    change, expected = TROUBLES[trouble]
    asked = {
        "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": "2h",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)],
    }
    series = [{"series": name, "values": values} for name, values in (HEALTHY | change).items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
    rules = str(PROMETHEUS / "linkcrawl.rules.yml")
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": [rules], "tests": [test]}))
    promtool("test", "rules", str(tmp_path / "test.yml"))


def test_every_alert_is_tried() -> None:
    assert {name for _, expected in TROUBLES.values() for name in expected} == {rule["alert"] for rule in alerts()}
