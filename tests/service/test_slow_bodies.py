"""No request body within the limits keeps a worker from answering others."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from support.service_process import Service
from support.token_service import BODY, ROUND

AT = "/v1/deployments/slow-bodies"
JSON = {"Content-Type": "application/json"}
MOST_DELAY = 0.5
"""Half of it is usual; a slow machine needs as much again to parse a million numbers."""
ROUND_START = b'{"candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0], "context": '


def listed(item: bytes, count: int) -> bytes:
    return b"[" + (item + b",") * (count - 1) + item + b"]"


BODIES = {
    "wrong elements": (b'{"candidates": ' + listed(b"1", 4_000_000) + b', "baseline": [1, 0]}', 413),
    "fewer wrong elements": (b'{"candidates": ' + listed(b"1", 900_000) + b', "baseline": [1, 0]}', 422),
    "numbers": (b'{"candidates": ' + listed(listed(b"0.5", 999), 999) + b', "baseline": [1, 0]}', 422),
    "lists": (b'{"candidates": ' + listed(b"[]", 2_000_000) + b', "baseline": [1, 0]}', 413),
    "fewer lists": (b'{"candidates": ' + listed(b"[]", 200_000) + b', "baseline": [1, 0]}', 422),
    "unknown keys": (b"{" + b",".join(b'"%x":1' % n for n in range(250_000)) + b"}", 422),
    "context of numbers": (ROUND_START + listed(b"1", 900_000) + b"}", 413),
    "context of nested lists": (ROUND_START + listed(b"[" * 90 + b"]" * 90, 3_500) + b"}", 413),
}


@pytest.fixture(scope="module")
def at(service: Service) -> Service:
    with service.http() as http:
        http.put(AT, json=BODY).raise_for_status()
        http.post(f"{AT}/decisions", json=ROUND).raise_for_status()
    return service


@pytest.mark.parametrize("kind", BODIES)
def test_others_are_answered_meanwhile(at: Service, kind: str) -> None:
    """In one of five attempts, and in seconds of a machine that has nothing else to do."""
    body, status = BODIES[kind]
    assert len(body) <= 8_388_608
    delays = []
    for _ in range(5):
        before = _slowdown()
        delay = _longest_delay(at, body, status)
        delays.append(delay / max(before, _slowdown()))
        if delays[-1] <= MOST_DELAY:
            return
    pytest.fail(f"/healthz waited for {delays} s")


def _slowdown() -> float:
    """How much longer than its processor time a computation takes, because others compute, too."""
    began, spent = time.perf_counter(), time.process_time()
    while time.process_time() - spent < 0.1:
        pass
    return (time.perf_counter() - began) / (time.process_time() - spent)


def _longest_delay(service: Service, body: bytes, status: int) -> float:
    """The longest time that /healthz takes while the service has the body to judge."""
    answers: list[httpx.Response] = []

    def send() -> None:
        with service.http() as sender:
            answers.append(sender.post(f"{AT}/decisions", content=body, headers=JSON))

    with service.http() as http:
        http.get("/healthz")
        sending = threading.Thread(target=send)
        sending.start()
        delays = [0.0]
        while sending.is_alive():
            began = time.perf_counter()
            assert http.get("/healthz").status_code == 200
            delays.append(time.perf_counter() - began)
        sending.join()
    assert answers[0].status_code == status, answers[0].text
    return max(delays)


def test_a_batch_of_too_many_small_rounds(at: Service) -> None:
    rounds = b'{"rounds": ' + listed(b'{"candidates":[],"baseline":[]}', 60_000) + b"}"
    with at.http() as http:
        answer = http.post(f"{AT}/decisions/batch", content=rounds, headers=JSON)
        assert answer.status_code == 413


def test_large_bodies_are_accepted(at: Service) -> None:
    """What is within the limits is decided, in a thread."""
    many = {"candidates": [[1.0, 0.125]] * 1000, "baseline": [1.0, 0.0], "context": "x" * 16_000}
    with at.http() as http:
        answer = http.post(f"{AT}/decisions", json=many)
        assert answer.status_code == 200, answer.text
        assert http.get(f"{AT}/decisions/{answer.json()['id']}").json()["context"] == "x" * 16_000
