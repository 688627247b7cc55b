"""How mentions change the links of the MongoDB store."""

from __future__ import annotations

from pymongo import UpdateOne

from linkcrawl.stores.mongo.documents import Document


def merge(links: dict[str, Document], link: Document) -> None:
    """Merge a mention into the others of the same link in a batch."""
    first = links.setdefault(link["_id"], link)
    if first is link:
        links[link["_id"]] = {**link, "collections": [*link["collections"]], "providers": [*link["providers"]]}
        return
    first["priority"] = max(first["priority"], link["priority"])
    first["expected_mime"] = first["expected_mime"] or link["expected_mime"]
    for names in ("collections", "providers"):
        first[names] += [name for name in link[names] if name not in first[names]]


def changes(link: Document, known: Document | None) -> list[UpdateOne]:
    """The updates of a stored link by a mention. `known`: the link as it was read, None where it wasn't read."""
    new: Document = {}
    if known is None or link["priority"] > known["priority"]:
        new["$max"] = {"priority": link["priority"]}
    new_names = {
        names: {"$each": [name for name in link[names] if known is None or name not in known[names]]}
        for names in ("collections", "providers")
    }
    added = {names: each for names, each in new_names.items() if each["$each"]}
    if added:
        new["$addToSet"] = added
    updates = [UpdateOne({"_id": link["_id"]}, new)] if new else []
    if link["expected_mime"] and (known is None or known["expected_mime"] is None):
        only_first = {"_id": link["_id"], "expected_mime": None}
        updates.append(UpdateOne(only_first, {"$set": {"expected_mime": link["expected_mime"]}}))
    return updates
