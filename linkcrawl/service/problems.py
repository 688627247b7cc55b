"""Problems: every error of the service, as JSON by RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from linkcrawl.errors import LinkcrawlError

#: The media type of a problem (RFC 9457, 3).
MEDIA_TYPE = "application/problem+json"


class Problem(LinkcrawlError):
    """A request that can't be answered. `detail`: one line that names the parameter or field and what would work; it
    never shows anything of the inside. `headers`: further ones of the answer, such as Allow."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None):
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def row(self) -> dict[str, Any]:
        """The problem for JSON. Of the type `about:blank`, whose title is the status's phrase (RFC 9457, 4.2.1)."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
