"""Who may do what: every route with every kind of token, against a table written down here."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
import pytest

from c4b.deployment import Deployment
from support import raw_http
from support.token_service import BODY, ROUND, TokenService

PUBLIC, READ, DECIDE, ADMIN = "public", "read", "decide", "admin"

TABLE: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/healthz"): (PUBLIC, None),
    ("GET", "/readyz"): (PUBLIC, None),
    ("GET", "/metrics"): (READ, None),
    ("GET", "/v1/deployments"): (READ, None),
    ("GET", "/v1/deployments/{name}"): (READ, None),
    ("PUT", "/v1/deployments/{name}"): (ADMIN, BODY),
    ("POST", "/v1/deployments/{name}/history"): (ADMIN, {"features": [], "rewards": []}),
    ("GET", "/v1/deployments/{name}/decisions"): (READ, None),
    ("POST", "/v1/deployments/{name}/decisions"): (DECIDE, ROUND),
    ("POST", "/v1/deployments/{name}/decisions/batch"): (DECIDE, {"rounds": []}),
    ("GET", "/v1/deployments/{name}/decisions/{id}"): (READ, None),
    ("PUT", "/v1/deployments/{name}/decisions/{id}/outcome"): (DECIDE, {"reward": 0.5}),
    ("PUT", "/v1/deployments/{name}/decisions/{id}/executed"): (DECIDE, {"features": None}),
    ("POST", "/v1/deployments/{name}/outcomes"): (DECIDE, {"outcomes": []}),
    ("GET", "/v1/deployments/{name}/series"): (READ, None),
    ("GET", "/v1/deployments/{name}/earnings"): (READ, None),
    ("GET", "/v1/deployments/{name}/earnings/course"): (READ, None),
    ("GET", "/v1/deployments/{name}/items"): (READ, None),
    ("GET", "/v1/deployments/{name}/pending"): (READ, None),
    ("POST", "/v1/deployments/{name}/audit"): (READ, None),
    ("GET", "/v1/deployments/{name}/export"): (READ, None),
    ("POST", "/v1/deployments/{name}/orders"): (ADMIN, {"action": "thaw", "why": "go on"}),
    ("POST", "/v1/deployments/{name}/erasures"): (ADMIN, {"before": "2026-01-01T00:00:00Z"}),
    ("POST", "/v1/deployments/{name}/successor"): (ADMIN, {"successor": "mine-2", "why": "a test"}),
}
"""What a route needs, and a body that it takes."""
HOLDS = {
    "read": (READ,),
    "decide": (READ, DECIDE),
    "mine": (READ, DECIDE),
    "admin": (READ, DECIDE, ADMIN),
}


def expected(need: str, who: str, whole: bool) -> int:
    """0: allowed. ``whole``: the route is about no deployment, or about the one of the token "mine"."""
    if need == PUBLIC:
        return 0
    if who in ("none", "revoked", "forged"):
        return 401
    return 0 if need in HOLDS[who] and (whole or who != "mine") else 403


def test_the_table_has_every_route(token_service: TokenService) -> None:
    with token_service.service.http() as http:
        paths = http.get("/openapi.json").json()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert routes == set(TABLE)


def hashes(token_service: TokenService) -> dict[str, str]:
    result = {}
    for name in ("mine", "other"):
        with Deployment.open(token_service.service.store, name) as dep:
            result[name] = dep.state().hash
    return result


def first_id(token_service: TokenService, name: str) -> str:
    with Deployment.open(token_service.service.store, name) as dep:
        return dep.decisions(limit=1)[0].decision.id


@pytest.mark.parametrize("who", ["none", "forged", "revoked", "mine", "read", "decide", "admin"])
def test_every_route_with_every_token(token_service: TokenService, who: str) -> None:
    token = {
        "none": None,
        "forged": token_service.admin[:-4] + "AAAA",
        "revoked": token_service.revoked,
        "mine": token_service.mine,
        "read": token_service.read,
        "decide": token_service.decide,
        "admin": token_service.admin,
    }[who]
    before, ids = (
        hashes(token_service),
        {name: first_id(token_service, name) for name in ("mine", "other")},
    )
    refused = 0
    with token_service.service.http(token) as http:
        for name in ("mine", "other"):
            for (method, path), (need, body) in TABLE.items():
                wanted = expected(need, who, "{name}" not in path or name == "mine")
                if not wanted and who != "read" and body is not None:
                    continue  # would change something; the API's own tests do
                at = path.replace("{name}", name).replace("{id}", ids[name])
                response = http.request(method, at, json=body)
                if wanted:
                    assert response.status_code == wanted, (who, method, at, response.text)
                    assert ("www-authenticate" in response.headers) == (wanted == 401)
                    assert response.headers["content-type"] == "application/problem+json"
                    refused += 1
                else:
                    assert response.status_code == 200, (who, method, at, response.text)
    assert refused or who == "admin"
    assert hashes(token_service) == before


def test_what_a_token_allows_works(token_service: TokenService, name: str) -> None:
    """The other half of the table: requests that change something, by the least token that may."""
    with (
        token_service.service.http(token_service.admin) as admin,
        token_service.service.http(token_service.decide) as decide,
    ):
        for (method, path), (need, body) in TABLE.items():
            if body is not None:
                http = admin if need == ADMIN else decide
                at = path.replace("{name}", name)
                if "{id}" in path:
                    at = at.replace("{id}", first_id(token_service, name))
                response = http.request(method, at, json=body)
                assert response.status_code in (200, 201, 409), (method, at, response.text)
                assert response.status_code < 400 or "executed" in at  # its outcome is reported by then


def test_a_token_is_taken_from_its_header_only(token_service: TokenService) -> None:
    token = token_service.admin
    with token_service.service.http() as http:
        for key in ("token", "access_token", "Authorization", "authorization", "api_key"):
            assert http.get("/v1/deployments", params={key: token}).status_code == 401
            assert http.get("/v1/deployments", params={key: f"Bearer {token}"}).status_code == 401
            assert http.get("/v1/deployments", headers={"Cookie": f"{key}={token}"}).status_code == 401
            assert http.get("/v1/deployments", headers={f"X-{key}": token}).status_code == 401
        for value in (token, f"Basic {token}", f"Bearer: {token}", f"Bearer{token}", f"Bearer x {token}"):
            assert http.get("/v1/deployments", headers={"Authorization": value}).status_code == 401, value
        assert (
            http.get("/v1/deployments", headers={"Authorization": f"bearer {token}"}).status_code == 200
        )


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[" * 100_000, b""])
def test_refused_before_the_body_is_parsed(token_service: TokenService, body: bytes) -> None:
    at = "/v1/deployments/mine/decisions"
    with token_service.service.http() as http:
        for kind in ("application/json", "text/plain", "multipart/form-data"):
            response = http.post(at, content=body, headers={"Content-Type": kind})
            assert response.status_code == 401
    with token_service.service.http(token_service.read) as http:
        assert http.post(at, content=body, headers={"Content-Type": "text/plain"}).status_code == 403


def test_refused_before_the_body_is_read(token_service: TokenService) -> None:
    """The answer comes while the body is still to come; nobody is asked to go on."""
    size = b"Content-Length: 1000000\r\n"
    for more in (b"", b"Expect: 100-continue\r\n"):
        with raw_http.connect(token_service.service.port) as connection:
            began = time.monotonic()
            connection.sendall(
                raw_http.head("POST /v1/deployments/mine/decisions", raw_http.JSON, size, more)
            )
            text = connection.recv(65536)
            assert text.startswith(b"HTTP/1.1 401")
            assert time.monotonic() - began < 10.0


def test_a_token_for_one_deployment_sees_that_one(token_service: TokenService) -> None:
    with token_service.service.http(token_service.mine) as http:
        assert [each["name"] for each in http.get("/v1/deployments").json()["deployments"]] == ["mine"]
        text = http.get("/metrics").text
        assert set(re.findall(r'deployment="([^"]*)"', text)) == {"mine"}
        assert "other" not in text.replace('method="other"', "")
        missing = http.get("/v1/deployments/nobody-has-this")
        assert missing.status_code == http.get("/v1/deployments/other").status_code == 403
    with token_service.service.http(token_service.read) as http:
        assert len(http.get("/v1/deployments").json()["deployments"]) >= 2


def test_secrets_stay_secret(token_service: TokenService) -> None:
    """Nothing of a token but its id, and nothing of a query, in answers or in the log."""
    every = [
        token_service.read,
        token_service.decide,
        token_service.admin,
        token_service.mine,
        token_service.revoked,
    ]
    answers: list[httpx.Response] = []
    for token in every:
        with token_service.service.http(token) as http:
            for path in (
                "/v1/deployments",
                "/metrics",
                "/nowhere",
                "/v1/deployments/other",
                "/",
                "/docs",
            ):
                answers.append(http.get(path, params={"token": token, "marked-query": "1"}))
            answers.append(http.put("/v1/deployments/other", content=token))
            answers.append(http.get("/v1/deployments/mine/decisions", params={"limit": token}))
    log = token_service.service.log.read_text()
    assert token_service.read.split("_")[1] in log
    assert "marked-query" not in log
    for token in every:
        secret = token.split("_", 2)[2]
        assert secret not in log
        for answer in answers:
            assert secret not in answer.text + str(answer.headers)
