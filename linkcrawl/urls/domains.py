"""Host keys (`urls.Target.host`) taken apart: the name to look up, and the registered domain.

A host key comes from a URL that has been read. Links and hosts in the store have only the key.
"""

from __future__ import annotations

from functools import lru_cache

import tldextract

# The list that the package ships: nothing is fetched (private suffixes count: two users of github.io are strangers).
_suffixes = tldextract.TLDExtract(suffix_list_urls=(), include_psl_private_domains=True, cache_dir=None)


def hostname_of(host: str) -> str:
    """The name or address of a host key, without port and brackets (`urls.Target.hostname`)."""
    name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
    return name.strip("[]")


@lru_cache(maxsize=1024)
def is_public_suffix(name: str) -> bool:
    """True for a host name below which anybody may register one (`org`, `co.uk`, `github.io`), and for the single label
    of a top-level domain that the Public Suffix List doesn't have. False for an address."""
    if ":" in name:
        return False
    found = _suffixes(name)
    return found.suffix == name if found.suffix else "." not in name


@lru_cache(maxsize=65536)
def registered_domain(host: str) -> str:
    """The registered domain of a host key, by the Public Suffix List; under a top-level domain that the list doesn't
    have, as of an intranet, by its rule for those, two labels. An address, a single name and a public suffix are their
    own."""
    name = hostname_of(host)
    if ":" in name:
        return f"[{name}]"
    found = _suffixes(name)
    if found.suffix or found.ipv4:
        return found.top_domain_under_public_suffix or name
    return ".".join(name.split(".")[-2:])
