"""The links of the demo, as a metadata catalogue would hold them: five collections, some links in two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from landscape import GONE, HOSTS, PDF

#: Collection -> links, each as host name and path; "{n}" stands for 1, 2, 3, … up to the number given.
CATALOGUE: dict[str, list[tuple[str, str, int]]] = {
    "Language Archive": [
        ("archive", "/landing/{n}.html", 5),
        ("archive", "/files/{n}.pdf", 5),
        ("archive", "/private/field-notes.html", 1),
        ("resolver", "/20.500.1/10.2/landing/{n}.html", 4),
        ("resolver", "/20.500.1/10.5/~keller/thesis.html", 1),
    ],
    "Corpora": [
        ("corpora", "/corpus/{n}", 4),
        ("corpora", "/licence/broadcast.html", 1),
        ("corpora", "/members/list.html", 1),
        ("resolver", "/20.500.2/10.3/corpus/1", 1),
        ("no-head", "/oai/record{n}.xml", 5),
        ("no-head", "/cgi-bin/export", 1),
        ("archive", "/landing/1.html", 1),
    ],
    "Museum Portal": [
        ("museum", "/item/{n}", 6),
        ("museum", "/iiif/{n}/full.jpg", 3),
        ("slow", "/exhibition/{n}", 4),
        ("slow", "/search/everything", 1),
    ],
    "University Repository": [
        ("university", "/dept/{n}.html", 4),
        ("university", "/~keller/{n}.html", 3),
        ("university", "/projects/2009/{n}.html", 2),
        ("moved", "/old/{n}.html", 4),
        ("moved", "/old/lost.html", 1),
        ("moved", "/step/4", 1),
        ("moved", "/loop/round", 1),
        ("archive", "/files/1.pdf", 1),
    ],
    "National Library": [
        ("library", "/catalogue/{n}.html", 6),
        ("flaky", "/journal/{n}", 3),
        ("flaky", "/db/view{n}", 2),
        ("flaky", "/api/search", 1),
        ("publisher", "/journal/home", 1),
        ("publisher", "/article/{n}", 2),
        ("gone", "/newspapers/1912.html", 1),
    ],
}
#: What catalogues also hold. Nothing is sent for these; the last one isn't even a link.
ODDITIES = ("ftp://127.0.10.2/pub/readme.txt", "http://10.0.0.1/intranet", "http://:80/no-host", "see the reading room")


def seeds(port: int) -> Iterator[dict[str, Any]]:
    """The catalogue as seed lines, for the landscape that listens on `port`."""
    addresses = {host.name: host.address for host in HOSTS} | {"gone": GONE}
    for collection, rows in CATALOGUE.items():
        for name, path, count in rows:
            for n in range(1, count + 1):
                yield {
                    "url": f"http://{addresses[name]}:{port}{path.replace('{n}', str(n))}",
                    "collection": collection,
                    "record": f"{name}-{n}.cmdi",
                    "expected_mime": PDF if path.endswith(".pdf") else None,
                }
    for n, url in enumerate(ODDITIES, 1):
        yield {"url": url, "collection": "National Library", "record": f"oddity-{n}.cmdi"}
