"""The table of routes: every call of the service, with its parameters and their words. A new call is a new entry."""

from __future__ import annotations

from linkcrawl.service.reading import Reading
from linkcrawl.service.schemas import URLS, fields, list_of, ref
from linkcrawl.service.table import CATEGORY, CURSOR, FLAG, LIMIT, TEXT, TIME, Body, Parameter, Role, Route

_URL = Parameter(name="url", kind=TEXT, words="the URL, percent-encoded as a query needs it", required=True)
_PAGING = (LIMIT, CURSOR)
_NAME = Parameter(name="name", kind=TEXT, words="name of the collection; empty for mentions without one", required=True)
_HOST = Parameter(name="host", kind=TEXT, words="host name, with :port unless it is the scheme's own", required=True)
_CHECKS = (
    Parameter(name="since", kind=TIME, words="checked at or after this time (ISO 8601; UTC unless it has a zone)"),
    Parameter(name="until", kind=TIME, words="checked before this time"),
    Parameter(name="collection", kind=TEXT, words="links of these collections only: a glob, of `*` and `?`"),
    Parameter(name="provider", kind=TEXT, words="links of these providers only: a glob"),
    Parameter(name="host", kind=TEXT, words="links at these hosts only: a glob"),
    Parameter(name="category", kind=CATEGORY, words="this category only"),
    Parameter(name="reason", kind=TEXT, words="this reason only"),
    Parameter(name="changed", kind=FLAG, words="1: only where category, status or final URL changed"),
    Parameter(name="history", kind=FLAG, words="1: every check, not only the latest of each link"),
    Parameter(name="retired", kind=FLAG, words="1: retired links only, which are left out otherwise"),
)

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/v1/links",
        words="What the store says of one URL. An unknown URL is answered too.",
        answer=Reading.link,
        schema=ref("Link"),
        parameters=(_URL,),
    ),
    Route(
        method="POST",
        path="/v1/links/lookup",
        words="The same for up to 10,000 URLs, in the order asked.",
        answer=Reading.lookup,
        schema=fields(results={"type": "array", "items": ref("Link")}),
        body=Body(schema=URLS, words='`{"urls": [...]}`, or text/plain with a URL a line', lines_of="urls"),
        items="results",
    ),
    Route(
        method="GET",
        path="/v1/links/history",
        words="Every check of one link that is kept, oldest first.",
        answer=Reading.history,
        schema=list_of("records", ref("Record")),
        parameters=(_URL, *_PAGING),
        items="records",
    ),
    Route(
        method="GET",
        path="/v1/checks",
        words="Check records in order of time, as `scrapy export` gives them; up to 5 seconds before now.",
        answer=Reading.checks,
        schema=list_of("records", ref("Record")),
        parameters=(*_CHECKS, *_PAGING),
        items="records",
    ),
    Route(
        method="GET",
        path="/v1/collections",
        words="The collections' sections of the report.",
        answer=Reading.collections,
        schema=list_of("collections", ref("Section")),
        parameters=_PAGING,
        items="collections",
    ),
    Route(
        method="GET",
        path="/v1/collections/{name}",
        words="One collection's section of the report.",
        answer=Reading.collection,
        schema=ref("Section"),
        path_parameters=(_NAME,),
        not_found="no link of the store is in this collection",
    ),
    Route(
        method="GET",
        path="/v1/hosts",
        words="What hosts wait for and why, as `scrapy hosts list --format json`, by name.",
        answer=Reading.hosts,
        schema=list_of("hosts", ref("Host")),
        parameters=_PAGING,
        items="hosts",
    ),
    Route(
        method="GET",
        path="/v1/hosts/{host}",
        words="All that is known of one host, as `scrapy hosts show --format json`.",
        answer=Reading.host,
        schema=ref("Host"),
        path_parameters=(_HOST,),
        not_found="no link of the store leads to this host",
    ),
    Route(
        method="GET",
        path="/v1/report",
        words="The report on every link, as `scrapy report --format json`.",
        answer=Reading.report,
        schema=ref("Report"),
    ),
    Route(
        method="GET",
        path="/v1/openapi.json",
        words="This table as an OpenAPI 3.1 file.",
        answer=Reading.openapi,
        schema={"type": "object"},
    ),
    Route(
        method="GET",
        path="/v1/health",
        words="Whether the store answers.",
        answer=Reading.health,
        schema=ref("Health"),
        role=Role.OPEN,
    ),
)
