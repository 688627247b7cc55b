"""Checks, before anything is sent, that Scrapy is wired with the components that a crawl needs.

An operator's settings module that imports linkcrawl's may add components. One that replaces a whole table, or switches
on Scrapy's redirects, retries or caches, would send requests past the gates or under another name, or lose records; it
is refused.
"""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from linkcrawl import settings as ours
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.downloader import Downloader
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.network.handler import CheckDownloadHandler

#: Settings that must name this class or a subclass.
CLASSES: dict[str, type] = {"SCHEDULER": Scheduler, "DOWNLOADER": Downloader}
#: Schemes that need our download handler: a check goes on with the outcome that only it makes.
HANDLED = ("http", "https")
#: Tables of components. Ours must be on, and those that settings.py switches off must be off.
TABLES = ("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES")

#: Errors of loading a component by a wrong name.
_UNLOADABLE = (ImportError, NameError, TypeError, ValueError, AttributeError)

_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def check_wiring(settings: BaseSettings) -> None:
    """Raise ConfigError where Scrapy's wiring would break a crawl's promises."""
    for name, wanted in CLASSES.items():
        _check_class(name, settings[name], wanted)
    for name in TABLES:
        _check_table(name, settings, getattr(ours, name))
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    for scheme in HANDLED:
        _check_handler(scheme, handlers.get(scheme))
    if settings.getbool("TWISTED_REACTOR_ENABLED") and settings["TWISTED_REACTOR"] != _REACTOR:
        raise ConfigError(f"TWISTED_REACTOR: {settings['TWISTED_REACTOR']!r} can't be used; {_REACTOR} would work")


def _check_class(name: str, value: Any, wanted: type) -> None:
    path = global_object_name(wanted)
    try:
        found = load_object(value)
    except _UNLOADABLE as fault:
        raise ConfigError(f"{name}: {value!r} can't be loaded ({fault}); {path} would work") from None
    # not issubclass, for which any class with a scheduler's methods is one
    if wanted not in getattr(found, "__mro__", ()):
        raise ConfigError(f"{name}: {_path(value)} would let requests leave past the gates; {path} would work")


def _check_handler(scheme: str, value: Any) -> None:
    path = global_object_name(CheckDownloadHandler)
    try:
        found = load_object(value)
    except _UNLOADABLE:
        found = None
    if CheckDownloadHandler not in getattr(found, "__mro__", ()):
        shown = value if value is None else _path(value)
        raise ConfigError(
            f"DOWNLOAD_HANDLERS: {shown!r} for {scheme} would leave checks without an outcome; {path}, or a subclass, "
            "would work"
        )


def _check_table(name: str, settings: BaseSettings, wanted: dict[str, int | None]) -> None:
    try:
        table = settings.get_component_priority_dict_with_base(name)
    except _UNLOADABLE as fault:
        raise ConfigError(f"{name}: can't be used ({fault}); components and their places would work") from None
    on = {_path(component) for component, place in table.items() if place is not None}
    for component, place in wanted.items():
        if (component in on) != (place is not None):
            asked = "is missing" if place is not None else "is on, which linkcrawl switches off"
            raise ConfigError(
                f"{name}: {component} {asked}; to add to linkcrawl's own, "
                f"{name} = {{**linkcrawl.settings.{name}, 'your.Component': 500}} would work"
            )


def _path(component: Any) -> str:
    return component if isinstance(component, str) else global_object_name(component)
