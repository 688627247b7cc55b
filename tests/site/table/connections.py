"""Connections that fail before HTTP begins, and TLS."""

from __future__ import annotations

from tests.site.behaviours import answer, hang_up, raw, reset, silence
from tests.site.misbehaviour import Misbehaviour, Place, Routes


def _page(at: Place) -> Routes:
    return {"/doc": answer()}


def _tls_link(at: Place) -> str:
    return at.tls_url("/doc")


def _certificate(kind: str, about: str) -> Misbehaviour:
    return Misbehaviour(name=f"tls-{kind}", about=about, routes=_page, link=_tls_link, tls=kind)


def _alert(name: str, about: str, description: int) -> Misbehaviour:
    """A server that ends every handshake by a fatal alert (RFC 8446, 6.2)."""
    alert = raw(bytes([21, 3, 1, 0, 2, 2, description]), "hold")
    return Misbehaviour(name=f"tls-{name}", about=about, link=_tls_link, plain_on_tls=True, on_connect=alert)


ROWS = [
    Misbehaviour(name="connect-refused", about="a port where nothing listens", listening=False),
    Misbehaviour(name="connect-reset", about="accepted, then reset", on_connect=reset()),
    Misbehaviour(name="connect-close", about="accepted, then closed", on_connect=hang_up()),
    Misbehaviour(name="connect-silence", about="accepted, then silence", on_connect=silence()),
    Misbehaviour(
        name="connect-greeting", about="the server speaks first", on_connect=raw(b"220 mail.example ESMTP\r\n", "hold")
    ),
    _certificate("good", "a certificate that is in order"),
    _certificate("self-signed", "a certificate signed by itself"),
    _certificate("expired", "a certificate that has expired"),
    _certificate("other-host", "a certificate for another host"),
    _certificate("untrusted", "a certificate of an authority that nobody knows"),
    _alert("old-protocol", "TLS 1.1 and older alone", 70),
    _alert("no-cipher", "no cipher in common", 40),
    Misbehaviour(name="tls-plain", about="plain HTTP on the TLS port", routes=_page, link=_tls_link, plain_on_tls=True),
    Misbehaviour(name="tls-silence", about="no handshake", link=_tls_link, plain_on_tls=True, on_connect=silence()),
    Misbehaviour(
        name="tls-reset", about="a reset instead of a handshake", link=_tls_link, plain_on_tls=True, on_connect=reset()
    ),
]
