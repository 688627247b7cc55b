"""TLS as a link checker needs it: verified, tolerant where browsers are, and exact about what went wrong."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from linkcrawl.check.outcome import Failure
from linkcrawl.errors import ConfigError
from linkcrawl.network.fault import Fault

#: ssl.OP_LEGACY_SERVER_CONNECT, which Python names from 3.12 on.
_LEGACY_SERVER_CONNECT = 0x4

#: X509_V_ERR_… of OpenSSL's x509_vfy.h; what isn't here is TLS_UNTRUSTED.
_VERIFY_CODES = {
    9: Failure.TLS_EXPIRED,  # not valid yet
    10: Failure.TLS_EXPIRED,
    18: Failure.TLS_SELF_SIGNED,  # the server's own certificate; 19, one within the chain, is an unknown issuer
    62: Failure.TLS_HOSTNAME,
    64: Failure.TLS_HOSTNAME,  # IP address mismatch
}

_NOTHING_IN_COMMON = frozenset(
    {
        "HANDSHAKE_FAILURE",
        "INSUFFICIENT_SECURITY",
        "NO_CIPHERS_AVAILABLE",
        "NO_PROTOCOLS_AVAILABLE",
        "NO_SHARED_CIPHER",
        "PROTOCOL_VERSION",
        "UNKNOWN_PROTOCOL",
        "UNSUPPORTED_PROTOCOL",
        "UNSUPPORTED_SSL_VERSION",
        "VERSION_TOO_LOW",
        "DH_KEY_TOO_SMALL",
        "WRONG_SSL_VERSION",
    }
)


def client_context(ca_bundle: Path | None = None) -> ssl.SSLContext:
    """Verifies against `ca_bundle` (PEM), else against the system's authorities or SSL_CERT_FILE.

    Raises ConfigError for a file without certificates, or where there are none at all. Two things are looser than
    Python's default, because every browser takes them and a link that opens there isn't broken: servers without
    secure renegotiation (RFC 5746), and certificates that miss a formality (VERIFY_X509_STRICT, on from Python 3.13).
    """
    name, file = "LINKCRAWL_CA_BUNDLE", str(ca_bundle) if ca_bundle else None
    try:
        context = ssl.create_default_context(cafile=file)
        if file is None and (file := os.environ.get("SSL_CERT_FILE")):
            name = "SSL_CERT_FILE"
            context.load_verify_locations(file)  # OpenSSL ignores a file that it can't use, without a word
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"{name}: {file!r} can't be used ({error}); a file of PEM certificates would work") from None
    if file is None and not _has_authorities(context):
        raise ConfigError(
            "LINKCRAWL_CA_BUNDLE: not set, and this system has no certificate authorities, so that every https link "
            "would be untrusted; the package ca-certificates, or a file of PEM certificates, would work"
        )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.options |= _LEGACY_SERVER_CONNECT
    context.set_alpn_protocols(["http/1.1"])
    return context


def _has_authorities(context: ssl.SSLContext) -> bool:
    """True if the system trusts any certificate authority. OpenSSL reads a folder's only when it needs them."""
    folder = ssl.get_default_verify_paths().capath
    return bool(context.cert_store_stats()["x509_ca"]) or bool(folder and os.listdir(folder))


def of_tls_error(error: ssl.SSLError) -> Fault:
    """The fault that a TLS error stands for."""
    if isinstance(error, ssl.SSLCertVerificationError):
        failure = _VERIFY_CODES.get(error.verify_code, Failure.TLS_UNTRUSTED)
        return Fault(failure=failure, detail=error.verify_message)
    reason = (error.reason or "").upper()
    bare = reason.removeprefix("TLSV1_ALERT_").removeprefix("SSLV3_ALERT_").removeprefix("TLSV1_")
    if bare in _NOTHING_IN_COMMON:
        return Fault(failure=Failure.TLS_VERSION, detail=_spoken(reason))
    if bare == "UNRECOGNIZED_NAME":  # the server serves no such name (RFC 6066, 3)
        return Fault(failure=Failure.TLS_HOSTNAME, detail=_spoken(reason))
    return Fault(failure=Failure.TLS_OTHER, detail=_spoken(reason) or str(error))


def _spoken(reason: str) -> str:
    return reason.replace("_", " ").lower()
