"""URLs of servers that linkcrawl uses (stores, Redis, sources of seeds): what messages may say of them.

Such a URL is an operator's, and may be malformed where it holds a password: an unescaped `/`, `?` or `#` in it ends the
authority early, and what follows looks like a path. So everything before the last `@` counts as secret, wherever it is.
"""

from __future__ import annotations

import re

_PIECES = re.compile(r"[:/?#@,&=]+")


def shown(url: str) -> str:
    """The URL without user, password and options (which may hold a password as well), for messages."""
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    return f"{scheme}{slashes}{re.split('[?#]', rest.rpartition('@')[2])[0]}"


def without_login(said: str, url: str) -> str:
    """What a library says of a URL that it can't use, on one line; where that repeats a piece of the URL's login, a
    text that doesn't."""
    login = url.rpartition("@")[0].partition("://")[2]
    if any(piece in said for piece in _PIECES.split(login) if piece):
        return "its user or password holds a character that has to be percent-encoded"
    return " ".join(said.split())
