"""Certificates, good and bad, made with the `openssl` command."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

#: Kinds: what is wrong with the certificate that a host shows.
KINDS = ("good", "self-signed", "expired", "other-host", "untrusted")

_CA_CONFIG = """
[ca]
default_ca = here
[here]
new_certs_dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def _openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


class Authority:
    """A certificate authority in a folder; `path` is what a client has to trust."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True)
        self._folder, self.path = folder, folder / "ca.pem"
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01\n")
        (folder / "ca.cnf").write_text(_CA_CONFIG.format(folder=folder))
        request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"]
        _openssl(*request, "-subj", f"/CN={name}", "-keyout", folder / "ca.key", "-out", self.path)

    def sign(self, address: str, *, start: str = "20200101000000Z", end: str = "20990101000000Z") -> Path:
        """A file with key and certificate for this address."""
        base = self._folder / address
        key, request, extensions, certificate = (
            base.with_name(f"{address}.{part}") for part in ("key", "csr", "ext", "crt")
        )
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        _openssl("req", *curve, "-subj", f"/CN={address}", "-keyout", key, "-out", request)
        extensions.write_text(f"subjectAltName = IP:{address}\n")
        signer: list[str | Path] = [
            "-config",
            self._folder / "ca.cnf",
            "-cert",
            self.path,
            "-keyfile",
            self._folder / "ca.key",
        ]
        dates: list[str | Path] = ["-startdate", start, "-enddate", end, "-extfile", extensions]
        _openssl("ca", "-batch", "-notext", *signer, *dates, "-in", request, "-out", certificate)
        return _joined(base.with_name(f"{address}.pem"), key, certificate)

    def joined(self) -> Path:
        """The authority's own key and certificate in one file, for a host that signs for itself."""
        return _joined(self._folder / "self.pem", self._folder / "ca.key", self.path)


def _joined(path: Path, *parts: Path) -> Path:
    path.write_text("".join(part.read_text() for part in parts))
    return path


class Certificates:
    """The contexts of a site's TLS hosts. `trusted` is the file of the authority that a client has to trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = Authority(folder / "known", "A known authority")
        self._unknown = Authority(folder / "unknown", "An unknown authority")
        self.trusted = self._known.path

    def context(self, kind: str, address: str) -> ssl.SSLContext:
        """What a host at this address shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._made(kind, address))
        return context

    def _made(self, kind: str, address: str) -> Path:
        match kind:
            case "good":
                return self._known.sign(address)
            case "expired":
                return self._known.sign(address, end="20210101000000Z")
            case "other-host":
                return self._known.sign("127.255.255.1")
            case "untrusted":
                return self._unknown.sign(address)
            case "self-signed":
                return Authority(self._folder / f"self-{address}", address).joined()
        raise ValueError(f"{kind!r} is no kind of certificate; there are {', '.join(KINDS)}")
