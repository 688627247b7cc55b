"""A policy file that is watched: what comes into force when, and what doesn't."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from linkcrawl.errors import PolicyError
from linkcrawl.politeness.policy.file import SETTLED, PolicyFile
from linkcrawl.politeness.policy.rules import Policies

#: A time at which every file was written long ago.
LATER = math.inf


def test_a_changed_file_comes_into_force_and_a_bad_one_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text('[[policy]]\nname = "a"\nhosts = ["x"]\ndelay = 1')
    watched = PolicyFile(path)
    good = watched.policies
    assert watched.poll(LATER) is None

    path.write_text("delay = 1")
    assert isinstance(watched.poll(LATER), PolicyError)
    assert watched.poll(LATER) is None
    path.unlink()
    assert isinstance(watched.poll(LATER), PolicyError)
    assert watched.poll(LATER) is None
    assert watched.policies is good

    path.write_text('[[policy]]\nname = "a"\nhosts = ["x"]\ndelay = 2')
    again = watched.poll(LATER)
    assert isinstance(again, Policies)
    assert watched.policies is again
    assert again.of_host("x").floor == 2.0
    assert watched.poll(LATER) is None


def test_what_was_bad_and_is_as_before_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text('[[policy]]\nname = "a"\nhosts = ["x"]')
    watched = PolicyFile(path)
    path.write_text("bad")
    watched.poll(LATER)
    path.write_text('[[policy]]\nname = "a"\nhosts = ["x"]')
    assert isinstance(watched.poll(LATER), Policies)


@pytest.mark.parametrize("half", ["", '[[policy]]\nname = "a"\nhosts = ["x"]\n', '[[policy]]\nname = "a'])
def test_half_of_a_file_that_is_being_written_is_not_taken(tmp_path: Path, half: str) -> None:
    path = tmp_path / "policies.toml"
    whole = '[[policy]]\nname = "a"\nhosts = ["x"]\npaused = true\n'
    path.write_text(whole)
    watched = PolicyFile(path)
    good = watched.policies
    path.write_text(half)
    os.utime(path, (1000.0, 1000.0))
    assert watched.poll(1000.0 + SETTLED / 2) is None
    path.write_text(whole)
    assert watched.poll(LATER) is None
    assert watched.policies is good

    path.write_text(half)
    os.utime(path, (1000.0, 1000.0))
    assert watched.poll(1000.0 + SETTLED) is not None  # what stays so is meant


def test_a_file_from_a_machine_whose_clock_is_ahead_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text("")
    watched = PolicyFile(path)
    path.write_text('[[policy]]\nname = "a"\nhosts = ["x"]\n')
    os.utime(path, (2000.0, 2000.0))
    assert isinstance(watched.poll(1000.0), Policies)
