"""Tokens: what the store keeps, how they are verified, how they are revoked."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, text

from c4b.errors import InvalidInput, StoreUnavailable, UnknownName
from c4b.journal.sql.sql_store import Store
from c4b.service.access import token_verifier, tokens
from c4b.service.access.token_verifier import CACHE_SECONDS, TokenVerifier
from c4b.service.access.tokens import Scope
from c4b.service.serving.server import check_host
from support.service_process import C4B, Service, free_port, serving
from support.small_studies import Call
from support.token_service import TokenService


@pytest.fixture
def c4b(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys)


@contextmanager
def verifier(url: str) -> Iterator[TokenVerifier]:
    store = Store(url)
    try:
        yield TokenVerifier(store)
    finally:
        store.close()


def test_create_list_revoke(url: str) -> None:
    made = tokens.create(url, "decide", "shop", "the web shop")
    _, name, secret = made.split("_", 2)
    assert len(secret) >= 43
    (listed,) = tokens.listed(url)
    assert (listed.id, listed.scope, listed.deployment) == (name, Scope.decide, "shop")
    assert (listed.label, listed.revoked) == ("the web shop", None)
    assert secret not in repr(listed)
    with verifier(url) as check:
        granted = check.grant(made)
    assert granted is not None
    assert (granted.token, granted.scope, granted.deployment) == (name, Scope.decide, "shop")
    ended = tokens.revoke(url, name)
    assert ended.revoked is not None
    assert tokens.revoke(url, name).revoked == ended.revoked  # twice is harmless
    with verifier(url) as check:
        assert check.grant(made) is None


def test_the_store_keeps_a_hash_only(sqlite_url: str, tmp_path: Path) -> None:
    made = tokens.create(sqlite_url, "admin")
    secret = made.split("_", 2)[2].encode()
    tokens.listed(sqlite_url)
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert files
    assert any(made.split("_")[1].encode() in path.read_bytes() for path in files)
    for path in files:
        assert secret not in path.read_bytes()
        assert secret[:16] not in path.read_bytes()


def test_only_the_whole_token_is_one(url: str) -> None:
    one, other = tokens.create(url, "admin"), tokens.create(url, "read")
    _, name, secret = one.split("_", 2)
    _, another, _ = other.split("_", 2)
    wrong: list[str | None] = [
        None,
        "",
        "_",
        "__",
        "c4b_",
        "c4b__",
        f"c4b_{name}",
        f"c4b_{name}_",
        f"c4b_{name}_{secret[:-1]}",
        f"c4b_{name}_{secret}x",
        f"c4b_{name}_{secret} ",
        f"c4b_{another}_{secret}",
        f"c4b_{'0' * 12}_{secret}",
        f"C4B_{name}_{secret}",
        f"x_{name}_{secret}",
        f"{name}_{secret}",
        f"c4b_{name.upper()}_{secret}" if name.upper() != name else "c4b_x_y",
        "c4b_ä_ö",
        "c4b_\ud800_\udfff",
        f"c4b_{name}_\ud800",
        "\0",
        "' OR 1=1 --",
        "c4b_" + "x" * 1_000_000,
        f"c4b_{name}_" + "x" * 1_000_000,
    ]
    with verifier(url) as check:
        for token in wrong:
            assert check.grant(token) is None, token and token[:60]
        assert check.grant(one) is not None


def test_once_there_was_a_token_one_is_needed(url: str) -> None:
    made = tokens.create(url, "admin")
    tokens.revoke(url, made)  # the whole token will do
    with verifier(url) as check:
        assert not check.unprotected
        assert check.grant(None) is None


def test_tokens_are_read_before_they_are_too_old(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tokens.create(url, "admin")
    with verifier(url) as check:
        assert check.claim_refresh()  # nothing was read yet
        assert not check.claim_refresh()  # somebody does it
        check.refresh()
        assert not check.stale
        assert not check.claim_refresh()
        monkeypatch.setattr(token_verifier, "_EARLY_SECONDS", 0.0)
        assert check.claim_refresh()
        tokens.revoke(url, made.split("_")[1])
        check.refresh()
        assert check.grant(made) is None
        monkeypatch.setattr(check, "_read", unavailable)
        assert check.claim_refresh()
        check.refresh()  # says nothing: whoever needs the tokens will
        assert check.claim_refresh()


def unavailable() -> None:
    raise StoreUnavailable("no disk")


def test_tokens_that_vanish_open_no_door(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tokens.create(url, "admin")
    with verifier(url) as check:
        assert check.grant(made) is not None
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM c4b_token"))
        engine.dispose()
        monkeypatch.setattr(token_verifier, "CACHE_SECONDS", -1.0)
        assert check.grant(made) is None
        assert check.grant(None) is None
        assert not check.unprotected


@pytest.mark.parametrize(
    ("scope", "deployment", "label", "error"),
    [
        ("root", None, "", UnknownName),
        ("", None, "", UnknownName),
        ("Admin", None, "", UnknownName),
        ("read", "", "", InvalidInput),
        ("read", "../x", "", InvalidInput),
        ("read", "a\0b", "", InvalidInput),
        ("read", "x" * 101, "", InvalidInput),
        ("read", None, "a\nb", InvalidInput),
        ("read", None, "a\0b", InvalidInput),
        ("read", None, "\ud800", InvalidInput),
        ("read", None, "x" * 201, InvalidInput),
    ],
)
def test_mistakes_are_typed(
    sqlite_url: str, scope: str, deployment: str | None, label: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        tokens.create(sqlite_url, scope, deployment, label)
    with pytest.raises(StoreUnavailable):  # not even the store was made
        tokens.listed(sqlite_url)


@pytest.mark.parametrize("name", ["", "0" * 12, "a\0b", "\ud800", "é", "x" * 1000, "%", "c4b_0_secret"])
def test_revoking_what_is_no_token(url: str, name: str) -> None:
    with pytest.raises(StoreUnavailable if url.startswith("sqlite") else UnknownName):
        tokens.revoke(url, name)
    tokens.create(url, "read", label="x" * 200)
    with pytest.raises(UnknownName) as caught:
        tokens.revoke(url, name)
    assert "secret" not in str(caught.value)
    assert tokens.listed(url)[0].revoked is None


def test_the_first_tokens_at_once(url: str) -> None:
    """Two that find no table make it once."""
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: tokens.create(url, "read"), range(6)))
    assert len(set(made)) == len(tokens.listed(url)) == 6


def test_the_commands(sqlite_url: str, c4b: Call) -> None:
    store = ["--store", sqlite_url]
    made = c4b(
        "token", "create", "--scope", "read", "--deployment", "shop", "--label", "[b]Ann[/b]", *store
    )
    assert made.code == 0, made.err
    _, name, secret = made.out.strip().split("_", 2)
    assert secret not in made.err
    listed = c4b("token", "list", "--json", *store).out
    (token,) = json.loads(listed)
    assert (token["id"], token["scope"], token["deployment"]) == (name, "read", "shop")
    shown = c4b("token", "list", *store).out
    assert name in shown
    assert "[b]Ann[/b]" in shown
    assert secret not in listed + shown
    assert json.loads(c4b("token", "revoke", name, *store).out)["revoked"] is not None
    lost = c4b("token", "revoke", "nobody", *store)
    assert (lost.code, lost.out) == (2, "")
    assert "c4b token list" in lost.err
    bad = c4b("token", "create", "--scope", "root", *store)
    assert (bad.code, bad.out) == (2, "")
    assert "read, decide, admin" in bad.err


def test_without_tokens_only_this_machine_is_served(sqlite_url: str, service: Service) -> None:
    command = [*C4B, "serve", "--store", sqlite_url, "--host", "0.0.0.0", "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "c4b token create" in done.stderr
    assert "Traceback" not in done.stderr
    for host in ("::", "192.0.2.1", "example.com", "", "127.0.0.1.example.com"):
        with pytest.raises(InvalidInput, match="c4b token create"):
            check_host(sqlite_url, host)
    assert "no token is configured" in service.log.read_text()


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "a@localhost"],
)
def test_a_foreign_name_is_refused_while_there_are_no_tokens(service: Service, host: str) -> None:
    """DNS rebinding: a page makes its own name point here."""
    with service.http() as http:
        for path in (
            "/v1/deployments",
            "/metrics",
            "/",
            "/openapi.json",
            "/healthz",
            "/static/index.html",
        ):
            response = http.get(path, headers={"Host": host})
            assert response.status_code == 403
            assert response.json()["type"] == "urn:c4b:problem:loopback-only"
        for own in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:80"):
            assert http.get("/v1/deployments", headers={"Host": own}).status_code == 200


def test_the_life_of_a_service(tmp_path: Path) -> None:
    """First without tokens, then with one created while it runs; a revoked token ends in time."""
    store = f"sqlite:///{tmp_path}/shop.db"
    away = {"Host": "c4b.example"}
    with serving(store, tmp_path / "log") as running, running.http() as http:
        assert http.get("/v1/deployments").status_code == 200
        token = tokens.create(store, "admin")
        time.sleep(CACHE_SECONDS + 0.1)
        assert http.get("/healthz", headers=away).status_code == 200
        assert http.get("/v1/deployments", headers=away).status_code == 401
        mine = {"Authorization": f"Bearer {token}"}
        assert http.get("/v1/deployments", headers={**mine, **away}).status_code == 200
        tokens.revoke(store, token)
        time.sleep(CACHE_SECONDS + 0.1)
        assert http.get("/v1/deployments", headers=mine).status_code == 401
        assert http.get("/v1/deployments").status_code == 401


def test_a_service_for_others(token_service: TokenService) -> None:
    """With a token it answers under any name, from its first request, at every address."""
    assert token_service.first_status == 200
    address = own_address()
    if address is not None:
        headers = {"Authorization": f"Bearer {token_service.read}"}
        at = f"http://{address}:{token_service.service.port}/v1/deployments"
        assert httpx.get(at, headers=headers, trust_env=False).status_code == 200
        assert httpx.get(at, trust_env=False).status_code == 401


def own_address() -> str | None:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return str(probe.getsockname()[0])
