"""Reads the header fields that a verdict or a record needs, as servers really send them."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Characters of a media type: names of at most 127 on both sides of the slash (RFC 6838, 4.2).
MAX_MIME = 255

#: Names of a media type that mean the same format as another: a curator can't mend the server that uses one. Names that
#: a registration replaced (IANA: RFC 7303, 9.2 for XML, RFC 6713 for gzip, RFC 9239 for JavaScript, RFC 9512 for YAML),
#: the standard MIME sniffing's, and aliases of freedesktop.org's shared MIME database.
SAME_FORMAT: Mapping[str, str] = {
    alias: name
    for name, aliases in {
        "application/gzip": "application/x-gzip application/gzip-compressed application/gzipped",
        "application/json": "text/json application/x-json",
        "application/pdf": "application/x-pdf application/acrobat image/pdf",
        "application/rtf": "text/rtf application/x-rtf",
        "application/vnd.rar": "application/x-rar application/x-rar-compressed",
        "application/x-7z-compressed": "application/x-7z",
        "application/x-bzip2": "application/bzip2 application/x-bzip application/x-bz2",
        "application/x-netcdf": "application/netcdf",
        "application/x-tar": "application/tar application/x-gtar",
        "application/x-tex": "text/x-tex",
        "application/xml": "text/xml",
        "application/yaml": "text/yaml text/x-yaml application/x-yaml",
        "application/zip": "application/x-zip application/x-zip-compressed",
        "audio/aiff": "audio/x-aiff",
        "audio/flac": "audio/x-flac",
        "audio/mp4": "audio/x-m4a audio/m4a",
        "audio/mpeg": "audio/mp3 audio/x-mp3 audio/mpeg3 audio/x-mpeg",
        "audio/ogg": "audio/x-ogg",
        "audio/wav": "audio/x-wav audio/wave audio/vnd.wave",
        "image/bmp": "image/x-bmp image/x-ms-bmp",
        "image/jpeg": "image/jpg image/pjpeg",
        "image/png": "image/x-png",
        "image/svg+xml": "image/svg",
        "image/tiff": "image/tif image/x-tiff",
        "image/vnd.microsoft.icon": "image/x-icon image/ico",
        "text/csv": "application/csv application/x-csv text/x-csv text/comma-separated-values",
        "text/javascript": "application/javascript application/x-javascript text/ecmascript application/ecmascript",
        "text/markdown": "text/x-markdown",
        "text/turtle": "application/x-turtle",
        "video/mp4": "video/x-m4v video/x-mp4",
        "video/mpeg": "video/mpg video/x-mpeg",
        "video/x-msvideo": "video/avi video/msvideo",
    }.items()
    for alias in aliases.split()
}

# "Get, decode, and split" of the Fetch standard: a quoted string may hold commas, and ends with the text at the latest.
_VALUES = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
_MIME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")


def redirect_target(headers: Mapping[str, str]) -> str:
    """The Location to follow, "" for none. Two identical values, joined by a comma, are one."""
    location = headers.get("location", "").strip()
    half, odd = divmod(len(location) - 2, 2)
    twice = half > 0 and not odd and location == f"{location[:half]}, {location[:half]}"
    return location[:half] if twice else location


def bare_mime(text: str) -> str | None:
    """The media type of a Content-Type value: lower case, without parameters; None where there is no valid one.

    By the Fetch standard, "extract a MIME type": a comma within a quoted string divides nothing, and of several types
    the last valid one counts."""
    types = [value.partition(";")[0].strip(" \t\r\n").lower() for value in _VALUES.findall(text)]
    valid = [kind for kind in types if len(kind) <= MAX_MIME and _MIME.fullmatch(kind) and kind != "*/*"]
    return valid[-1] if valid else None


def length(text: str) -> int | None:
    """Content-Length in bytes; repeated equal values are one (RFC 9110, 8.6). None for anything else."""
    values = {part.strip() for part in text.split(",")}
    value = values.pop()
    return int(value) if not values and re.fullmatch(r"[0-9]{1,18}", value) else None


def mime_matches(expected: str | None, actual: str | None) -> bool | None:
    """True where a bare media type is the expected one, whatever its case and parameters, also by another name of the
    same format (SAME_FORMAT); None when either is unknown. An expectation that is no media type is not met.
    """
    if expected is None or actual is None:
        return None
    bare = bare_mime(expected)
    return bare is not None and _one_name(bare) == _one_name(actual)


def is_html(mime: str | None) -> bool:
    """True for the bare media types of pages for browsers."""
    return mime in ("text/html", "application/xhtml+xml")


def _one_name(mime: str) -> str:
    return SAME_FORMAT.get(mime, mime)
