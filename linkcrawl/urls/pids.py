"""Persistent identifiers as links: `hdl:`, `doi:`, `urn:nbn:` and `ark:` made actionable https URLs.

The resolvers are those that the identifiers' own agencies name: the Handle System's and DOI's proxies, the national
libraries for their URN:NBN spaces (RFC 8458 leaves the resolver to each country), nbn-resolving.org for the rest,
and n2t.net for ARKs.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from linkcrawl.urls.userinfo import SPACE

#: Resolvers of the national URN:NBN spaces; the whole URN follows.
NBN_RESOLVERS = {
    "fi": "https://urn.fi/",
    "nl": "https://persistent-identifier.nl/",
    "se": "https://urn.kb.se/resolve?urn=",
    "no": "https://urn.nb.no/",
}
NBN_RESOLVER = "https://nbn-resolving.org/"

# A scheme without a name resolves to nothing, and the resolver's home page must not be checked instead. Slashes and
# spaces after the colon are a common slip ("doi: 10.1000/1", "hdl:/11022/1").
_SLIP = f"{re.escape(SPACE)}/"
_PID = re.compile(
    rf"(?:(?P<name>hdl|doi):[{_SLIP}]*(?P<suffix>[^{_SLIP}].*)"
    r"|(?P<urn>urn:nbn:(?P<country>[a-z]{2})[:-].+)"
    rf"|ark:(?P<ark>/*[^{_SLIP}].*))",
    re.IGNORECASE | re.DOTALL,
)
_PROXIES = {"hdl": "https://hdl.handle.net/", "doi": "https://doi.org/"}

# A handle or DOI is a name of its own, in which these are characters like any other (DOI Handbook, "DOI Name Encoding
# Rules"); in a URL they would start a fragment, a query or an escape, or become a slash. The rules name `"`, space, `<`
# and `>` as well: those are escaped wherever a URL is read.
_DATA = re.compile(r"[#?%\\]")

# What may follow a handle or DOI is a query for the proxy server itself (handle.net, "Proxy Server System"): metadata
# do use these, "hdl:11858/1?urlappend=/TEI".
_PROXY_QUERY = re.compile(
    r"\?(?:noredirect|ignore_aliases|auth|cert|index|type|urlappend|locatt|action)(?:[=&].*)?\Z", re.DOTALL
)

# Path segments that a client resolves away (RFC 3986, 5.2.4), which would make the name another's; and their slash.
_DOTS_BEFORE = re.compile(r"(?:(?<=/)|^)(\.\.?)/")
_DOTS_LAST = re.compile(r"/(\.\.?)$")


def actionable(text: str) -> str | None:
    """The https URL that resolves the identifier `text` (no space around it), or None where it isn't one of ours."""
    match = _PID.fullmatch(text)
    if match is None:
        return None
    if match["name"]:
        name = _encoded(match["suffix"])
        return None if name is None else _PROXIES[match["name"].lower()] + name
    if match["urn"]:
        return _nbn(match["urn"], match["country"].lower())
    return f"https://n2t.net/ark:{_undotted(match['ark'])}"


def _nbn(urn: str, country: str) -> str:
    """URNs are written in the characters of URLs already (RFC 8141, 2.2)."""
    resolver = NBN_RESOLVERS.get(country, NBN_RESOLVER)
    return resolver + (urn.replace("&", "%26").replace("+", "%2B") if "?" in resolver else _undotted(urn))


def _encoded(name: str) -> str | None:
    """A handle or DOI as the path of its proxy, with the proxy's query where it has one. None where nothing is
    named."""
    query = _PROXY_QUERY.search(name)
    name, asked = (name[: query.start()], name[query.start() :]) if query else (name, "")
    if "/" not in name and "%2f" in name.lower():  # every name has a slash: this one has been encoded already
        name = unquote(name)
    if not name.strip("./"):
        return None
    return _undotted(_DATA.sub(lambda match: quote(match[0]), name)) + asked.replace("#", "%23")


def _undotted(path: str) -> str:
    """The path without dot segments: the slash behind one is escaped, in front of the last one."""
    return _DOTS_LAST.sub(r"%2F\1", _DOTS_BEFORE.sub(r"\1%2F", path))
