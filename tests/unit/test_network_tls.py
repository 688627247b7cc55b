"""TLS: what each kind of bad certificate or handshake is called."""

import asyncio
import contextlib
import re
import socket
import ssl
import threading

import pytest
from network_kit import always, answers, ask, handler, serve

from linkcrawl.check.outcome import Failure
from linkcrawl.errors import ConfigError
from linkcrawl.network.tls import client_context, of_tls_error
from tests.site.certificates import Certificates

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates") / "made")


def visit(certificates, context, *, script=None, times=1, url="https://127.0.0.1:{}/", found=None, **meta):
    async def run():
        settings = {"LINKCRAWL_CA_BUNDLE": str(certificates.trusted)}
        async with serve(script or always(EMPTY), tls=context) as peer, handler(**settings) as made:
            if found:
                made._resolver._lookup = lambda host: found
            outcomes = [(await ask(made, url.format(peer.port), **meta))[1] for _ in range(times)]
            return outcomes, peer

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("good", None),
        ("expired", Failure.TLS_EXPIRED),
        ("self-signed", Failure.TLS_SELF_SIGNED),
        ("other-host", Failure.TLS_HOSTNAME),
        ("untrusted", Failure.TLS_UNTRUSTED),
    ],
)
def test_certificates(certificates, kind, failure):
    (outcome,), peer = visit(certificates, certificates.context(kind, "127.0.0.1"))
    assert outcome.failure is failure
    assert outcome.ip == "127.0.0.1"
    if failure is None:
        assert outcome.status == 200
    else:
        assert f"127.0.0.1:{peer.port}" in outcome.error
        assert peer.requests == []


def test_a_name_is_sent_as_sni_without_the_roots_dot_and_must_match(certificates):
    context = certificates.context("good", "127.0.0.1")
    names = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    (outcome,), _ = visit(certificates, context, url="https://name.example.:{}/", found=["127.0.0.1"])
    assert names == ["name.example"]
    assert outcome.failure is Failure.TLS_HOSTNAME


def test_an_address_is_not_sent_as_sni(certificates):
    context = certificates.context("good", "127.0.0.1")
    names = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    visit(certificates, context)
    assert names == [None]


def test_one_handshake_serves_many_requests(certificates):
    outcomes, peer = visit(certificates, certificates.context("good", "127.0.0.1"), times=5)
    assert [outcome.status for outcome in outcomes] == [200] * 5
    assert peer.connections == 1


def test_http_1_1_is_agreed_on(certificates):
    context = certificates.context("good", "127.0.0.1")
    context.set_alpn_protocols(["h2", "http/1.1"])
    chosen = []

    async def script(line):
        chosen.append(line._writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await always(EMPTY)(line)

    (outcome,), _ = visit(certificates, context, script=script)
    assert outcome.status == 200
    assert chosen == ["http/1.1"]


@contextlib.contextmanager
def blocking_server(context):
    """One TLS connection in a thread: asyncio's servers close without sending the alert that real ones send."""

    def serve_one(listener):
        connection, _ = listener.accept()
        with connection, connection.dup() as kept:
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(1)
            with contextlib.suppress(OSError):
                kept.shutdown(socket.SHUT_WR)
                while kept.recv(4096):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_one, args=[listener])
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


def old_protocol(context, _trusted):
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3


def other_ciphers(context, _trusted):
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA:@SECLEVEL=0")  # no forward secrecy: we don't offer it


def wants_a_certificate(context, trusted):
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(trusted)


@pytest.mark.filterwarnings("ignore:ssl.OP_NO_SSL:DeprecationWarning")  # the server is old on purpose
@pytest.mark.parametrize(
    ("change", "failure", "words"),
    [
        (old_protocol, Failure.TLS_VERSION, "in common"),
        (other_ciphers, Failure.TLS_VERSION, "in common"),
        (wants_a_certificate, Failure.TLS_OTHER, "certificate required"),
    ],
)
def test_what_servers_refuse(certificates, change, failure, words):
    context = certificates.context("good", "127.0.0.1")
    change(context, certificates.trusted)

    async def run(port):
        async with handler(LINKCRAWL_CA_BUNDLE=str(certificates.trusted)) as made:
            return await ask(made, f"https://127.0.0.1:{port}/")

    with blocking_server(context) as port:
        _, outcome = asyncio.run(run(port))
    assert outcome.failure is failure
    assert words in outcome.error


async def says_http(line):
    await line.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await line.hold()


async def resets(line):
    line.reset()


async def closes(line):
    line.close()


async def silent(line):
    await line.hold()


