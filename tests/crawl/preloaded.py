"""Imported by the process that crawls of tests are forked from (starting.py): it imports all that commands need."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import scrapy.cmdline  # noqa: F401

import linkcrawl

for module in pkgutil.walk_packages(linkcrawl.__path__, "linkcrawl."):
    importlib.import_module(module.name)
assert "twisted.internet.reactor" not in sys.modules, "each crawl chooses its own"
