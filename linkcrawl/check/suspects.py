"""Redirects to pages that answer well and may not be what the link meant: told by URLs alone, never held against the
link. No other page of the host is asked for comparison: that would be a request that nobody wanted.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlsplit

#: Last path segments of home pages, without extension.
_HOME = frozenset({"", "index", "home", "default"})

#: A path segment or query value, without extension, `-` and `_`, by which servers name the page that says "not found".
_NOT_FOUND = re.compile(r"(http|error|err|page)?404(error|page|notfound)?|.*notfound.*")
#: The query argument that ASP.NET's customErrors adds to its error page.
_ERROR_PATH = "aspxerrorpath"

#: Registered domains of services that park domain names or sell them.
# fmt: off
_BROKERS = frozenset({
    "above.com", "afternic.com", "bodis.com", "buydomains.com", "dan.com", "domainmarket.com", "hugedomains.com",
    "parkingcrew.net", "parklogic.com", "sedo.com", "sedoparking.com", "undeveloped.com",
})
# fmt: on


def soft_redirect_reason(start: str, end: str) -> str | None:
    """The reason for which a link that led from one URL to another with success should be looked at by a person; None
    where there is none."""
    if start == end:
        return None
    first, last = urlsplit(start), urlsplit(end)
    if _says_not_found(last) and not _says_not_found(first):
        return "soft_404"
    if _is_broker(last) and not _is_broker(first):
        return "domain_for_sale"
    if _is_home(last) and not _is_home(first):
        return "redirected_home"
    return None


def _says_not_found(url: SplitResult) -> bool:
    arguments = parse_qsl(url.query, keep_blank_values=True)
    words = [*url.path.split("/"), *(value for _, value in arguments)]
    return any(_NOT_FOUND.fullmatch(_bare(word)) for word in words) or any(
        name.lower() == _ERROR_PATH for name, _ in arguments
    )


def _is_broker(url: SplitResult) -> bool:
    labels = (url.hostname or "").split(".")
    return ".".join(labels[-2:]) in _BROKERS


def _is_home(url: SplitResult) -> bool:
    return not url.query and url.path.count("/") <= 1 and _bare(url.path.removeprefix("/")) in _HOME


def _bare(word: str) -> str:
    return re.sub(r"[-_]", "", word.lower().partition(".")[0])
