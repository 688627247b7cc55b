"""The files of deploy/ say what their programs understand, and speak of what exists here."""

from __future__ import annotations

import grp
import gzip
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from linkcrawl.config import KNOWN
from tests.crawl.test_metrics import ALONE, CLUSTER
from tests.deploy.judges import TOLD, metrics_in, needed
from tests.site.client import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
UNITS = sorted((DEPLOY / "systemd").glob("*.service")) + sorted((DEPLOY / "systemd").glob("*.timer"))


def test_compose_names_what_there_is() -> None:
    told = yaml.safe_load(COMPOSE.read_text())
    services = told["services"]
    assert {"worker", "mongo", "redis"} <= set(services)
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in told["volumes"] or (DEPLOY / "compose" / source).exists(), volume
    build = services["worker"]["build"]
    context = DEPLOY / "compose" / build["context"]
    assert (context / build["dockerfile"]).exists()
    assert {name for name, known in KNOWN.items() if known.environment} >= set(services["worker"]["environment"])


def test_compose_is_understood(tmp_path: Path) -> None:
    """By the schema of its makers; where docker has compose, by its own judgement too."""
    judge = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    judged = subprocess.run([*judge, COMPOSE], capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout
    spoiled = tmp_path / "compose.yaml"
    spoiled.write_text(COMPOSE.read_text().replace("retries:", "retrys:"))
    assert subprocess.run([*judge, spoiled], capture_output=True).returncode == 1, "it takes anything"
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        command = [docker, "compose", "--file", str(COMPOSE), "config", "--quiet"]
        environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "LINKCRAWL_CONTACT": "mailto:ops@example.org"}
        judged = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert judged.returncode == 0, judged.stderr


def test_the_image_installs_extras_that_exist() -> None:
    (asked,) = re.findall(r"/src\[([\w,]+)\]", (DEPLOY / "compose" / "Dockerfile").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(asked.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_are_understood(unit: Path, tmp_path: Path) -> None:
    program = needed("systemd-analyze")
    scrapy = str(Path(sys.executable).parent / "scrapy")
    for each in UNITS:
        text = each.read_text().replace("/srv/linkcrawl/.venv/bin/scrapy", scrapy)
        (tmp_path / each.name.replace("@.", "@1.")).write_text(text)
    made = tmp_path / unit.name.replace("@.", "@1.")
    judged = subprocess.run([program, "verify", "--man=no", str(made)], capture_output=True, text=True)
    told = [line for line in judged.stderr.splitlines() if str(tmp_path) in line or unit.name.split("@")[0] in line]
    assert told == []


def test_the_dashboard_shows_metrics_that_are_told() -> None:
    dashboard: dict[str, Any] = json.loads((DEPLOY / "grafana" / "linkcrawl.json").read_text())
    shown = {
        name for panel in dashboard["panels"] for target in panel["targets"] for name in metrics_in(target["expr"])
    }
    assert shown <= TOLD
    left_out = {"linkcrawl_robots_asked", "linkcrawl_store_lost"}  # the log and an alert tell them
    assert {name.removesuffix("_total") for name in shown} == (ALONE | CLUSTER) - left_out
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_prometheus_asks_at_the_port_that_workers_serve() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    worker = yaml.safe_load(COMPOSE.read_text())["services"]["worker"]
    assert str(job["dns_sd_configs"][0]["port"]) == worker["environment"]["LINKCRAWL_METRICS_PORT"]


def test_the_environment_of_the_units_is_known() -> None:
    lines = (DEPLOY / "systemd" / "environment.example").read_text().splitlines()
    names = {line.split("=")[0] for line in lines if not line.startswith("#")}
    assert names <= {name for name, known in KNOWN.items() if known.environment}


def test_logs_are_cut_in_place(tmp_path: Path) -> None:
    """A crawl keeps its files open: a log that is moved away would go on growing there."""
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    told = (DEPLOY / "logrotate" / "linkcrawl").read_text().replace("su linkcrawl linkcrawl", f"su {user} {group}")
    (tmp_path / "rules").write_text(re.sub(r"(?=/srv/|/var/)", str(tmp_path), told))
    (tmp_path / "rules").chmod(0o600)  # logrotate obeys no file that others may write to
    command = [needed("logrotate"), "--force", "--state", str(tmp_path / "state"), str(tmp_path / "rules")]
    folder = tmp_path / "srv/linkcrawl"
    folder.mkdir(parents=True)
    with (folder / "audit.jsonl").open("a") as written:
        for day in range(3):
            print("day", day, file=written, flush=True)
            rotated = subprocess.run(command, capture_output=True, text=True)
            assert rotated.returncode == 0, rotated.stderr
        print("day 3", file=written, flush=True)
    assert (folder / "audit.jsonl").read_text() == "day 3\n"
    parts = [path for path in folder.iterdir() if path.name != "audit.jsonl"]
    assert len(parts) == 3
    kept = [gzip.decompress(part.read_bytes()) if part.suffix == ".gz" else part.read_bytes() for part in parts]
    assert sorted(kept) == [b"day 0\n", b"day 1\n", b"day 2\n"]


def test_metrics_are_documented() -> None:
    told = (ROOT / "docs" / "deployment.md").read_text()
    rows = [line.split("|")[1] for line in told.splitlines() if line.startswith("| `linkcrawl_")]
    documented = {name.removesuffix("_total") for row in rows for name in metrics_in(row)}
    assert documented == ALONE | CLUSTER
