"""Cursors: where a page of a list ended. Opaque to clients; one that was not made here for the same list is
refused.

The digest is no secret: it finds texts that were made up, cut off, or taken from a list with other conditions. A cursor
holds nothing but a position in a list that its reader may read anyway.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from linkcrawl.service.problems import Problem

_DIGEST = 8


def cursor_of(path: str, conditions: Mapping[str, str], position: Any) -> str:
    """The cursor of a position, which is JSON, in the list of this path and these query parameters."""
    said = json.dumps(position, ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(_digest(path, conditions, said) + said).decode().rstrip("=")


def position_of(cursor: str, path: str, conditions: Mapping[str, str]) -> Any:
    """The position that `cursor_of` made this of. Raises Problem."""
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        whole = b""
    said = whole[_DIGEST:]
    if not said or _digest(path, conditions, said) != whole[:_DIGEST]:
        raise Problem(404, "cursor: not one of this list with these parameters; the address in links.next would work")
    return json.loads(said)


def _digest(path: str, conditions: Mapping[str, str], said: bytes) -> bytes:
    scope = json.dumps([path, sorted(conditions.items())]).encode()
    return blake2b(scope + b"\0" + said, digest_size=_DIGEST).digest()
