"""`scrapy serve`: an HTTP service over the store, beside a crawl or without one."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import closing

from scrapy.utils.log import configure_logging

from linkcrawl.cli.options import OfflineCommand
from linkcrawl.errors import ConfigError
from linkcrawl.service.serve import serve
from linkcrawl.status.snapshot import policies_of
from linkcrawl.stores.opening import open_existing


class Command(OfflineCommand):
    """Reads the store; sends no request to anywhere. Ends on SIGINT and SIGTERM."""

    def syntax(self) -> str:
        return "[--address A] [--port N]"

    def short_desc(self) -> str:
        return "Answer questions about links, checks, collections and hosts over HTTP"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--address", metavar="A", help="where to listen, instead of LINKCRAWL_API_ADDRESS")
        parser.add_argument("--port", metavar="N", type=int, help="instead of LINKCRAWL_API_PORT")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"scrapy serve: {args[0]!r} is not an option; --port 8765 would work")
        config = self.config()
        port = config.api_port if opts.port is None else opts.port
        if not 1 <= port <= 65535:
            raise ConfigError(f"--port: {port} is out of range; 1 to 65535 would work")
        policies = policies_of(config)
        with closing(open_existing(config.store)):  # a mistake in the settings shows now, not at the first request
            pass
        configure_logging(self.settings)
        asyncio.run(serve(config, policies, opts.address or config.api_address, port))
