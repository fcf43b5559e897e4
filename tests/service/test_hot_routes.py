"""Decisions and outcomes are answered the same by the short way and by the framework's.

A body of unknown size goes the framework's way, so every request is sent twice: as bytes, and in pieces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from c4b.service.hot_routes import HotRoutes
from support.service_process import Service
from support.token_service import BODY, ROUND, TokenService

KEYS = ("content-type", "retry-after", "www-authenticate", "cache-control", "content-security-policy")
Headers = dict[str, str | bytes]
JSON: Headers = {"Content-Type": "application/json"}


@pytest.fixture
def shop(service: Service, name: str) -> Iterator[tuple[httpx.Client, str]]:
    with service.http() as http:
        http.put(f"/v1/deployments/{name}", json=BODY).raise_for_status()
        yield http, f"/v1/deployments/{name}/decisions"


def both_ways(
    http: httpx.Client, method: str, path: str, body: bytes, headers: Headers
) -> tuple[httpx.Response, httpx.Response]:
    def pieces() -> Iterator[bytes]:
        yield body[:7]
        yield body[7:]

    short = http.request(method, path, content=body, headers=headers)
    long = http.request(method, path, content=pieces(), headers=headers)
    assert "transfer-encoding" in long.request.headers
    assert "transfer-encoding" not in short.request.headers
    return short, long


def seen(response: httpx.Response) -> tuple[int, bytes, list[str | None]]:
    return response.status_code, response.content, [response.headers.get(key) for key in KEYS]


def test_a_decision_and_its_outcome(shop: tuple[httpx.Client, str]) -> None:
    http, at = shop
    keyed: Headers = {**JSON, "Idempotency-Key": "r-ü".encode()}
    body = json.dumps({**ROUND, "labels": ["red", "blue"], "context": {"user": "ü"}}).encode()
    short, long = both_ways(http, "POST", at, body, keyed)
    assert short.status_code == 200
    assert seen(short) == seen(long)
    made = short.json()["id"]
    for outcome in ({"reward": 0.5}, {"reward": 0.6}, {"lost": True}, {"reward": "much"}, {}):
        one, other = both_ways(http, "PUT", f"{at}/{made}/outcome", json.dumps(outcome).encode(), JSON)
        assert seen(one) == seen(other), outcome
    shown = http.get(f"{at}/{made}").json()
    assert shown["reward"] == 0.5


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'{"candidates": [[1, 2]]}',
        b'{"candidates": [[NaN, 2]], "baseline": [1, 2]}',
        b'{"candidates": [[1, 2, 3]], "baseline": [1, 2]}',
        b'{"candidates": [["a", 2]], "baseline": [1, 2], "more": 1}',
        b'{"candidates": [[1e308, 2]], "baseline": [1, 2], "baseline_mean": 1}',
    ],
)
def test_bodies_that_are_refused(shop: tuple[httpx.Client, str], body: bytes) -> None:
    http, at = shop
    short, long = both_ways(http, "POST", at, body, JSON)
    assert short.status_code == 422
    assert seen(short) == seen(long)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Idempotency-Key": "k" * 1000}, 422),
    ],
)
def test_headers_that_are_refused(shop: tuple[httpx.Client, str], change: Headers, status: int) -> None:
    http, at = shop
    short, long = both_ways(http, "POST", at, json.dumps(ROUND).encode(), {**JSON, **change})
    assert short.status_code == status
    assert seen(short) == seen(long)


@pytest.mark.parametrize(
    "at",
    [
        "/v1/deployments/nobody/decisions",
        f"/v1/deployments/{'n' * 101}/decisions",
        "/v1/deployments/a%2Fb/decisions",
        "/v1/deployments//decisions",
    ],
)
def test_places_that_do_not_exist(service: Service, at: str) -> None:
    with service.http() as http:
        short, long = both_ways(http, "POST", at, json.dumps(ROUND).encode(), JSON)
    assert short.status_code in (404, 405, 422)
    assert seen(short) == seen(long)


def test_tokens(token_service: TokenService) -> None:
    body = json.dumps(ROUND).encode()
    for token, status in (
        (None, 401), (token_service.revoked, 401), (token_service.read, 403), (token_service.mine, 403),
    ):  # fmt: skip
        with token_service.service.http(token) as http:
            short, long = both_ways(http, "POST", "/v1/deployments/other/decisions", body, JSON)
        assert short.status_code == status
        assert seen(short) == seen(long)


def test_both_are_counted_and_logged_as_one_route(shop: tuple[httpx.Client, str]) -> None:
    http, at = shop
    route = 'route="/v1/deployments/{name}/decisions",status="200"'

    def counted() -> float:
        lines = http.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if route in line and "_total{" in line)

    before = counted()
    both_ways(http, "POST", at, json.dumps(ROUND).encode(), JSON)
    assert counted() == before + 2


@pytest.mark.parametrize(
    ("method", "path", "headers", "short"),
    [
        ("POST", "/v1/deployments/shop/decisions", {b"content-length": b"100"}, True),
        ("PUT", "/v1/deployments/shop/decisions/shop-1/outcome", {b"content-length": b"9"}, True),
        ("PUT", "/v1/deployments/shop/decisions", {b"content-length": b"9"}, False),
        ("POST", "/v1/deployments/shop/decisions/shop-1/outcome", {b"content-length": b"9"}, False),
        ("GET", "/v1/deployments/shop/decisions", {}, False),
        ("POST", "/v1/deployments/shop/decisions", {}, False),
        ("POST", "/v1/deployments/shop/decisions", {b"content-length": b"0"}, False),
        ("POST", "/v1/deployments/shop/decisions/batch", {b"content-length": b"9"}, False),
    ],
)
def test_what_goes_the_short_way(
    method: str, path: str, headers: dict[bytes, bytes], short: bool
) -> None:
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers.items())}
    hot = HotRoutes(FastAPI())._recognised(scope)
    assert (hot is not None) is short
    assert hot is None or hot.route.body_field is not None
