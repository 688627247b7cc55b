"""CMDI metadata records (1.1 and 1.2, ISO 24622): every ResourceProxy of every type, and MdSelfLink.

A file is streamed: each element is dropped once it is read, so that memory doesn't grow with the record. Nothing
outside the file is read: entities stay unresolved, and a document type declaration, which no CMDI record needs, ends
the reading.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define
from lxml import etree

from linkcrawl.items import Reject, Seed
from linkcrawl.sources.rows import reject, seed_or_reject
from linkcrawl.sources.streams import Stream

#: Namespaces of the envelope in CMDI 1.1 and 1.2; in 1.2, components have their own.
NAMESPACES = ("http://www.clarin.eu/cmd/", "http://www.clarin.eu/cmd/1")


def _tags(*names: str) -> frozenset[str]:
    return frozenset(f"{{{namespace}}}{name}" for namespace in NAMESPACES for name in names)


_READ = _tags("CMD", "Header", "ResourceProxy")
# kept until the element around them is read
_LEAVES = _tags("ResourceRef", "ResourceType", "MdSelfLink", "MdCollectionDisplayName")


@define
class _Place:
    """The source, record and collection of a file's seeds. The first record's header may set `collection`."""

    source: str
    record: str
    collection: str | None


def read_cmdi(stream: Stream, source: str, *, record: str, collection: str | None) -> Iterator[Seed | Reject]:
    """The resource proxies and self links of the records in a file. CMD elements may stand within an envelope such as
    OAI-PMH's. `record`: the file's path, for `Seed.record`. `collection`: None takes the record's
    MdCollectionDisplayName.

    A file that breaks off or isn't XML gives the seeds before the fault, then one Reject.
    """
    place, found = _Place(source, record, collection), False
    try:
        for element in _elements(stream):
            tag = element.tag
            if tag in _LEAVES:
                continue
            if tag in _READ:
                found = True
                yield from _rows(element, place)
            _forget(element)
    except etree.XMLSyntaxError as error:
        yield reject(f"XML: {error.msg}", source=source, line=error.lineno or 1)
    except _DoctypeError:
        yield reject("XML: has a document type declaration, which is never read", source=source, line=1)
    else:
        if not found:
            yield reject(f"no CMD element of {' or '.join(NAMESPACES)}", source=source, line=1)


class _DoctypeError(Exception):
    """The document has a document type declaration."""


def _elements(stream: Stream) -> Iterator[etree._Element]:
    """Each element, once it is complete."""
    context = etree.iterparse(
        stream,
        events=("end",),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    for position, (_, element) in enumerate(context):
        if position == 0 and element.getroottree().docinfo.internalDTD is not None:
            raise _DoctypeError
        yield element


def _rows(element: etree._Element, place: _Place) -> Iterator[Seed | Reject]:
    namespace, _, name = element.tag[1:].partition("}")
    if name == "Header":
        yield from _self_link(element, namespace, place)
    elif name == "ResourceProxy" and _parent_name(element) == "ResourceProxyList":
        kind = element.find(f"{{{namespace}}}ResourceType")
        row = {
            "url": _text(element.find(f"{{{namespace}}}ResourceRef")),
            "resource_type": _text(kind),
            "expected_mime": kind.get("mimetype") if kind is not None else None,
        }
        yield _seed(row, place, element)


def _self_link(header: etree._Element, namespace: str, place: _Place) -> Iterator[Seed | Reject]:
    if place.collection is None:
        place.collection = _text(header.find(f"{{{namespace}}}MdCollectionDisplayName"))
    link = header.find(f"{{{namespace}}}MdSelfLink")
    if link is not None and (url := _text(link)):
        yield _seed({"url": url, "resource_type": "SelfLink"}, place, link)


def _seed(row: dict[str, str | None], place: _Place, element: etree._Element) -> Seed | Reject:
    row |= {"collection": place.collection, "record": place.record}
    return seed_or_reject(row, source=place.source, line=_line(element), text=row["url"] or "")


def _line(element: etree._Element) -> int:
    line: int | None = element.sourceline  # type: ignore[assignment]  # the stubs don't type it
    return line or 1


def _text(element: etree._Element | None) -> str | None:
    """An element's text without white space around it, which xs:anyURI collapses (XML Schema 1.0 part 2, 3.2.17)."""
    return (element.text or "").strip() or None if element is not None else None


def _parent_name(element: etree._Element) -> str:
    parent = element.getparent()
    return etree.QName(parent).localname if parent is not None else ""


def _forget(element: etree._Element) -> None:
    """Drop an element's content and its preceding siblings, but not the leaves that their parent still needs."""
    element.clear()
    parent = element.getparent()
    while parent is not None and (before := element.getprevious()) is not None and before.tag not in _LEAVES:
        parent.remove(before)
