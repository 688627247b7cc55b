"""Statuses by what they mean: one set each, for verdicts, pacing, robots.txt and exports. PURE."""

from __future__ import annotations

#: Redirects whose Location is followed (RFC 9110, 15.4), of links and of robots.txt. 304, 305 and 306 are none for a
#: client of today.
REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})

#: "Too often": RFC 6585 (429); by custom Twitter (420), Shopify (430), Apache's bandwidth modules (509), CDNs (529).
TOO_OFTEN = frozenset({420, 429, 430, 509, 529})

#: "Slow down", said or meant: too often, or overloaded (RFC 9110, 15.6.4).
SLOW_DOWN = TOO_OFTEN | {503}

#: What a server answers to those it has shut out, besides walls: the ban circuit counts these. 509 and 529 speak of
#: everybody's requests.
SHUT_OUT = frozenset({403, 420, 429, 430})
