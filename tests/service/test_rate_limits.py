"""Tokens that expire or are limited in rate, addresses that fail too often, and tables made before."""

from __future__ import annotations

from pathlib import Path

import pytest

from c4b.errors import InvalidInput
from c4b.journal.sql.sql_store import Store
from c4b.service.access import rate_limits, token_verifier, tokens
from c4b.service.access.rate_limits import RateLimit
from c4b.service.access.token_verifier import TokenVerifier
from support.service_process import serving
from support.shop_world import sql


def test_buckets() -> None:
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    assert [limit.allows("a", 2.0, 2.0) for _ in range(3)] == [True, True, False]
    assert limit.allows("b", 2.0, 2.0)
    now[0] = 0.5
    assert [limit.allows("a", 2.0, 2.0) for _ in range(2)] == [True, False]
    now[0] = 100.0
    assert [limit.allows("a", 2.0, 2.0) for _ in range(3)] == [True, True, False]


def test_a_limit_forgets_old_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "REMEMBERED", 3)
    limit = RateLimit()
    for key in range(100):
        limit.allows(key, 1.0, 1.0)
    assert len(limit._buckets) == 3


def test_a_token_expires(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forever = tokens.create(sqlite_url, "read")
    short = tokens.create(sqlite_url, "read", expires=2.0, rate=5.0)
    assert [each.expires is None for each in tokens.listed(sqlite_url)] == [True, False]
    verifier = TokenVerifier(Store(sqlite_url))
    grant = verifier.grant(short)
    assert grant is not None
    assert grant.rate == 5.0
    later = token_verifier.time.time() + 2.0 * 86_400.0 + 1.0
    monkeypatch.setattr(token_verifier.time, "time", lambda: later)
    assert verifier.grant(short) is None
    assert verifier.grant(forever) is not None
    for wrong in ({"expires": 0.0}, {"expires": 4e6}, {"expires": 1e9}, {"rate": -1.0}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            tokens.create(sqlite_url, "read", **wrong)


def test_a_table_of_an_earlier_version(sqlite_url: str) -> None:
    first = tokens.create(sqlite_url, "read")
    for column in ("expires", "rate"):
        sql(sqlite_url, f"ALTER TABLE c4b_token DROP COLUMN {column}")
    assert tokens.listed(sqlite_url)[0].expires is None
    assert TokenVerifier(Store(sqlite_url)).grant(first) is not None
    assert tokens.revoke(sqlite_url, first).revoked is not None
    second = tokens.create(sqlite_url, "read", expires=1.0)
    assert [each.expires is None for each in tokens.listed(sqlite_url)] == [True, False]
    assert TokenVerifier(Store(sqlite_url)).grant(second) is not None


def test_too_many_requests(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.db"
    slow, free = tokens.create(store, "read", rate=1.0), tokens.create(store, "read")
    with (
        serving(store, tmp_path / "log", "--failures-per-minute", "20") as service,
        service.http() as http,
    ):

        def status(token: str) -> int:
            return http.get("/v1/deployments", headers={"Authorization": f"Bearer {token}"}).status_code

        assert 429 in [status(slow) for _ in range(20)]
        assert {status(free) for _ in range(20)} == {200}
        wrong = [status("c4b_000000000000_wrong") for _ in range(40)]
        assert wrong[:15] == [401] * 15
        assert wrong[-1] == 429
        assert status(free) == 200
