"""scripts/servers.py: what becomes of a server that lacks, and of the command's exit status."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path

import pytest
from attrs import evolve

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("servers_script", ROOT / "scripts" / "servers.py")
assert spec is not None
assert spec.loader is not None
servers = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = servers
spec.loader.exec_module(servers)


def lacking(server: object) -> str:
    raise servers.ServerMissing("mongod: not here")


@pytest.fixture
def without_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "find", lacking)
    for server in servers.ALL:
        monkeypatch.delenv(server.variable, raising=False)


def tells(path: Path, code: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import os, pathlib, sys; pathlib.Path({str(path)!r}).write_text({code}); sys.exit(7)",
    ]


@pytest.mark.usefixtures("without_servers")
def test_on_ci_a_missing_server_is_a_failure_and_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", "true")
    assert servers.main(tells(tmp_path / "told", "'ran'")) == 1
    assert not (tmp_path / "told").exists()
    assert "mongod: not here" in capfd.readouterr().err


@pytest.mark.usefixtures("without_servers")
def test_elsewhere_the_command_runs_without_it_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert servers.main(tells(tmp_path / "told", "str('TEST_REDIS_URL' in os.environ)")) == 7
    assert (tmp_path / "told").read_text() == "False"
    assert "TEST_REDIS_URL is not set" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["#!/bin/sh\necho no libfoo >&2; exit 127\n", "#!/no/such/interpreter\n", ""])
def test_a_program_that_does_not_run_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    program = tmp_path / "redis-server"
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(servers, "SERVERS", tmp_path / "servers")
    monkeypatch.setattr(servers, "_install", lambda server: None)
    redis = next(server for server in servers.ALL if server.program == "redis-server")
    with pytest.raises(servers.ServerMissing, match=r"redis-server.* on PATH that runs would work"):
        servers.find(redis)


def test_the_server_is_gone_and_its_data_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that opens its port as a server does, so that no real one is needed here."""
    monkeypatch.setattr(servers.tempfile, "tempdir", str(tmp_path))
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(
        f"#!{sys.executable}\n"
        "import socket, sys\n"
        "with socket.create_server(('127.0.0.1', int(sys.argv[2]))) as listening:\n"
        "    while True:\n"
        "        client, _ = listening.accept()\n"
        "        while line := client.recv(1000):\n"
        "            client.sendall(b'+PONG\\r\\n')\n"
    )
    stand_in.chmod(0o755)
    answered: list[str] = []

    def ping(url: str) -> None:
        host, _, port = url.removeprefix("redis://").partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=60) as client:
                client.sendall(b"PING\r\n")
                assert client.recv(100) == b"+PONG\r\n"
        except ConnectionRefusedError:
            raise servers.redis.ConnectionError("not yet") from None
        answered.append(url)

    redis = next(server for server in servers.ALL if server.program == "redis-server")
    with servers.running(evolve(redis, ping=ping), str(stand_in)) as url:
        assert answered == [url]
        ping(url)
    with pytest.raises(servers.redis.ConnectionError):
        ping(url)
    assert [path.name for path in tmp_path.iterdir()] == ["stand-in"]
