"""Scrapy's settings for linkcrawl: which components are ours, which are off, and every default with its reason.

`config.KNOWN` has the defaults of LINKCRAWL_ settings, and marks those that an environment variable may set. The
environment overrides this file, and `-s` overrides the environment.
"""

from linkcrawl.startup import exit_on_signals

exit_on_signals()

from linkcrawl.config import KNOWN, environment_value  # noqa: E402  # this takes a while
from linkcrawl.items import RECORD_FIELDS  # noqa: E402

BOT_NAME = "linkcrawl"
SPIDER_MODULES = ["linkcrawl.spiders"]
NEWSPIDER_MODULE = "linkcrawl.spiders"
COMMANDS_MODULE = "linkcrawl.commands"

for _name in KNOWN:
    globals()[_name] = environment_value(_name)

# Pace, which the frontier's gates keep. docs/politeness.md has the arithmetic.
DOWNLOAD_DELAY = 1.0
DOWNLOAD_DELAY_JITTER = 0  # the default shortens every other gap by up to half
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_TARGET_CONCURRENCY = 0.2  # wait five times the server's own answer time
AUTOTHROTTLE_MAX_DELAY = 60
CONCURRENT_REQUESTS = 512
CONCURRENT_REQUESTS_PER_DOMAIN = 1
ROBOTSTXT_OBEY = True

# Cost. Scrapy's 100 item workers a response take half of a stock crawl's processor time (measured).
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
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,  # the scheduler sets headers
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,  # the check decides what is asked again
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,  # nothing is decompressed
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,  # every hop goes back to the frontier
    "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,  # a jar lives for one check only
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
    "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,  # serialises every request to count its bytes
}
SPIDER_MIDDLEWARES = {
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,  # every status is an outcome
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,  # no host learns of another
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
    "xml": None,  # writes None and True as text, and files that no parser accepts where strangers' text is odd
    "marshal": None,  # readable only by the Python that wrote them; and reading a pickle runs code
    "pickle": None,
}
