"""The service binds its address first. An address that is not available is one line of error."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import c4b
from c4b.errors import AddressUnavailable
from c4b.service.serving import listen_address
from support.service_process import C4B, Service, free_port, serving


@pytest.fixture
def busy() -> Iterator[int]:
    """A port of this machine on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield int(other.getsockname()[1])


def failed(*arguments: str, folder: Path) -> str:
    """What ``c4b`` says when it gives up at once; it leaves nothing behind."""
    done = subprocess.run(
        [*C4B, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert not list(folder.iterdir())
    return done.stderr


@pytest.mark.parametrize("command", [["serve"], ["serve", "--workers", "2"], ["demo"]], ids=" ".join)
def test_a_port_in_use(tmp_path: Path, busy: int, command: list[str]) -> None:
    message = failed(*command, "--port", str(busy), folder=tmp_path)
    assert message == f"c4b: port {busy} of 127.0.0.1 is in use; choose another with --port\n"


def test_the_demos_visitors_leave_another_service_alone(service: Service, tmp_path: Path) -> None:
    with c4b.Client(service.url) as client:
        before = [state.name for state in client.deployments()]
        failed("demo", "--port", str(service.port), folder=tmp_path)
        assert [state.name for state in client.deployments()] == before


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("203.0.113.1", "203.0.113.1 is no address of this machine"),  # for documentation, nobody's
        ("nowhere.invalid", "host 'nowhere.invalid' cannot be found"),
        ("a" * 70, "cannot be found"),
    ],
)
def test_a_host_that_cannot_be_bound(tmp_path: Path, host: str, words: str) -> None:
    message = failed("serve", "--host", host, "--port", "0", folder=tmp_path)
    assert words in message
    assert "--host" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_system_chooses_the_port_and_it_is_told(tmp_path: Path, workers: str) -> None:
    command = ["serve", "--port", "0", "--workers", workers, "--store", f"sqlite:///{tmp_path}/a.db"]
    with subprocess.Popen([*C4B, *command], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "serving" in line)
            url = line.split("serving ")[1].split()[0]
            assert httpx.get(f"{url}readyz", timeout=60.0).status_code == 200
        finally:
            process.terminate()


def test_every_address_of_a_name(tmp_path: Path) -> None:
    """One that somebody else has is one too many: half of `localhost` would be another service."""
    with listen_address.bound_sockets("localhost", 0) as sockets:
        listen_address.listen(sockets, "localhost")
        port = listen_address.port_of(sockets)
        assert {each.getsockname()[1] for each in sockets} == {port}
        for each in sockets:
            with socket.create_connection(each.getsockname()[:2], 5.0):
                pass
            with (
                pytest.raises(AddressUnavailable, match="in use"),
                listen_address.bound_sockets("localhost", port),
            ):
                pass


def test_of_two_who_take_a_port_the_first_to_listen_has_it() -> None:
    port = free_port()
    with (
        listen_address.bound_sockets("127.0.0.1", port) as one,
        listen_address.bound_sockets("127.0.0.1", port) as other,
    ):
        listen_address.listen(one, "127.0.0.1")
        with pytest.raises(AddressUnavailable, match=f"port {port} of 127.0.0.1 is in use"):
            listen_address.listen(other, "127.0.0.1")


def test_ipv6(tmp_path: Path) -> None:
    try:
        with listen_address.bound_sockets("::1", 0):
            pass
    except AddressUnavailable:
        pytest.skip("this machine has no IPv6")
    port = free_port()
    store = f"sqlite:///{tmp_path}/six.db"
    with serving(store, tmp_path / "log", "--host", "localhost") as running:
        assert running.process.poll() is None
    with subprocess.Popen(
        [*C4B, "serve", "--host", "::1", "--port", str(port), "--store", store],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "serving" in line)
            assert f"http://[::1]:{port}/ " in line
            assert httpx.get(f"http://[::1]:{port}/readyz", timeout=60.0).status_code == 200
        finally:
            process.terminate()