@pytest.mark.parametrize(
    ("script", "failure", "words"),
    [
        (says_http, Failure.TLS_OTHER, "TLS trouble"),
        (resets, Failure.RESET, "TLS handshake"),
        (closes, Failure.RESET, "TLS handshake"),
        (silent, Failure.TIMEOUT_TLS, r"timed out after [\d.]+ s in the TLS handshake"),
    ],
)
def test_what_happens_instead_of_a_handshake(certificates, script, failure, words):
    """The server's side is plain TCP."""
    limit = {"download_timeout": 0.5} if script is silent else {}
    (outcome,), _ = visit(certificates, None, script=script, **limit)
    assert outcome.failure is failure
    assert re.search(words, outcome.error)
    assert outcome.ip == "127.0.0.1"


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (answers(then="close"), Failure.EMPTY_REPLY),
        (answers(then="reset"), Failure.RESET),
        (answers(b"HTTP/1.1 200", then="close"), Failure.RESET),
        (answers(b"<html>"), Failure.PROTOCOL),
        (silent, Failure.TIMEOUT_ANSWER),
        (answers(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 300_000), Failure.TOO_LARGE),
    ],
)
def test_failures_after_the_handshake(certificates, script, failure):
    context = certificates.context("good", "127.0.0.1")
    limit = {"download_timeout": 1} if script is silent else {}
    (outcome,), _ = visit(certificates, context, script=script, **limit)
    assert outcome.failure is failure


@pytest.mark.parametrize("after", [0.0, 0.002, 0.01, 0.1])
def test_cancelling_in_the_handshake_leaves_nothing_behind(certificates, after):
    async def run():
        settings = {"LINKCRAWL_CA_BUNDLE": str(certificates.trusted)}
        async with serve(silent) as peer, handler(**settings) as made:
            asking = asyncio.ensure_future(ask(made, f"https://127.0.0.1:{peer.port}/"))
            await asyncio.sleep(after)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            assert asking.done()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (2, Failure.TLS_UNTRUSTED),
        (9, Failure.TLS_EXPIRED),
        (10, Failure.TLS_EXPIRED),
        (18, Failure.TLS_SELF_SIGNED),
        (19, Failure.TLS_UNTRUSTED),
        (20, Failure.TLS_UNTRUSTED),
        (21, Failure.TLS_UNTRUSTED),
        (23, Failure.TLS_UNTRUSTED),
        (62, Failure.TLS_HOSTNAME),
        (64, Failure.TLS_HOSTNAME),
    ],
)
def test_verify_codes(code, failure):
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code, error.verify_message = code, "why"
    assert of_tls_error(error).failure is failure


@pytest.mark.parametrize(
    ("reason", "failure"),
    [
        ("UNSUPPORTED_PROTOCOL", Failure.TLS_VERSION),
        ("TLSV1_ALERT_PROTOCOL_VERSION", Failure.TLS_VERSION),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", Failure.TLS_VERSION),
        ("NO_SHARED_CIPHER", Failure.TLS_VERSION),
        ("TLSV1_ALERT_INSUFFICIENT_SECURITY", Failure.TLS_VERSION),
        ("TLSV1_UNRECOGNIZED_NAME", Failure.TLS_HOSTNAME),
        ("WRONG_VERSION_NUMBER", Failure.TLS_OTHER),
        ("TLSV1_ALERT_INTERNAL_ERROR", Failure.TLS_OTHER),
        (None, Failure.TLS_OTHER),
    ],
)
def test_reasons(reason, failure):
    error = ssl.SSLError(1, "text")
    error.reason = reason
    assert of_tls_error(error).failure is failure


@pytest.mark.parametrize("text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nzz\n-----END CERTIFICATE-----\n"])
def test_a_bundle_without_certificates_is_refused(tmp_path, text):
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(text)
    with pytest.raises(ConfigError, match=r"LINKCRAWL_CA_BUNDLE: .*bundle\.pem.* would work"):
        client_context(bundle)


@pytest.mark.parametrize("content", [None, b"", b"no certificate"], ids=["missing", "empty", "no PEM"])
def test_authorities_of_the_environment_that_cannot_be_used_are_told(tmp_path, monkeypatch, certificates, content):
    """OpenSSL would pass over them in silence, and every https link be untrusted."""
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE: .*bundle\.pem.* would work"):
        client_context()
    client_context(certificates.trusted)  # goes before the environment


def test_authorities_of_the_environment_count(monkeypatch, certificates):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.trusted))
    subjects = [dict(part[0] for part in found["subject"]) for found in client_context().get_ca_certs()]
    assert len(subjects) == 1


def test_a_machine_without_authorities_is_told_before_every_link_is_called_untrusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    nothing = ssl.DefaultVerifyPaths(None, None, "SSL_CERT_FILE", "", "SSL_CERT_DIR", "")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nothing)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda self, purpose=None: None)
    with pytest.raises(ConfigError, match="no certificate authorities"):
        client_context()
