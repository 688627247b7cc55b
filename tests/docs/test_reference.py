"""The reference pages say what the code does: same names, same defaults, nothing left out, nothing invented."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from scrapy.settings import Settings

import linkcrawl
import linkcrawl.commands
from linkcrawl import settings
from linkcrawl.check import verdict
from linkcrawl.check.recheck import Intervals
from linkcrawl.check.walls import WALLS
from linkcrawl.commands.crawl import EXIT
from linkcrawl.config import KNOWN
from linkcrawl.exports import FORMATS
from linkcrawl.frontier.tasks import INTERNAL_ERROR
from linkcrawl.items import FIELDS_OF_HOP, FIELDS_OF_RECORD, Category, RecordField
from linkcrawl.politeness.policy import file as policy_file
from linkcrawl.politeness.policy.file import RECHECK_KEYS
from linkcrawl.politeness.policy.rules import BUILT_IN
from linkcrawl.politeness.robots.parser import read_robots
from linkcrawl.session import Arguments
from linkcrawl.sources.files import SUFFIXES
from linkcrawl.units import DAY, HOUR
from tests.docs.pages import blocks, read, rows, section, word, words

SETTINGS, RECORD = read("docs/reference/settings.md"), read("docs/reference/record.md")
POLICIES = read("docs/reference/policies.md")
REASONS, COMMANDS = read("docs/reference/reasons.md"), read("docs/reference/commands.md")


def shown(value: Any) -> str:
    """A setting's value as the pages write it."""
    if value is None:
        return "none"
    if value == []:
        return "empty"
    if isinstance(value, str | bool):
        return f"`{value}`"
    return f"`{value:g}`"


def test_own_settings_are_documented_with_their_defaults() -> None:
    documented = {
        word(name): (default, where) for name, default, where, _ in rows(section(SETTINGS, "linkcrawl's own"))
    }
    assert documented == {
        name: (shown(known.default), "yes" if known.environment else "no") for name, known in KNOWN.items()
    }


def test_scrapy_settings_are_documented_with_their_values() -> None:
    documented = {word(name): value for name, value, _ in rows(section(SETTINGS, "Scrapy's, as linkcrawl sets them"))}
    wired = {
        name: value
        for name, value in vars(settings).items()
        if name.isupper() and name not in {*KNOWN, "KNOWN", "RECORD_FIELDS"}
    }
    assert documented == {
        name: "see settings.py" if isinstance(value, dict | list) else shown(value) for name, value in wired.items()
    }


def test_record_fields_are_documented_in_their_order() -> None:
    documented = [(word(name), kind) for name, kind, _ in rows(RECORD.partition("\n## ")[0])]
    assert documented == [(part.name, kind_of(part)) for part in FIELDS_OF_RECORD]


def test_hop_fields_are_documented_in_their_order() -> None:
    documented = [(word(name), kind) for name, kind, _ in rows(section(RECORD, "Hops"))]
    assert documented == [(part.name, kind_of(part)) for part in FIELDS_OF_HOP]


def kind_of(part: RecordField) -> str:
    """A field's type as the page writes it."""
    return f"{part.type.name} or null" if part.null else part.type.name


def test_categories_are_documented() -> None:
    assert [word(name) for name, _ in rows(section(RECORD, "Categories"))] == [str(category) for category in Category]


COMMAND_NAMES = sorted(module.name for module in pkgutil.iter_modules(linkcrawl.commands.__path__))


def documented_commands() -> list[str]:
    return sorted(line.split()[2] for line in COMMANDS.splitlines() if line.startswith("## scrapy "))


def test_every_command_is_documented_and_no_other() -> None:
    assert documented_commands() == COMMAND_NAMES


def own_options(command: str) -> set[str]:
    """The options that a command adds to Scrapy's global ones, each by its longest name."""
    made = importlib.import_module(f"linkcrawl.commands.{command}").Command()
    made.settings = Settings()
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    made.add_options(parser)
    common = {"Global Options", "options"} if command == "crawl" else {"Global Options"}
    actions = [
        action for group in parser._action_groups if group.title not in common for action in group._group_actions
    ]
    return {max(action.option_strings, key=len) for action in actions if action.option_strings} - {"--help"}


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_every_option_of_a_command_is_documented_and_no_other(command: str) -> None:
    text = section(COMMANDS, f"scrapy {command}")
    documented = {option for option in words(text) if option.startswith("--")}
    assert {option.split()[0] for option in documented} == own_options(command)


def test_every_argument_of_the_crawl_is_documented_and_no_other() -> None:
    documented = [word(name).split("=")[0] for name, _ in rows(section(COMMANDS, "scrapy crawl")) if "=" in name]
    assert documented == [part.name for part in attrs.fields(Arguments)]


