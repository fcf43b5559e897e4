"""Several workers, one budget: under load, while workers are killed, and when asked to stop."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

import c4b
from c4b.errors import ServiceUnavailable
from support.postgres_server import Server
from support.service_process import Service, serving

MODEL = c4b.LinearModel(dim=3, noise=0.1, norm_bound=1.0)
BASELINE = [1.0, 0.0, 0.0]


def pool(rng: np.random.Generator) -> np.ndarray:
    return np.asarray(BASELINE) + 0.2 * rng.normal(size=(4, 3))


class Caller(threading.Thread):
    """Decides and reports outcomes as fast as it can; remembers what was acknowledged."""

    def __init__(self, service: Service, number: int, going: Callable[[int], bool]) -> None:
        super().__init__(daemon=True)
        self.service, self.number, self.going = service, number, going
        self.decided: dict[str, str] = {}  # request id -> decision id
        self.observed: dict[str, float] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        rng = np.random.default_rng(self.number)
        try:
            with c4b.Client(self.service.url, attempts=60, timeout=20.0) as client:
                done = 0
                while self.going(done):
                    request_id = f"{self.number}-{done}"
                    made = client.decide("shop", pool(rng), BASELINE, request_id=request_id)
                    self.decided[request_id] = made.id
                    client.observe("shop", made.id, 0.5)
                    self.observed[made.id] = 0.5
                    done += 1
        except BaseException as error:  # noqa: BLE001 (raised by the test)
            self.error = error


def check(service: Service, callers: list[Caller]) -> int:
    """What was acknowledged is there, once, and the audit is clean."""
    for caller in callers:
        if caller.error is not None:
            raise caller.error
    decided = {request_id: id_ for caller in callers for request_id, id_ in caller.decided.items()}
    with c4b.Client(service.url) as client:
        rows = {row.request_id: row for row in client.decisions("shop")}
        assert {request_id: rows[request_id].id for request_id in decided} == decided
        assert len(set(decided.values())) == len(decided)
        state = client.deployment("shop").state
        assert state.rounds == len(rows)
        assert state.pending == 0
        assert all(row.outcome == "observed" for row in rows.values())
        banks = [row.bank for row in rows.values()]
        assert all(bank is not None and bank >= 0.0 for bank in banks)
        verdict = client.audit("shop", sample=4)
        assert verdict.clean, verdict
    return len(decided)


def test_four_workers_under_load(url: str, tmp_path: Path) -> None:
    with serving(url, tmp_path / "log", "--workers", "4") as service:
        with c4b.Client(service.url) as client:
            client.create("shop", MODEL, policy="refresh", alpha=0.1, reserve=0.5)
        _all_up(service, 4)
        callers = [Caller(service, n, lambda done: done < 40) for n in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(240.0)
        assert check(service, callers) == 320
        served = {line.split('"process": ')[1].split(",")[0] for line in _decisions(service)}
        assert len(served) > 1, "only one worker ever served"
        with service.http() as http:
            page = http.get("/metrics").text
        route = (
            'c4b_http_requests_total{method="POST",route="/v1/deployments/{name}/decisions",status="200"}'
        )
        assert f"{route} 320.0" in page  # of all workers


def _all_up(service: Service, workers: int) -> None:
    """Until as many workers serve; one that is up before the others would get all connections."""
    deadline, seen = time.monotonic() + 120.0, set()
    while len(seen) < workers and time.monotonic() < deadline:
        httpx.get(f"{service.url}/healthz")  # a connection of its own
        lines = service.logged()
        seen = {json.loads(line)["process"] for line in lines if '"/healthz"' in line}
    assert len(seen) == workers, "not all workers came up"


def _decisions(service: Service) -> list[str]:
    lines = service.logged()
    return [line for line in lines if '"POST"' in line and "/decisions" in line]


def test_workers_killed_under_load(url: str, tmp_path: Path) -> None:
    """Six kills: clients that repeat lose nothing, and nothing is done twice."""
    rng, stop = random.Random(1), threading.Event()
    with serving(url, tmp_path / "log", "--workers", "3") as service:
        with c4b.Client(service.url) as client:
            client.create("shop", MODEL, policy="refresh", alpha=0.1, reserve=0.5)
        callers = [Caller(service, n, lambda _: not stop.is_set()) for n in range(6)]
        for caller in callers:
            caller.start()
        killed = 0
        while killed < 6:
            time.sleep(rng.uniform(0.3, 1.0))
            workers = service.workers()
            if len(workers) > 1:  # leave one to serve while the others come back
                os.kill(rng.choice(workers), signal.SIGKILL)
                killed += 1
        time.sleep(1.0)
        stop.set()
        for caller in callers:
            caller.join(240.0)
        assert check(service, callers) > 20


def test_a_graceful_stop_finishes_what_is_under_way(sqlite_url: str, tmp_path: Path) -> None:
    with serving(sqlite_url, tmp_path / "log") as service:
        with c4b.Client(service.url) as client:
            client.create("shop", MODEL, policy="refresh", alpha=0.1, reserve=0.5)
        answers: list[int | str] = []
        rng = np.random.default_rng(0)
        body = {"candidates": pool(rng).tolist(), "baseline": BASELINE}

        def call() -> None:
            with service.http() as http:
                while True:
                    try:
                        answer = http.post("/v1/deployments/shop/decisions", json=body)
                    except httpx.ConnectError:
                        return  # nobody listens any more
                    except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                        # an idle connection was closed just when we used it; the system may say so by a
                        # reset, because what we sent was never read
                        answers.append("cut")
                        return
                    answers.append(answer.status_code)

        callers = [threading.Thread(target=call, daemon=True) for _ in range(6)]
        for caller in callers:
            caller.start()
        time.sleep(1.0)
        assert service.stop() == 0  # an orderly end, not a death by signal
        for caller in callers:
            caller.join(30.0)
        assert set(answers) <= {200, "cut"}
        with c4b.Deployment.open(sqlite_url, "shop") as dep:
            rounds = dep.state().rounds
            assert answers.count(200) <= rounds <= answers.count(200) + answers.count("cut")
            assert dep.audit(sample=2).clean


def test_a_port_that_is_taken_and_other_mistakes(service: Service, tmp_path: Path) -> None:
    for arguments, says in (
        (["--port", str(service.port)], "is in use"),
        (["--log-level", "loud"], "must be one of"),
        (["--tls-cert", "a.pem"], "come together"),
        (["--host", "0.0.0.0"], "c4b token create"),
        (["--timeout", "-1"], "positive"),
    ):
        with pytest.raises(AssertionError, match=says):
            Service(f"sqlite:///{tmp_path}/x.db", tmp_path / "log", *arguments)
    with pytest.raises(ServiceUnavailable), c4b.Client("http://127.0.0.1:1", attempts=1) as client:
        client.deployments()


def test_a_worker_that_dies_while_the_store_is_away(
    server: Server, postgres_url: str, tmp_path: Path
) -> None:
    """It is replaced, and the service goes on; once the store is back, it serves without a restart."""
    with serving(postgres_url, tmp_path / "log", "--workers", "2") as service:
        with c4b.Client(service.url) as client:
            client.create("shop", MODEL)
        server.stop()
        try:
            before = set(service.workers())
            os.kill(min(before), signal.SIGKILL)
            until(lambda: len(set(service.workers()) - before) == 1 and len(service.workers()) == 2)
            until(lambda: "nothing was written" in service.log.read_text())  # the new one has started
            with service.http() as http:
                until(lambda: http.get("/healthz").status_code == 200)
                assert http.get("/readyz").status_code == 503
        finally:
            server.start()
        service.wait()
        with c4b.Client(service.url, attempts=60) as client:
            for n in range(20):
                client.decide("shop", [], BASELINE, request_id=f"r-{n}")
            assert client.deployment("shop").state.rounds == 20
        assert service.stop() == 0
        assert "Traceback" not in service.log.read_text()


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
