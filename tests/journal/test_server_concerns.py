"""Users of PostgreSQL with few rights, and servers that promise less."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from c4b import Deployment
from c4b.errors import StoreUnavailable
from c4b.journal.sql.server_concerns import NEEDED
from c4b.service import app
from support.postgres_server import Server
from support.shop_world import BASELINE, create, sql, trade


@pytest.fixture
def clerk(postgres_url: str) -> Iterator[str]:
    """The store's address for a user who may use what was granted."""
    create(postgres_url).close()
    sql(postgres_url, "CREATE ROLE clerk LOGIN")
    yield postgres_url.replace("postgres:@", "clerk:@")
    sql(postgres_url, "DROP OWNED BY clerk")
    sql(postgres_url, "DROP ROLE clerk")


def grant(url: str, without: str = "") -> None:
    for table, rights in NEEDED.items():
        for right in rights:
            if f"{right} on {table}" != without:
                sql(url, f"GRANT {right} ON {table} TO clerk")


def test_the_rights_that_are_documented_are_enough(postgres_url: str, clerk: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    for table, rights in NEEDED.items():
        documented = [line for line in page.splitlines() if line.startswith("GRANT") and table in line]
        assert len(documented) == 1
        assert documented[0].startswith(f"GRANT {', '.join(rights)} ON")
    grant(postgres_url)
    with Deployment.open(clerk, "shop") as dep:
        trade(dep, 10)
        for _ in range(9):  # three snapshots, of which the first is deleted
            dep.decide_many([([], BASELINE)] * 1000)
        dep.decide([], BASELINE)
        assert dep.audit(sample=0).snapshots == 2
    assert not [each for each in app.create_tables(clerk) if "rights" in each]


@pytest.mark.parametrize(
    "missing", [f"{right} on {table}" for table, rights in NEEDED.items() for right in rights][1:]
)
def test_a_missing_right_is_named_at_the_start(postgres_url: str, clerk: str, missing: str) -> None:
    grant(postgres_url, without=missing)
    (said,) = [each for each in app.create_tables(clerk) if "rights" in each]
    assert f"({missing})" in said


def test_messages_say_what_to_do(postgres_url: str, clerk: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"permission denied.*docs/operating\.md"):
        Deployment.open(clerk, "shop")
    read_only, hasty = (
        f"{postgres_url}&options=-c{each}"
        for each in ("default_transaction_read_only%3Don", "statement_timeout%3D100")
    )
    with (
        Deployment.open(read_only, "shop") as dep,
        pytest.raises(StoreUnavailable, match="is a standby"),
    ):
        dep.decide([], BASELINE)
    with psycopg.connect(postgres_url) as other, Deployment.open(hasty, "shop") as dep:
        other.execute("SELECT 1 FROM c4b_deployment FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="longer one"):
            dep.decide([], BASELINE)


def test_a_server_that_does_not_wait_for_its_disk(server: Server, postgres_url: str) -> None:
    """As the tests' own."""
    (said,) = app.create_tables(postgres_url)
    assert "fsync = off" in said
    read_only = f"{postgres_url}&options=-cdefault_transaction_read_only%3Don"
    assert any("read-only" in each for each in app.create_tables(read_only))


def test_sqlite_has_no_server(sqlite_url: str) -> None:
    assert app.create_tables(sqlite_url) == []
