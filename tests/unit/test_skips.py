"""A test that is skipped is seen: on CI it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SKIPS = """
import pytest

@pytest.fixture
def lacking():
    pytest.skip("lack 1")

def test_by_its_fixture(lacking): pass

@pytest.mark.skipif(True, reason="lack 2")
def test_by_a_mark(): pass

def test_in_its_body(): pytest.skip("lack 3")

@pytest.mark.xfail(reason="known")
def test_of_a_known_fault(): assert False

def test_that_runs(): pass
"""
MODULE = 'import pytest\npytest.importorskip("no_such_module", reason="lack 4")\n'


@pytest.mark.parametrize("ci", [True, False])
def test_what_is_skipped_fails_on_ci_and_only_there(tmp_path: Path, ci: bool) -> None:
    (tmp_path / "test_some.py").write_text(SKIPS)
    (tmp_path / "test_module.py").write_text(MODULE)
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-rsfE", "--color=no"]
    command += ["--continue-on-collection-errors", f"--rootdir={tmp_path}", str(tmp_path)]
    ended = subprocess.run(
        command, cwd=ROOT, env=kept | ({"CI": "true"} if ci else {}), capture_output=True, text=True, timeout=120
    )
    counts = ended.stdout.splitlines()[-1]
    assert ended.returncode == int(ci), ended.stdout
    assert [lack for lack in ("lack 1", "lack 2", "lack 3", "lack 4") if lack not in ended.stdout] == []
    assert "1 passed" in counts
    assert "1 xfailed" in counts
    assert ("skipped" in counts) is not ci
