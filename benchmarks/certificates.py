"""A certificate for loopback addresses, made with the `openssl` command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def certificate(folder: Path, addresses: Sequence[str]) -> Path:
    """A PEM file with key and certificate, its own authority, for all of these addresses."""
    key, names, pem = folder / "site.key", folder / "site.cnf", folder / "site.pem"
    alternatives = ",".join(f"IP:{address}" for address in addresses)
    names.write_text(
        "[req]\ndistinguished_name=dn\nx509_extensions=own\nprompt=no\n[dn]\nCN=bench\n"
        f"[own]\nbasicConstraints=critical,CA:TRUE\nsubjectAltName={alternatives}\n"
    )
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made = ["openssl", "req", "-x509", *curve, "-config", str(names), "-keyout", str(key), "-out", str(pem)]
    subprocess.run(made, check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + key.read_bytes())
    return pem
