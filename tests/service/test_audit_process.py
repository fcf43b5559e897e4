"""Audits of the service: in a process of low priority, which ends with its worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from c4b import Deployment, LinearModel
from c4b.deployment.audit.low_priority import NICENESS
from c4b.errors import StoreUnavailable
from c4b.policies.catalogue import registry
from c4b.service.audit_process import AuditProcess
from support.python_gates import WrappedRefresh
from support.service_process import Service, serving
from support.token_service import BODY, ROUND

DIM, ROUNDS = 8, 400


def audit_of(service: Service) -> psutil.Process:
    """The process of an audit that has begun."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        for child in psutil.Process(service.process.pid).children():
            if "c4b.service.audit_process" in child.cmdline():
                return child
        time.sleep(0.01)
    raise AssertionError("no audit began")


def begun(client: httpx.Client, path: str) -> tuple[threading.Thread, list[httpx.Response]]:
    answers: list[httpx.Response] = []

    def ask() -> None:
        try:
            answers.append(client.post(path))
        except httpx.TransportError:
            return  # the service was killed

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, answers


def niceness(process: psutil.Process) -> set[int]:
    """Of its threads."""
    threads = os.listdir(f"/proc/{process.pid}/task")
    return {os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in threads}


def test_decisions_go_first(service: Service, name: str) -> None:
    at = f"/v1/deployments/{name}"
    with service.http() as http, service.http() as other:
        http.put(at, json=BODY).raise_for_status()
        http.post(f"{at}/decisions", json=ROUND).raise_for_status()
        auditing, answers = begun(other, f"{at}/audit")
        audit = audit_of(service)
        least = min(psutil.Process(service.process.pid).nice() + NICENESS, 19)
        deadline = time.monotonic() + 60.0
        while niceness(audit) != {least} and time.monotonic() < deadline:  # it is only just starting
            time.sleep(0.002)
        audit.suspend()
        try:
            assert niceness(audit) == {least}
            for _ in range(20):
                http.post(f"{at}/decisions", json=ROUND).raise_for_status()
            assert http.post(f"{at}/audit").status_code == 429
            assert not answers
        finally:
            audit.resume()
        auditing.join()
        assert answers[0].json()["clean"]
        assert not audit.is_running()


def test_an_audit_ends_with_its_worker(tmp_path: Path) -> None:
    store, rng = f"sqlite:///{tmp_path}/long.db", np.random.default_rng(0)
    with Deployment.create(store, "long", LinearModel(DIM, 0.1, 1.0)) as dep:
        pool = rng.normal(size=(ROUNDS, 5, DIM)) / DIM
        dep.decide_many([(each, each[0]) for each in pool])
    with serving(store, tmp_path / "log") as service, service.http() as http:
        begun(http, "/v1/deployments/long/audit?sample=1000")
        audit = audit_of(service)
        service.stop(signal.SIGKILL)
        audit.wait(10.0)


def test_a_policy_that_only_this_program_knows(sqlite_url: str) -> None:
    registry.register_gate("only-here", "for this test")(WrappedRefresh)
    try:
        with Deployment.create(sqlite_url, "mine", LinearModel(2, 0.1, 1.0), "only-here") as dep:
            dep.decide([[1.0, 0.1]], [1.0, 0.0])
            assert AuditProcess(sqlite_url, None).run(dep, 4).level == "replayed"
    finally:
        registry._REGISTRY.pop("only-here")


def test_before_the_first_witness(sqlite_url: str, tmp_path: Path) -> None:
    with Deployment.create(sqlite_url, "mine", LinearModel(2, 0.1, 1.0)) as dep:
        assert AuditProcess(sqlite_url, str(tmp_path / "absent")).run(dep, 4).attested == 0
        dep.witness(tmp_path / "kept")
        assert AuditProcess(sqlite_url, str(tmp_path / "kept")).run(dep, 4).attested == 1


def test_after_the_end_of_the_worker(sqlite_url: str) -> None:
    with Deployment.create(sqlite_url, "mine", LinearModel(2, 0.1, 1.0)) as dep:
        audits = AuditProcess(sqlite_url, None)
        audits.close()
        with pytest.raises(StoreUnavailable, match="without a report"):
            audits.run(dep, 4)
