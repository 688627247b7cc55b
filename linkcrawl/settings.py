"""The wiring: which Scrapy component is ours, which is off, and every default with its reason.

LINKCRAWL_ defaults stand in config.KNOWN; those marked there may come from the environment, which beats this file
and is beaten by `-s`.
"""

import os

from linkcrawl.config import KNOWN
from linkcrawl.items import RECORD_FIELDS

BOT_NAME = "linkcrawl"
SPIDER_MODULES = ["linkcrawl.spiders"]
NEWSPIDER_MODULE = "linkcrawl.spiders"
COMMANDS_MODULE = "linkcrawl.commands"

for _name, _known in KNOWN.items():
    globals()[_name] = os.environ.get(_name, _known.default) if _known.environment else _known.default

# Pace. The gates of the frontier keep it; docs/politeness.md has the arithmetic.
DOWNLOAD_DELAY = 1.0
DOWNLOAD_DELAY_JITTER = 0  # the default shortens every other gap by up to half
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_TARGET_CONCURRENCY = 0.2  # wait five times the server's own answer time
AUTOTHROTTLE_MAX_DELAY = 60
CONCURRENT_REQUESTS = 512
CONCURRENT_REQUESTS_PER_DOMAIN = 1
ROBOTSTXT_OBEY = True

# Cost. Measured: 100 item workers a response are half of a stock crawl's processor time.
CONCURRENT_ITEMS = 1

# The way of a request.
SCHEDULER = "linkcrawl.frontier.scheduler.Scheduler"
DOWNLOADER = "linkcrawl.frontier.downloader.Downloader"
DOWNLOAD_HANDLERS = {
    "http": "linkcrawl.network.handler.CheckDownloadHandler",
    "https": "linkcrawl.network.handler.CheckDownloadHandler",
    "data": None,
    "file": None,
    "ftp": None,
    "s3": None,
}
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "linkcrawl.politeness.robots.middleware.RobotsTxtMiddleware": 100,
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,  # our own deadline
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,  # the scheduler says who asks
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,  # the check decides what is asked again
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,  # nothing is decompressed
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,  # every hop goes back to the frontier
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,  # a jar lives for one check only
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,  # writes every request out to count its bytes
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,  # every status is an outcome
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,  # nothing of one host is told to another
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
}
EXTENSIONS = {
    "scrapy.extensions.throttle.AutoThrottle": None,
    "linkcrawl.politeness.autothrottle.AutoThrottle": 0,
    "scrapy.extensions.corestats.CoreStats": None,
    "linkcrawl.extensions.stats.CoreStats": 0,
    "linkcrawl.extensions.gc_tuning.GcTuning": 0,
    "scrapy.extensions.logstats.LogStats": None,  # progress says more
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.feedexport.FeedExporter": None,
    "linkcrawl.extensions.feeds.FeedExporter": 0,
    "linkcrawl.extensions.progress.Progress": 0,
    "linkcrawl.extensions.metrics.Metrics": 0,
}
ITEM_PIPELINES = {"linkcrawl.pipelines.records.RecordsPipeline": 900}
STATS_CLASS = "linkcrawl.extensions.stats.Stats"
DUPEFILTER_CLASS = "scrapy.dupefilters.BaseDupeFilter"

# Doors that stay shut.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
COOKIES_ENABLED = False
REFERER_ENABLED = False

# What people see.
LOG_LEVEL = "INFO"
LOG_FORMATTER = "linkcrawl.cli.log_formatter.LogFormatter"
FEED_EXPORT_FIELDS = list(RECORD_FIELDS)
FEED_EXPORT_ENCODING = "utf-8"
FEED_EXPORTERS = {
    "csv": "linkcrawl.exports.feed.FlatCsvItemExporter",  # hops in flat columns, no formulas
    "xml": None,  # writes None and True as texts, and what strangers wrote into files that no reader takes
    "marshal": None,  # only for the very Python that wrote them; reading a pickle runs code
    "pickle": None,
}
