"""The statement that PostgreSQL keeps prepared for appends."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from c4b import Deployment
from c4b.errors import ContradictoryRequest, StoreUnavailable
from c4b.journal.sql.sql_backend import SqlBackend
from support.postgres_server import Server
from support.shop_world import BASELINE, create, in_agreement, rivals


def work(dep: Deployment, rounds: int = 8) -> None:
    """Until single calls are computed ahead of the lock, which is when the statement is used."""
    rng = np.random.default_rng(rounds)
    for n in range(rounds):
        dep.observe(dep.decide(rivals(rng), BASELINE, f"{rounds}-{n}"), 0.5)


def test_what_the_server_has_forgotten_is_prepared_again(postgres_url: str) -> None:
    with create(postgres_url) as dep:
        work(dep)
        backend = dep._transactor.backend
        assert isinstance(backend, SqlBackend)
        backend.store._idle[0].transaction.control("DEALLOCATE ALL")
        work(dep, 9)
        assert in_agreement(dep)


def test_a_commit_that_fails_after_its_statement(postgres_url: str) -> None:
    """The server answers twice: the statement was executed, and then it could not be committed."""
    with create(postgres_url) as dep, psycopg.connect(postgres_url, autocommit=True) as administrator:
        work(dep)
        before = dep.state()
        administrator.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''not today''; END'; "
            "CREATE CONSTRAINT TRIGGER refused AFTER INSERT ON c4b_journal "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="not today"):
                dep.decide([], BASELINE, "refused")
        administrator.execute("DROP TRIGGER refused ON c4b_journal; DROP FUNCTION refuse")
        assert dep.state() == before
        dep.decide([], BASELINE, "refused")
        assert in_agreement(dep)


def with_encoding(server: Server, encoding: str) -> str:
    """The URL of a new database."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        how = f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE of_{encoding} {how}")
    return server.url(f"of_{encoding.lower()}")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_in_a_database_of_another_encoding(server: Server, encoding: str) -> None:
    with create(with_encoding(server, encoding)) as dep:
        work(dep)
        pool = rivals(np.random.default_rng(1))
        made = dep.decide(pool, BASELINE, "Grüße")
        assert dep.decide(pool, BASELINE, "Grüße") == made
        with pytest.raises(ContradictoryRequest):
            dep.decide(pool[:1], BASELINE, "Grüße")
        assert in_agreement(dep)
        assert dep.audit().clean


def test_a_text_that_the_database_cannot_hold(server: Server) -> None:
    """Nothing is damaged, and whatever else is asked is answered."""
    with create(with_encoding(server, "LATIN2")) as dep:
        work(dep)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="ENCODING 'UTF8'"):
                dep.decide([], BASELINE, "日本")
        work(dep, 9)
        assert dep.audit().clean