def test_every_reason_is_documented_with_its_category_and_meaning() -> None:
    documented = [(word(name), word(category), meaning) for name, category, meaning in rows(section(REASONS, "Words"))]
    assert documented == [(name, str(category), meaning) for name, (category, meaning) in verdict.REASONS.items()]


def test_every_status_is_documented_with_its_category_and_meaning() -> None:
    documented = [
        (word(name), word(category), meaning) for name, category, meaning in rows(section(REASONS, "Statuses"))
    ]
    assert documented == [
        (f"http_{status}", str(category), meaning) for status, (category, meaning) in verdict.HTTP.items()
    ]


def test_every_sign_of_a_wall_is_documented_with_its_source() -> None:
    documented = [
        ("" if product == "none" else word(product), sign, source)
        for product, sign, source in rows(section(read("docs/reference/walls.md"), "Signs"))
    ]
    assert documented == [(product, sign.about, sign.source) for product, signs in WALLS.items() for sign in signs]


def test_every_suffix_of_seeds_is_documented() -> None:
    named = [
        suffix
        for cell, _ in rows(section(read("docs/operator.md"), "Seeds").partition("| field")[0])
        for suffix in words(cell)
    ]
    assert sorted(named) == sorted(SUFFIXES)


def test_intervals_are_documented_with_their_defaults() -> None:
    told = Intervals()
    suspected = ", ".join(days(interval) for interval in told.suspected)
    assert dict(rows(section(read("docs/operator.md"), "When a link is asked again"))) == {
        "`Ok`": f"{days(told.ok)}, then {told.ok_growth:g} times as long each time, up to {days(told.ok_longest)}",
        "`Broken`, suspected": suspected,
        "`Broken`, confirmed": days(told.broken),
        "`Undetermined`": f"{told.transient / HOUR:g} hours, then {told.transient_growth:g} times as long each time, "
        f"up to {days(told.transient_longest)}",
        "`Restricted_Access`, disallowed by robots.txt or policy, challenged": days(told.restricted),
        "`Invalid_URL`": days(told.invalid),
    }


def days(seconds: float) -> str:
    return f"{seconds / DAY:g} days" if seconds > DAY else "1 day"


@pytest.mark.parametrize("example", blocks(read("docs/administrators.md"), "robots"))
def test_robots_examples_mean_what_the_page_says(example: str) -> None:
    """Each example closes what its Disallow lines name and asks for the delay that its Crawl-delay names."""
    robots = read_robots(example.encode(), "linkcrawl")
    asked = [line.split(": ")[1] for line in example.splitlines() if line.startswith("Crawl-delay")]
    closed = [line.split(": ")[1] for line in example.splitlines() if line.startswith("Disallow")]
    assert {line.split(": ")[0] for line in example.splitlines()} <= {"User-agent", "Crawl-delay", "Disallow"}
    assert asked or closed
    assert robots.pace.crawl_delay == (float(asked[0]) if asked else None)
    assert robots.ignored == ()
    for rule in closed:
        assert not robots.allowed("http://host" + rule.replace("*", "x").rstrip("$"))
    assert robots.allowed("http://host/item/1") == ("/" not in closed)


def test_policy_keys_are_documented_in_their_order() -> None:
    documented = {word(key): meaning for key, _, meaning in rows(POLICIES)}
    assert list(documented) == list(policy_file.READERS)
    assert tuple(words(documented["recheck"])[1:]) == RECHECK_KEYS


@pytest.mark.parametrize("example", blocks(POLICIES, "toml"))
def test_policy_examples_are_policies(example: str) -> None:
    rules = policy_file.parse(example, "example").rules
    assert [rule.name for rule in rules] == ["museum", "harvest of the north", "archive, as agreed"]


def test_the_built_in_policy_is_documented() -> None:
    assert f"`{BUILT_IN.hosts[0]}` and `{BUILT_IN.hosts[1]}` at {BUILT_IN.delay:g} s" in POLICIES


def test_export_formats_are_documented() -> None:
    (formats,) = [meaning for option, meaning in rows(section(COMMANDS, "scrapy export")) if "--format" in option]
    assert tuple(words(formats)) == tuple(FORMATS)


def test_every_reason_why_a_crawl_ends_is_documented_with_its_status() -> None:
    table = rows(section(read("docs/operator.md"), "Why a crawl ended"))
    documented = {word(reason): int(status) for reason, status, _ in table}
    ours = re.compile(r"""(?:engine\.close|CloseSpider)\(["']?(\w+)""")
    sources = Path(linkcrawl.__file__).parent.rglob("*.py")
    given = {reason for path in sources for reason in ours.findall(path.read_text())} - {"reason"}
    given = {INTERNAL_ERROR if reason == "INTERNAL_ERROR" else reason for reason in given}
    assert documented.keys() == given | {reason for reason in EXIT if reason is not None}
    assert documented == {reason: EXIT.get(reason, 1) for reason in documented}
