"""Stores of an earlier version, made here with that version's own table definitions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from c4b import Deployment
from c4b.errors import SchemaVersion, StoreUnavailable
from c4b.journal.sql.sql_migration import migrate
from support.shop_world import create, in_agreement, seen, sql, trade

COLUMNS = "deployment, seq, kind, about, request_id, at, payload, previous"
VERSION_1 = [
    "ALTER TABLE c4b_journal RENAME TO newer",
    "DROP INDEX c4b_journal_request",
    "DROP INDEX c4b_journal_about",
    """CREATE TABLE c4b_journal (deployment INTEGER NOT NULL, seq BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL, about BIGINT, request_id VARCHAR(200), at BIGINT NOT NULL,
    payload {blob} NOT NULL, previous {blob} NOT NULL, PRIMARY KEY (deployment, seq),
    FOREIGN KEY(deployment) REFERENCES c4b_deployment (id)) {end}""",
    "CREATE INDEX c4b_journal_about ON c4b_journal (deployment, about) WHERE about IS NOT NULL",
    """CREATE UNIQUE INDEX c4b_journal_request ON c4b_journal (deployment, request_id)
    WHERE request_id IS NOT NULL""",
    f"INSERT INTO c4b_journal ({COLUMNS}) SELECT {COLUMNS} FROM newer",
    "DROP TABLE newer",
    "UPDATE c4b_schema SET version = 1",
]
ON_A_SERVER = [
    "ALTER TABLE c4b_journal ALTER payload SET STORAGE EXTERNAL",
    "ALTER TABLE c4b_journal SET (toast_tuple_target = 8160)",
    "ALTER TABLE c4b_snapshot ALTER content SET STORAGE EXTENDED",
]


def age(url: str) -> None:
    """As if version 1 had written it."""
    on_file = url.startswith("sqlite")
    blob, end = ("BLOB", "WITHOUT ROWID") if on_file else ("BYTEA", "")
    for statement in VERSION_1 + ([] if on_file else ON_A_SERVER):
        sql(url, statement.format(blob=blob, end=end))


def structure(url: str) -> list[tuple[object, ...]]:
    """Tables, columns and indexes as the store describes them."""
    if url.startswith("sqlite"):
        return sql(url, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name")
    return [
        *sql(
            url,
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
            "WHERE table_schema = current_schema() ORDER BY table_name, column_name",
        ),
        *sql(
            url,
            "SELECT tablename, regexp_replace(indexdef, 'INDEX \\S+ ON', '') FROM pg_indexes "
            "WHERE schemaname = current_schema() ORDER BY 1, 2",
        ),
        *sql(url, "SELECT attstorage FROM pg_attribute WHERE attname IN ('payload', 'content')"),
        *sql(url, "SELECT reloptions FROM pg_class WHERE relname = 'c4b_journal'"),
        *sql(url, "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' ORDER BY 1"),
    ]


def test_a_store_of_version_1(url: str) -> None:
    with create(url, snapshot_every=10) as dep:
        trade(dep, 25, ids="r")
        before, records = dep.state(), [record.to_dict() for record in dep.decisions()]
    with create(url, "other") as dep:
        trade(dep, 5)
    fresh = structure(url)
    age(url)
    assert structure(url) != fresh
    for refused in (lambda: Deployment.open(url, "shop"), lambda: create(url, "third")):
        with pytest.raises(SchemaVersion, match="c4b deploy migrate"):
            refused()
    assert migrate(url) == (1, 2)
    if not url.startswith("sqlite"):  # as version 2 made it at first
        sql(url, "ALTER TABLE c4b_journal ADD FOREIGN KEY (deployment) REFERENCES c4b_deployment (id)")
    assert migrate(url) == (2, 2)
    assert structure(url) == fresh
    assert Deployment.names(url) == ["other", "shop"]
    for name in ("shop", "other"):
        with Deployment.open(url, name) as dep:
            assert dep.audit().clean
            assert in_agreement(dep)
    with Deployment.open(url, "shop") as dep:
        assert dep.state() == before
        assert [record.to_dict() for record in dep.decisions()] == records
        trade(dep, 25, ids="s")
        assert dep.audit().clean


def test_what_others_have_built_on_the_tables(url: str) -> None:
    """A view; on PostgreSQL also grants to somebody who does not own the tables."""
    with create(url) as dep:
        trade(dep, 5)
    age(url)
    sql(url, "CREATE VIEW sizes AS SELECT deployment, count(*) AS size FROM c4b_journal GROUP BY 1")
    before = sql(url, "SELECT * FROM sizes")
    on_server = not url.startswith("sqlite")
    grants = (
        "SELECT grantee, privilege_type FROM information_schema.role_table_grants "
        "WHERE table_name = 'c4b_journal' ORDER BY 1, 2"
    )
    if on_server:
        sql(url, "GRANT SELECT ON c4b_journal TO PUBLIC")
        granted = sql(url, grants)
        assert ("PUBLIC", "SELECT") in granted
    assert migrate(url) == (1, 2)
    assert sql(url, "SELECT * FROM sizes") == before
    if on_server:
        assert sql(url, grants) == granted


def test_snapshots_that_were_rounded_in_another_way(url: str) -> None:
    """As by ``sum`` since Python 3.12: they would differ from the replayed state for ever."""
    with create(url, snapshot_every=10) as dep:
        trade(dep, 25)
        series = seen(dep).series
        assert series is not None
        series.kept[3] = series.kept[3]._replace(estimate=series.kept[3].estimate + 1e-12)
        trade(dep, 25)
        assert not dep.audit().clean
    age(url)
    migrate(url)
    with Deployment.open(url, "shop", snapshot_every=10) as dep:
        assert dep.audit().clean
        trade(dep, 25)
        assert dep.audit().clean
        assert dep.audit().snapshots > 0


def test_a_failed_migration_changes_nothing(url: str) -> None:
    with create(url) as dep:
        trade(dep, 5)
    age(url)
    obstacle, removed, said = (
        (
            "CREATE TABLE c4b_journal_1 (in_the_way INTEGER)",
            "DROP TABLE c4b_journal_1",
            "c4b_journal_1",
        )
        if url.startswith("sqlite")
        else (
            "ALTER TABLE c4b_journal ADD COLUMN place INTEGER",
            "ALTER TABLE c4b_journal DROP COLUMN place",
            "place",
        )
    )
    sql(url, obstacle)
    before = structure(url), sql(url, "SELECT * FROM c4b_journal ORDER BY seq")
    with pytest.raises(StoreUnavailable, match=said):
        migrate(url)
    assert (structure(url), sql(url, "SELECT * FROM c4b_journal ORDER BY seq")) == before
    sql(url, removed)
    assert migrate(url) == (1, 2)


def test_several_at_once(url: str) -> None:
    with create(url) as dep:
        trade(dep, 5)
    age(url)
    with ThreadPoolExecutor(4) as several:
        assert sorted(several.map(lambda _: migrate(url), range(4))) == [(1, 2), (2, 2), (2, 2), (2, 2)]
    with Deployment.open(url, "shop") as dep:
        assert dep.audit().clean


def test_what_cannot_be_migrated(url: str) -> None:
    sql(url, "CREATE TABLE something (else_ INTEGER)")
    with pytest.raises(StoreUnavailable, match="no tables"):
        migrate(url)
    create(url).close()
    for version, remedy in ((0, "the version of reserve-c4b that wrote it"), (3, "upgrade")):
        sql(url, f"UPDATE c4b_schema SET version = {version}")
        with pytest.raises(SchemaVersion, match=remedy):
            migrate(url)
