"""The log: one line of JSON a request, with the id that the client got."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from c4b.service.monitoring import request_log
from support import raw_http
from support.service_process import Service, serving

Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def lines(service: Service) -> Lines:
    """The requests in the log that have this id; a line is written after the answer."""

    def lines_of(name: str) -> list[dict[str, Any]]:
        for _ in range(100):
            every = [json.loads(line) for line in service.logged() if line.startswith("{")]
            asked = [each for each in every if each["event"] == "request" and each["request_id"] == name]
            if asked:
                return asked
            time.sleep(0.05)
        return []

    return lines_of


def test_every_request_is_one_line(service: Service, lines: Lines) -> None:
    with service.http() as http:
        for method, path, status in (
            ("GET", "/healthz", 200),
            ("GET", "/nowhere", 404),
            ("DELETE", "/v1/deployments", 405),
            ("PUT", "/v1/deployments/x", 422),
            ("GET", "/v1/deployments/nobody", 422),  # no such parameter
            ("GET", "/static/index.html", 200),
        ):
            response = http.request(method, f"{path}?private=1")
            assert response.status_code == status
            (line,) = lines(response.headers["x-request-id"])
            assert (line["method"], line["path"], line["status"]) == (method, path, status)
            assert (line["level"], line["logger"]) == ("info", "c4b.service")
            assert line["milliseconds"] >= 0.0
            assert {"time", "process", "token"} <= set(line)


@pytest.mark.parametrize("asked", ["a", "0123-abc", "trace:1/2+3=4@5._", "x" * 100])
def test_an_id_that_was_given_is_kept(service: Service, lines: Lines, asked: str) -> None:
    with service.http() as http:
        response = http.get("/healthz", headers={"X-Request-ID": asked})
    assert response.headers["x-request-id"] == asked
    assert len(lines(asked)) == 1


@pytest.mark.parametrize(
    "asked",
    [b"", b"x" * 101, b"x" * 10_000, b"a b", b'"}', b"\xff\xfe", b"a\tb", b"{}", b"<script>", b"a\\nb"],
)
def test_a_hostile_id_is_replaced(service: Service, lines: Lines, asked: bytes) -> None:
    status, top, _ = raw_http.exchange(
        service.port, raw_http.head("GET /healthz", b"X-Request-ID: " + asked + b"\r\n")
    )
    assert status == 200
    (name,) = [line.split(b": ")[1] for line in top.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert len(name) == 32
    assert len(lines(name.decode())) == 1


def test_an_id_cannot_hold_a_line_end(service: Service) -> None:
    for end in (b"\n", b"\r", b"\0"):
        sent = raw_http.head("GET /healthz", b"X-Request-ID: a" + end + b" {}\r\n")
        assert raw_http.exchange(service.port, sent)[0] in (0, 400)


@pytest.mark.parametrize(
    "path", ["/a%0Ab", "/a%0D%0Ab", "/%E2%80%A8x", "/%C2%85x", "/%FF", "/%00", "/é%22%5C"]
)
def test_a_path_cannot_end_a_line(service: Service, lines: Lines, path: str) -> None:
    """Not even with the ends of lines that only Unicode knows."""
    with service.http() as http:
        response = http.get(path)
        assert response.status_code == 404
    (line,) = lines(response.headers["x-request-id"])
    assert line["status"] == 404


def test_a_long_path_is_cut(service: Service, lines: Lines) -> None:
    with service.http() as http:
        response = http.get("/" + "x" * 5000)
    (line,) = lines(response.headers["x-request-id"])
    assert len(line["path"]) == 300


def test_a_line_holds_any_value() -> None:
    values = {
        "text": 'a"\u2028\n',
        "whole": 3,
        "part": 0.1,
        "yes": True,
        "none": None,
        "odd": {1},
        "inf": 1e999,
    }
    line = request_log.JsonFormatter().format(request_log.EventRecord("request", values))
    assert line.isascii()
    assert "\n" not in line
    read = json.loads(line)
    assert (read["event"], read["level"], read["logger"]) == ("request", "info", "c4b.service")
    assert read["process"] == os.getpid()
    assert abs(datetime.fromisoformat(read["time"]).timestamp() - time.time()) < 60.0
    assert {key: read[key] for key in values} == {**values, "odd": "{1}"}


def test_a_record_has_what_every_record_has() -> None:
    usual = logging.LogRecord("c4b.service", logging.INFO, "", 0, "request", None, None)
    record = request_log.EventRecord("request", {})
    assert set(vars(record)) == {*vars(usual), "fields"}
    assert record.getMessage() == "request"


def test_every_line_is_json_but_the_greeting(service: Service) -> None:
    for line in service.logged():
        assert line.startswith("c4b: ") or json.loads(line)["event"]


def test_the_log_has_the_reason_of_a_503(tmp_path: Path) -> None:
    """The store's file is moved away under the service, and back."""
    file, log = tmp_path / "shop.db", tmp_path / "log"
    body = {"candidates": [[1.0, 0.1]], "baseline": [1.0, 0.0]}
    with serving(f"sqlite:///{file}", log) as service, service.http() as http:
        model = {"dim": 2, "noise": 0.1, "norm_bound": 1.0}
        http.put("/v1/deployments/shop", json={"model": model}).raise_for_status()
        decide = partial(http.post, "/v1/deployments/shop/decisions", json=body)
        decide().raise_for_status()
        file.rename(tmp_path / "elsewhere")
        refused = decide(headers={"Idempotency-Key": "once"})
        assert (refused.status_code, http.get("/readyz").status_code) == (503, 503)
        (tmp_path / "elsewhere").rename(file)
        decide(headers={"Idempotency-Key": "once"}).raise_for_status()
        written = [json.loads(line) for line in service.logged() if line.startswith("{")]
    reasons = [w["event"] for w in written if w.get("request_id") == refused.headers["x-request-id"]]
    assert "shop.db was removed or replaced" in reasons[0]
