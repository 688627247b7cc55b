"""A real scrapyd: scrapyd-client packs and deploys the project, a job is scheduled, its log and items are seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.crawl.harness import LIMIT, environment, until
from tests.ports import free_port
from tests.site.client import ROOT, running_site
from tests.site.crowds import healthy

BIN = Path(sys.executable).parent


@frozen
class Scrapyd:
    """A running scrapyd; `folder` is where it keeps eggs, logs and items."""

    url: str
    folder: Path

    def ask(self, path: str, **data: str | list[str]) -> Any:
        body = urllib.parse.urlencode(data, doseq=True).encode() if data else None
        with urllib.request.urlopen(f"{self.url}/{path}", body, timeout=60) as answer:
            told = json.load(answer)
        assert told["status"] == "ok", told
        return told

    def jobs(self, state: str) -> list[str]:
        return [job["id"] for job in self.ask("listjobs.json?project=linkcrawl")[state]]


@pytest.fixture(scope="module")
def scrapyd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """As an operator starts it: settings that all jobs share come from its environment."""
    folder = tmp_path_factory.mktemp("scrapyd")
    port = free_port()
    conf = (ROOT / "deploy" / "scrapyd" / "scrapyd.conf").read_text().replace("http_port = 6800", f"http_port = {port}")
    (folder / "scrapyd.conf").write_text(conf)
    told = {"LINKCRAWL_CONTACT": "mailto:ops@example.org", "LINKCRAWL_STORE": f"sqlite:///{folder}/links.db"}
    # Without the checkout on the path: what runs is the egg.
    kept = {
        name: value for name, value in environment().items() if name not in ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE")
    }
    with (folder / "scrapyd.log").open("wb") as log:
        process = subprocess.Popen([BIN / "scrapyd"], cwd=folder, env=kept | told, stdout=log, stderr=log)
    running = Scrapyd(f"http://127.0.0.1:{port}", folder)
    try:
        until(lambda: answers(running), "scrapyd answers")
        yield running
    finally:
        process.terminate()
        process.wait(60)


def answers(scrapyd: Scrapyd) -> bool:
    try:
        return bool(scrapyd.ask("daemonstatus.json"))
    except OSError:
        return False


def deploy(scrapyd: Scrapyd, folder: Path) -> subprocess.CompletedProcess[str]:
    """scrapyd-deploy in a copy of what it packs: it leaves its build beside it."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "linkcrawl", folder / "linkcrawl", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text().replace("http://127.0.0.1:6800/", scrapyd.url))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LINKCRAWL_", "SCRAPY_"))}
    command = [BIN / "scrapyd-deploy", "--version", "test"]
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=LIMIT)


def test_a_deployed_crawl_runs_and_tells(scrapyd: Scrapyd, tmp_path: Path) -> None:
    packing = tmp_path / "packing"
    packing.mkdir()
    deployed = deploy(scrapyd, packing)
    assert '"status": "ok"' in deployed.stdout, deployed.stdout + deployed.stderr
    assert "resourceproxies" in scrapyd.ask("listspiders.json?project=linkcrawl")["spiders"]
    with running_site(tmp_path, hosts=2) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(2) for page in range(2)]
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("\n".join(urls))
        job = scrapyd.ask(
            "schedule.json",
            project="linkcrawl",
            spider="resourceproxies",
            seeds=str(seeds),
            setting=["DOWNLOAD_DELAY=0.1", "LINKCRAWL_ALLOWED_NETWORKS=127.0.0.0/8"],
        )["jobid"]
        until(lambda: job in scrapyd.jobs("finished"), "the job ends")
    log = (scrapyd.folder / "logs" / "linkcrawl" / "resourceproxies" / f"{job}.log").read_text()
    assert "Spider closed (finished)" in log
    (items,) = (scrapyd.folder / "items" / "linkcrawl" / "resourceproxies").glob(f"{job}*")
    assert {json.loads(line)["url"] for line in items.read_text().splitlines()} == set(urls)
    assert (scrapyd.folder / "links.db").exists()  # as the environment said


def test_a_cancelled_job_ends_in_good_order(scrapyd: Scrapyd, tmp_path: Path) -> None:
    with running_site(tmp_path, hosts=1) as site:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("\n".join(site.url(healthy(0), f"/slow{page}") for page in range(200)))
        job = scrapyd.ask(
            "schedule.json",
            project="linkcrawl",
            spider="resourceproxies",
            seeds=str(seeds),
            setting=["LINKCRAWL_ALLOWED_NETWORKS=127.0.0.0/8"],
        )["jobid"]
        until(lambda: site.count() > 2, "it is at work")
        began = time.monotonic()
        scrapyd.ask("cancel.json", project="linkcrawl", job=job)
        until(lambda: job in scrapyd.jobs("finished"), "the job ends")
        assert time.monotonic() - began < 60  # its pages would take longer
    log = (scrapyd.folder / "logs" / "linkcrawl" / "resourceproxies" / f"{job}.log").read_text()
    assert "Spider closed (shutdown)" in log


def test_a_job_that_is_refused_says_why_in_its_log(scrapyd: Scrapyd) -> None:
    job = scrapyd.ask("schedule.json", project="linkcrawl", spider="resourceproxies", seeds="/no/such/file")["jobid"]
    until(lambda: job in scrapyd.jobs("finished"), "the job ends")
    log = (scrapyd.folder / "logs" / "linkcrawl" / "resourceproxies" / f"{job}.log").read_text()
    assert log.startswith("linkcrawl: seeds: '/no/such/file'")
