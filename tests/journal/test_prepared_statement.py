"""The statement that PostgreSQL keeps prepared for appends."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from c4b import Deployment
from c4b.errors import ContradictoryRequest
from c4b.journal.sql_backend import SqlBackend
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


def test_texts_in_a_database_of_another_encoding(server: Server) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        how = "ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE of_latin {how}")
    with create(server.url("of_latin")) as dep:
        work(dep)
        pool = rivals(np.random.default_rng(1))
        made = dep.decide(pool, BASELINE, "Grüße")
        assert dep.decide(pool, BASELINE, "Grüße") == made
        with pytest.raises(ContradictoryRequest):
            dep.decide(pool[:1], BASELINE, "Grüße")
        assert in_agreement(dep)
        assert dep.audit().clean
