"""Persistent identifiers as links: `hdl:`, `doi:`, `urn:nbn:` and `ark:` made actionable https URLs.

The resolvers are those that the identifiers' own agencies name: the Handle System's and DOI's proxies, the national
libraries for their URN:NBN spaces (RFC 8458 leaves the resolver to each country), nbn-resolving.org for the rest,
and n2t.net for ARKs.
"""

from __future__ import annotations

import re

#: Resolvers of the national URN:NBN spaces; the whole URN follows.
NBN_RESOLVERS = {
    "fi": "https://urn.fi/",
    "nl": "https://persistent-identifier.nl/",
    "se": "https://urn.kb.se/resolve?urn=",
    "no": "https://urn.nb.no/",
}
NBN_RESOLVER = "https://nbn-resolving.org/"

# What may follow a scheme is a name: without one there is nothing to resolve, and the resolver's home page must not
# be checked in its stead. Slashes and spaces after the colon are a common slip ("doi: 10.1000/1", "hdl:/11022/1").
_PID = re.compile(
    r"(?:(?P<name>hdl|doi):[\s/]*(?P<suffix>[^\s/].*)"
    r"|(?P<urn>urn:nbn:(?P<country>[a-z]{2})[:-].+)"
    r"|ark:(?P<ark>/*[^\s/].*))",
    re.IGNORECASE | re.DOTALL,
)
_PROXIES = {"hdl": "https://hdl.handle.net/", "doi": "https://doi.org/"}

# In a handle or DOI `#` is a character like any other (DOI Handbook, 2.5.2.4), in a URL it would start a fragment, a
# backslash would become a slash, and a lone % would be read as an escape.
_DATA = re.compile(r"[#\\]|%(?![0-9A-Fa-f]{2})")


def actionable(text: str) -> str | None:
    """The https URL that resolves the identifier `text` (no space around it), or None where it isn't one of ours."""
    match = _PID.fullmatch(text)
    if match is None:
        return None
    if match["name"]:
        return _PROXIES[match["name"].lower()] + _DATA.sub(_escape, match["suffix"])
    if match["urn"]:
        return _nbn(match["urn"], match["country"].lower())
    return f"https://n2t.net/ark:{match['ark']}"


def _nbn(urn: str, country: str) -> str:
    resolver = NBN_RESOLVERS.get(country, NBN_RESOLVER)
    return resolver + (urn.replace("&", "%26") if "?" in resolver else urn)


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0][0]):02X}"
