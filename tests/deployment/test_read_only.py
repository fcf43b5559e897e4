"""Who may only read can read and audit; and what a PostgreSQL server's own check of its indexes says."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from c4b import Deployment
from c4b.errors import StoreUnavailable
from support.postgres_server import Server
from support.shop_world import BASELINE, create, fork, sql, trade, waited

ALL_PAGES = "PRAGMA wal_checkpoint(TRUNCATE)"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that every user may enter; pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp(prefix="c4b-read-only-"))
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def test_a_read_only_file_system(folder: Path) -> None:
    """No file can be written, and none can be made beside it."""
    url = f"sqlite:///{folder}/a shop.db"
    with create(url) as dep:
        trade(dep, 10)
        before = dep.state()
    with sqlite3.connect(folder / "a shop.db") as connection:
        connection.execute(ALL_PAGES)
    connection.close()
    for leftover in folder.glob("*-*"):
        leftover.unlink()
    (folder / "a shop.db").chmod(0o444)
    folder.chmod(0o555)

    def child() -> None:
        if os.geteuid() == 0:  # nothing is read-only for root
            os.setgid(65534)
            os.setuid(65534)
        assert not os.access(folder, os.W_OK)
        with Deployment.open(url, "shop") as dep:
            assert dep.state() == before
            assert dep.audit(sample=0).clean
            with pytest.raises(StoreUnavailable, match="readonly"):
                dep.decide([], BASELINE)
            assert dep.audit(sample=0).clean

    assert waited(fork(child)) == 0


def test_a_user_who_may_only_read(postgres_url: str) -> None:
    with create(postgres_url) as dep:
        trade(dep, 10)
        before = dep.state()
    sql(postgres_url, "CREATE EXTENSION amcheck")  # which this user may not call
    sql(postgres_url, "CREATE ROLE auditor LOGIN PASSWORD 'reads'")
    try:
        sql(postgres_url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO auditor")
        parts = psycopg.conninfo.conninfo_to_dict(postgres_url)
        login = f"auditor:reads@/{parts['dbname']}?host={parts['host']}"
        with Deployment.open(f"postgresql://{login}", "shop") as dep:
            assert dep.state() == before
            assert dep.audit(sample=2).clean
            with pytest.raises(StoreUnavailable, match="permission denied"):
                dep.decide([], BASELINE)
    finally:
        sql(postgres_url, "DROP OWNED BY auditor")
        sql(postgres_url, "DROP ROLE auditor")


def test_what_a_servers_check_finds_is_a_finding(postgres_url: str, server: Server) -> None:
    """The index of names as it was before another deployment was created: no lookup of the first one
    notices, ``amcheck`` does."""
    with create(postgres_url) as dep:
        trade(dep, 5)
        sql(postgres_url, "CREATE EXTENSION amcheck")
        sql(postgres_url, "CREATE EXTENSION pg_buffercache")
        assert dep.audit(sample=0).clean
        [(path,)] = sql(postgres_url, "SELECT pg_relation_filepath('c4b_deployment_name_key')")
        checkpoint(postgres_url)
        before = (server.data / path).read_bytes()
        create(postgres_url, "other").close()
        checkpoint(postgres_url)
        sql(postgres_url, "SELECT pg_buffercache_evict_relation('c4b_deployment_name_key')")
        (server.data / path).write_bytes(before)
        report = dep.audit(sample=0)
        assert 'lacks matching index tuple within index "c4b_deployment_name_key"' in str(report)


def checkpoint(url: str) -> None:
    """The server's files are as its memory is."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
