"""What an attacker tried at the edges of the service."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest

from c4b import Client
from c4b.errors import StoreUnavailable
from c4b.service import temporary_folders
from c4b.service.access import authorization
from c4b.service.access.tokens import Scope
from c4b.service.routing.problems import Refused
from support.service_process import Service, serving
from support.token_service import BODY, ROUND, TokenService

AT = "/v1/deployments/hardening"
ODD = "Größe \N{SNOWMAN} \N{GRINNING FACE}"


@pytest.fixture(scope="module")
def http(service: Service) -> httpx.Client:
    client = service.http()
    client.put(AT, json=BODY).raise_for_status()
    return client


def test_a_key_in_utf_8_is_the_request_id_of_a_body(service: Service, http: httpx.Client) -> None:
    headers = [(b"Idempotency-Key", ODD.encode())]
    by_key = http.post(f"{AT}/decisions", json=ROUND, headers=headers).json()
    body = {"rounds": [{**ROUND, "request_id": ODD}]}
    by_body = http.post(f"{AT}/decisions/batch", json=body).json()["decisions"][0]
    with Client(service.url) as client:
        by_client = client.decide("hardening", ROUND["candidates"], ROUND["baseline"], ODD)
    assert by_key["id"] == by_body["id"] == by_client.id
    assert http.get(f"{AT}/decisions/{by_key['id']}").json()["request_id"] == ODD
    long = [(b"Idempotency-Key", ("\N{SNOWMAN}" * 201).encode())]
    assert http.post(f"{AT}/decisions", json=ROUND, headers=long).status_code == 422


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"])
def test_without_tokens_nothing_is_accepted_from_a_proxy(http: httpx.Client, header: str) -> None:
    for path in ("/v1/deployments", "/metrics", "/healthz"):
        answer = http.get(path, headers={header: "203.0.113.9"})
        assert answer.status_code == 403, path
        assert answer.json()["type"] == "urn:c4b:problem:loopback-only"


def test_without_tokens_no_other_site_can_start_an_audit(service: Service, http: httpx.Client) -> None:
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{service.port + 1}"},
    ):
        assert http.post(f"{AT}/audit", headers=headers).status_code == 403, headers
    own = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    assert http.post(f"{AT}/audit", headers=own).json()["clean"]


def test_with_tokens_proxies_are_allowed(token_service: TokenService) -> None:
    with token_service.service.http(token_service.read) as http:
        answer = http.get("/v1/deployments", headers={"X-Forwarded-For": "203.0.113.9"})
        assert answer.status_code == 200


def test_a_store_that_is_away_is_not_described_to_strangers(tmp_path: Path) -> None:
    secret = tmp_path / "secret-place"
    secret.mkdir()
    with serving(f"sqlite:///{secret}/shop.db", tmp_path / "log") as running, running.http() as http:
        (secret / "shop.db").unlink()
        answer = http.get("/readyz")
        assert answer.status_code == 503
        assert "secret-place" not in answer.text
        assert answer.json()["type"] == "urn:c4b:problem:store-unavailable"
        assert "secret-place" in next(line for line in running.logged() if '"level": "error"' in line)


def test_nor_is_it_when_tokens_cannot_be_read() -> None:
    class Away:
        stale = False

        def grant(self, token: str | None) -> None:
            raise StoreUnavailable("connection to server on socket /secret-place failed")

    connection = {"app": SimpleNamespace(state=SimpleNamespace(token_verifier=Away()))}
    with pytest.raises(Refused) as refused:
        asyncio.run(authorization._authorize(connection, {}, Scope.read))
    assert refused.value.status_code == 503
    assert "secret-place" not in refused.value.detail


def test_workers_end_with_a_killed_supervisor(tmp_path: Path) -> None:
    running = Service(f"sqlite:///{tmp_path}/shop.db", tmp_path / "log", "--workers", "2")
    workers = running.workers()
    assert len(workers) == 2
    assert running.process.pid not in workers
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    gone, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in workers if psutil.pid_exists(pid)], 60
    )
    for process in alive:
        process.kill()
    assert not alive, gone


def test_an_export_without_a_folder_for_it(tmp_path: Path) -> None:
    """As without room in it: an answer that says so, and no defect."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    store, environment = f"sqlite:///{tmp_path}/a.db", {"TMPDIR": str(folder)}
    with (
        serving(store, tmp_path / "log", environment=environment) as service,
        service.http() as http,
    ):
        http.put("/v1/deployments/shop", json=BODY).raise_for_status()
        folder.rename(tmp_path / "elsewhere")
        refused = http.get("/v1/deployments/shop/export")
        assert refused.status_code == 503
        assert "cannot be written on the service's machine (No such file" in refused.json()["detail"]
        (tmp_path / "elsewhere").rename(folder)
        assert http.get("/v1/deployments/shop/export").content[:4] == b"PAR1"
        assert "a defect" not in service.log.read_text()


@pytest.mark.parametrize("purpose", ["export", "metrics"])
def test_leftovers_of_killed_processes_are_removed(
    purpose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = f"from c4b.service import temporary_folders as t; print(t.new_folder({purpose!r}))"
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    left, ours = Path(made.stdout.strip()), temporary_folders.new_folder(purpose)
    (left / ".draft.tmp").write_text("half a file")
    others = [tmp_path / f"c4b-{purpose}-{rest}" for rest in ("x", "x-1")]
    for other in others:
        other.mkdir()
    temporary_folders.remove_leftovers()
    assert not left.exists()
    assert all(path.exists() for path in (ours, *others))
    temporary_folders.remove(ours)
    assert not ours.exists()


def test_a_new_folder_that_is_taken_for_a_leftover_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that starts locks it between the moments in which it is made and locked by its own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make, removals = tempfile.mkdtemp, []

    def taken_at_once(prefix: str) -> str:
        folder = make(prefix=prefix)
        if not removals:
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)

            def remove() -> None:
                shutil.rmtree(folder)
                os.close(descriptor)

            removals.append(threading.Timer(0.2, remove))
            removals[0].start()
        return folder

    monkeypatch.setattr("tempfile.mkdtemp", taken_at_once)
    ours = temporary_folders.new_folder("export")
    removals[0].join()
    assert list(tmp_path.iterdir()) == [ours]
    temporary_folders.remove(ours)


def test_leftovers_where_numbers_of_processes_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container each service is process 1; another container's processes cannot be seen."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, precious = tmp_path / "c4b-metrics-1-left", tmp_path / "precious"
    for folder in (left, precious):
        folder.mkdir()
    link = tmp_path / "c4b-export-99999999-link"
    link.symlink_to(precious)
    used = temporary_folders.new_folder("metrics").rename(tmp_path / "c4b-metrics-99999999-used")
    temporary_folders.remove_leftovers()
    assert not left.exists()
    assert all(path.exists() for path in (used, link, precious))
