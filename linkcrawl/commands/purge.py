"""`scrapy purge`: deletes links with their history, by age of retirement, by URL or by collection. Sends nothing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

from linkcrawl.cli.options import OfflineCommand, moment
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Seed
from linkcrawl.stores.contract import Purged, Store
from linkcrawl.stores.opening import open_existing
from linkcrawl.stores.rows import MOST, glob
from linkcrawl.urls.userinfo import without_userinfo

#: Links of one batch, which is deleted whole or not at all.
BATCH = 500


class Command(OfflineCommand):
    """May run beside a crawl. After an interruption, the same command deletes the rest."""

    def syntax(self) -> str:
        return "[--retired-before T] [--url URL] [--collection GLOB] --yes|--dry-run"

    def short_desc(self) -> str:
        return "Delete links with their history"

    def long_desc(self) -> str:
        return (
            "What one of the selectors chooses is deleted: links, their mentions and all their records. --collection "
            "deletes the mentions of these collections, and links that no other live mention has."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--retired-before", metavar="T", help="links that were retired before this time (ISO 8601)")
        parser.add_argument("--url", metavar="URL", action="append", default=[], help="this link; may be repeated")
        parser.add_argument("--collection", metavar="GLOB", help="these collections, and links of no other")
        parser.add_argument("--dry-run", action="store_true", help="count only")
        parser.add_argument("--yes", action="store_true", help="delete, without this nothing is")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        # `--url A B` is what people type
        urls = [*opts.url, *(args if opts.url else ())]
        if args and not opts.url:
            raise ConfigError(f"scrapy purge: {args[0]!r} is not an option; --url {args[0]} would work")
        if opts.retired_before is None and not urls and opts.collection is None:
            raise ConfigError(
                "scrapy purge: nothing is chosen; --retired-before T, --url URL or --collection GLOB would work"
            )
        if opts.yes == opts.dry_run:
            raise ConfigError("scrapy purge: --yes or --dry-run is needed, one of them; nothing was deleted")
        before = moment("--retired-before", opts.retired_before)
        with closing(open_existing(self.config().store)) as store:
            chosen = [] if before is None else [_Chosen(store, retired_before=before)]
            if urls:
                chosen.append(_Chosen(store, urls=urls))
            if opts.collection is not None:
                chosen.append(_Chosen(store, collections=_matching(store, opts.collection)))
            done = sum((one.count() if opts.dry_run else one.purge() for one in chosen), Purged())
        what = "would be deleted" if opts.dry_run else "deleted"
        print(f"{done.links} links {what}, with {done.mentions} mentions and {done.records} records")


class _Chosen:
    """What one selector chooses. Raises ConfigError for a URL that the store doesn't have."""

    def __init__(
        self,
        store: Store,
        *,
        retired_before: float | None = None,
        urls: Iterable[str] = (),
        collections: list[str] | None = None,
    ):
        self._store, self._retired_before, self._collections = store, retired_before, collections
        self._keys = [_key(store, url) for url in urls]

    def count(self) -> Purged:
        """What would be deleted; a mention in a collection of a link that stays is counted, too."""
        store, counts = self._store, Purged()
        for keys in _batches(self._chosen()):
            counts += store.purge(keys, dry_run=True)
        if self._collections is not None:
            counts += Purged(mentions=store.purge_mentions(self._collections, dry_run=True) - counts.mentions)
        return counts

    def purge(self) -> Purged:
        store, counts = self._store, Purged()
        for name in self._collections or ():
            store.retire(MOST, name, time.time())  # so that a crawl leaves them alone from now on
        for keys in _batches(self._chosen()):
            counts += store.purge(keys)
        if self._collections is not None:
            counts += Purged(mentions=store.purge_mentions(self._collections))
        return counts

    def _chosen(self) -> Iterator[bytes]:
        yield from self._keys
        if self._retired_before is not None:
            yield from self._store.retired_before(self._retired_before)
        if self._collections is not None:
            yield from self._store.only_in(self._collections)


def _key(store: Store, url: str) -> bytes:
    url = without_userinfo(url)
    key = link_entry(Seed(url=url)).key
    if store.link(key) is None:
        raise ConfigError(f"scrapy purge: the store has no link {url!r}; nothing was deleted")
    return key


def _matching(store: Store, pattern: str) -> list[str]:
    fits = glob(pattern).fullmatch
    names = [name for name in store.collections() if fits(name)]
    if not names:
        raise ConfigError(f"scrapy purge: no collection matches {pattern!r}; nothing was deleted")
    return names


def _batches(keys: Iterator[bytes]) -> Iterator[list[bytes]]:
    while batch := list(islice(keys, BATCH)):
        yield batch
