"""A service without tokens and one with tokens, each started once for all tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from c4b.service.access import tokens
from support.service_process import Service, serving
from support.token_service import BODY, ROUND, TokenService

_numbers = itertools.count()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with serving(f"sqlite:///{folder}/open.db", folder / "log") as running:
        yield running


@pytest.fixture(scope="session")
def token_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenService]:
    folder: Path = tmp_path_factory.mktemp("tokens")
    store = f"sqlite:///{folder}/tokens.db"
    scopes = [tokens.create(store, scope) for scope in ("read", "decide", "admin")]
    mine = tokens.create(store, "decide", "mine")
    revoked = tokens.create(store, "admin")
    tokens.revoke(store, revoked.split("_")[1])
    options = ("--host", "0.0.0.0", "--failures-per-minute", "1000000")
    with serving(store, folder / "log", *options) as running:
        with running.http(scopes[2]) as http:
            first = http.get("/v1/deployments", headers={"Host": "c4b.example"}).status_code
            for name in ("mine", "other"):
                http.put(f"/v1/deployments/{name}", json=BODY).raise_for_status()
                http.post(f"/v1/deployments/{name}/decisions", json=ROUND).raise_for_status()
        yield TokenService(running, *scopes, mine, revoked, first)


@pytest.fixture
def name() -> str:
    """A deployment name that no other test has."""
    return f"shop-{next(_numbers)}"
