"""Redirects to pages that answer with success but may not be what the link meant. They are recognised by URLs alone,
and the link stays Ok. No other page of the host is requested for comparison."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from linkcrawl.urls import Target
from linkcrawl.urls.domains import registered_domain

#: Last path segments of home pages, without extension.
_HOME = frozenset({"", "index", "home", "default"})

#: A path segment or query value, without extension, `-` and `_`, by which servers name the page that says "not found".
_NOT_FOUND = re.compile(r"(http|error|err|page)?404(error|page)?")
#: The query argument that ASP.NET's customErrors adds to its error page.
_ERROR_PATH = "aspxerrorpath"

#: Pages that registration agencies point deleted identifiers to, as host and path: DataCite ("Tombstone Pages" of its
#: documentation; invalidDOI is what EZID's software sets), Crossref, and EZID's own, which stands at any host that runs
#: its software.
_TOMBSTONE = re.compile(
    r"(?:www\.)?datacite\.org/invalid(?:doi)?(?:\.html)?/?"
    r"|(?:www\.)?crossref\.org/_?deleted[-_]doi(?:\.html)?/?"
    r"|[^/]+/tombstone/id/.*",
    re.IGNORECASE,
)

#: Registered domains of services that park domain names or sell them.
# fmt: off
_BROKERS = frozenset({
    "above.com", "afternic.com", "bodis.com", "buydomains.com", "dan.com", "domainmarket.com", "hugedomains.com",
    "parkingcrew.net", "parklogic.com", "sedo.com", "sedoparking.com", "undeveloped.com",
})
# fmt: on


def soft_redirect_reason(start: Target, end: Target) -> str | None:
    """The reason for which a person should look at a link that led from `start` to `end` with success; None where there
    is none."""
    if start.url == end.url:
        return None
    if _says_not_found(end) and not _says_not_found(start):
        return "soft_404"
    if _is_broker(end) and not _is_broker(start):
        return "domain_for_sale"
    if _is_home(end) and not _is_home(start):
        return "redirected_home"
    return None


def _says_not_found(target: Target) -> bool:
    if _TOMBSTONE.fullmatch(target.hostname + target.path):
        return True
    arguments = parse_qsl(target.query, keep_blank_values=True)
    words = [*target.path.split("/"), *(value for _, value in arguments)]
    return any(_means_not_found(_bare(word)) for word in words) or any(
        name.lower() == _ERROR_PATH for name, _ in arguments
    )


def _means_not_found(word: str) -> bool:
    return "notfound" in word or _NOT_FOUND.fullmatch(word) is not None


def _is_broker(target: Target) -> bool:
    return registered_domain(target.host) in _BROKERS


def _is_home(target: Target) -> bool:
    return not target.query and target.path.count("/") <= 1 and _bare(target.path.removeprefix("/")) in _HOME


def _bare(word: str) -> str:
    return re.sub(r"[-_]", "", word.lower().partition(".")[0])
