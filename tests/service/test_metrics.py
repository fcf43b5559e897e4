"""The Prometheus metrics, and the Grafana dashboard that uses them."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from c4b.service.access import tokens
from c4b.service.access.token_verifier import CACHE_SECONDS
from c4b.service.monitoring import grafana
from c4b.service.monitoring.metrics import CONTENT_TYPE, RequestMetrics
from support.service_process import Service, serving
from support.shop_world import sql
from support.small_studies import Call
from support.token_service import BODY, ROUND

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(http: httpx.Client) -> Samples:
    response = http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == CONTENT_TYPE
    collected: Samples = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in collected
            collected[key] = sample.value
    return collected


def value(collected: Samples, metric: str, **labels: str) -> float:
    return collected[metric, frozenset(labels.items())]


def test_counters_are_the_journal(service: Service, name: str) -> None:
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        http.put(at, json=BODY)
        http.post(f"{at}/history", json={"features": [[1.0, 0.0]], "rewards": [0.5]})
        for _ in range(3):
            made = http.post(f"{at}/decisions", json=ROUND).json()
        http.put(f"{at}/decisions/{made['id']}/outcome", json={"reward": 0.5})
        state = http.get(at).json()["state"]
        collected = samples(http)
    for metric, field in {
        "c4b_decisions_total": "rounds",
        "c4b_fallbacks_total": "fallbacks",
        "c4b_observations_total": "observations",
        "c4b_journal_entries_total": "seq",
        "c4b_bank": "bank",
        "c4b_reserve": "reserve",
        "c4b_pending_outcomes": "pending",
        "c4b_waiting_outcomes": "waiting",
        "c4b_radius": "radius",
        "c4b_clock_ahead_seconds": "clock_ahead",
    }.items():
        assert value(collected, metric, deployment=name) == state[field], metric
    assert value(collected, "c4b_decisions_total", deployment=name) == 3
    assert value(collected, "c4b_alarm", deployment=name) == 0
    assert value(collected, "c4b_oldest_pending_seconds", deployment=name) >= 0


def test_requests_are_counted(service: Service, name: str) -> None:
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY)
        before = samples(http)
        for _ in range(4):
            http.get(f"/v1/deployments/{name}")
        http.get("/v1/deployments/nobody")
        after = samples(http)
    labels = {"method": "GET", "route": "/v1/deployments/{name}"}

    def grown(metric: str, **more: str) -> float:
        key = metric, frozenset({**labels, **more}.items())
        return after[key] - before.get(key, 0.0)

    assert grown("c4b_http_request_seconds_count") == 5
    assert grown("c4b_http_request_seconds_bucket", le="+Inf") == 5
    assert grown("c4b_http_request_seconds_sum") > 0
    assert grown("c4b_http_requests_total", status="200") == 4
    assert grown("c4b_http_requests_total", status="404") == 1


def test_strangers_invent_no_series(service: Service, name: str) -> None:
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY)
        http.get(f"/v1/deployments/{name}/decisions/{name}-1")
        for path in ("/made/up", f"/{name}", "/static/none", "/v1/deployments/%22%0A", "/v1"):
            http.get(path)
        http.request("PROPFIND", f"/v1/deployments/{name}")
        routes = set(http.get("/openapi.json").json()["paths"])
        collected = samples(http)
    labels = [dict(labels) for _, labels in collected]
    seen = {each["route"] for each in labels if "route" in each}
    assert "(none)" in seen
    assert "/v1/deployments/{name}/decisions/{id}" in seen
    pages = {"(none)", "/", "/docs", "/openapi.json", "/static"}
    assert all(each.startswith("/swagger/") for each in seen - routes - pages), seen
    known = {"GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "other"}
    assert {each["method"] for each in labels if "method" in each} <= known


def test_a_policy_without_a_gate(service: Service, name: str) -> None:
    """No bank: not a number, and nothing breaks."""
    with service.http() as http:
        at = f"/v1/deployments/{name}"
        assert http.put(at, json={**BODY, "policy": "linucb"}).status_code == 201
        assert http.post(f"{at}/decisions", json=ROUND).json()["bank"] is None
        bank = value(samples(http), "c4b_bank", deployment=name)
        assert math.isnan(bank)
        assert http.get(at).json()["state"]["bank"] is None


def test_the_dashboard_asks_for_what_there_is(
    service: Service, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY)
        http.post(f"/v1/deployments/{name}/decisions", json=ROUND)
        collected = samples(http)
    names = {metric for metric, _ in collected}
    dashboard = json.loads(Call(monkeypatch, capsys)("grafana").out)
    assert dashboard == grafana.dashboard()
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    assert len(asked) >= 10
    for query in asked:
        used = set(re.findall(r"\bc4b_\w+", query))
        assert used, query
        assert used <= names, query
    routes = {route for query in asked for route in re.findall(r'route="([^"]*)"', query)}
    assert routes
    assert routes <= {dict(labels).get("route") for _, labels in collected}


def test_monitors_see_that_the_store_is_away(tmp_path: Path) -> None:
    """Else the alert on answers 503 could not fire: it is computed from what is scraped."""
    store = f"sqlite:///{tmp_path}/shop.db"
    token = tokens.create(store, "admin")
    with serving(store, tmp_path / "log") as running, running.http(token) as http:
        http.put("/v1/deployments/shop", json=BODY).raise_for_status()
        before = samples(http)
        assert value(before, "c4b_store_available") == 1
        assert value(before, "c4b_broken", deployment="shop") == 0
        (tmp_path / "shop.db").rename(tmp_path / "elsewhere")
        time.sleep(1.5 * CACHE_SECONDS)  # tokens cannot be read again
        assert http.post("/v1/deployments/shop/decisions", json=ROUND).status_code == 503
        during = samples(http)
        assert value(during, "c4b_store_available") == 0
        counted = {"method": "POST", "route": "/v1/deployments/{name}/decisions", "status": "503"}
        assert value(during, "c4b_http_requests_total", **counted) == 1
        assert not [metric for metric, labels in during if "deployment" in dict(labels)]
        with running.http("c4b_0123456789ab_guessed") as stranger:
            assert stranger.get("/metrics").status_code == 503
        (tmp_path / "elsewhere").rename(tmp_path / "shop.db")
        assert value(samples(http), "c4b_store_available") == 1


def test_a_token_that_cannot_be_read_again_shows_no_deployments(tmp_path: Path) -> None:
    """It may have been revoked since. Here only the tokens are away; at the end of an outage a scrape may
    find the store back after it missed the tokens."""
    store = f"sqlite:///{tmp_path}/shop.db"
    token = tokens.create(store, "admin")
    with serving(store, tmp_path / "log") as running, running.http(token) as http:
        http.put("/v1/deployments/shop", json=BODY).raise_for_status()
        sql(store, "ALTER TABLE c4b_token RENAME COLUMN scope TO other")
        sql(store, "ALTER TABLE c4b_token ADD COLUMN scope TEXT AS (json('no json'))")
        time.sleep(1.5 * CACHE_SECONDS)
        during = samples(http)
        assert value(during, "c4b_store_available") == 0
        assert not [metric for metric, labels in during if "deployment" in dict(labels)]
        assert any("malformed JSON" in line for line in running.logged())


def test_a_deployment_that_cannot_be_read(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    with serving(store, tmp_path / "log") as running, running.http() as http:
        for each in ("good", "bad"):
            http.put(f"/v1/deployments/{each}", json=BODY).raise_for_status()
        sql(store, "UPDATE c4b_journal SET payload = x'00' WHERE deployment = 2")
    with serving(store, tmp_path / "log") as running, running.http() as http:
        collected = samples(http)
    assert value(collected, "c4b_broken", deployment="good") == 0
    assert value(collected, "c4b_broken", deployment="bad") == 1


def test_a_full_folder_for_temporary_files_kills_no_worker(tmp_path: Path) -> None:
    """What workers share is on the disk before it is used; without its folder they serve all the same."""
    store, places = f"sqlite:///{tmp_path}/shop.db", {"TMPDIR": str(tmp_path)}
    with (
        serving(store, tmp_path / "log", "--workers", "2", environment=places) as running,
        running.http() as http,
    ):
        (folder,) = tmp_path.glob("c4b-metrics-*")
        files = list(folder.iterdir())
        assert files
        for file in files:
            assert 512 * file.stat().st_blocks >= file.stat().st_size > 0
        shutil.rmtree(folder)
        before = running.workers()
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        while len(set(running.workers()) - set(before)) < 2:
            time.sleep(0.05)
        running.wait()
        http.put("/v1/deployments/shop", json=BODY).raise_for_status()
        assert value(samples(http), "c4b_decisions_total", deployment="shop") == 0
        assert any("not counted in /metrics" in line for line in running.logged())


COUNT = """
import os
from c4b.service.monitoring.metrics import RequestMetrics
RequestMetrics().record("GET", "/", 200, 0.1)
print(os.getpid())
"""


def test_workers_that_are_gone_stay_counted_and_give_their_room_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker that is replaced again and again fills the disk."""
    folder = tmp_path / f"c4b-metrics-{os.getpid()}-x"
    folder.mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(folder))
    for _ in range(3):
        last = subprocess.check_output([sys.executable, "-c", COUNT], text=True).strip()
    small = [file for file in folder.iterdir() if file.stat().st_size < 2**16]
    assert len(small) == 4
    assert not [file for file in small if last in file.name]
    counted = RequestMetrics().render([])
    assert b'c4b_http_requests_total{method="GET",route="/",status="200"} 3.0' in counted


def test_a_worker_with_the_number_of_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    counts = tmp_path / f"counter_{os.getpid()}.db"
    counts.write_bytes(b"counts")
    RequestMetrics()
    assert counts.read_bytes() == b"counts".ljust(2**20, b"\0")
