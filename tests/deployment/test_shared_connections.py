"""Many deployments of one process share a bounded number of connections."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from c4b import Deployment
from c4b.errors import InvalidInput, StoreUnavailable
from c4b.journal.sql import sql_connections, sql_store
from c4b.journal.sql.sql_backend import SqlBackend
from support.shop_world import BASELINE, MODEL, in_agreement, trade

DEPLOYMENTS = 24


class Watcher(threading.Thread):
    """Counts the sessions of other clients in a database until it is stopped."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.most = self.last = 0
        self._stop_it = threading.Event()
        self._connection = psycopg.connect(url, autocommit=True)

    def run(self) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid != pg_backend_pid() AND backend_type = 'client backend'"
        )
        while not self._stop_it.wait(0.05):
            ((self.last,),) = self._connection.execute(query).fetchall()
            self.most = max(self.most, self.last)
        self._connection.close()

    def stop(self) -> None:
        self._stop_it.set()
        self.join()


@pytest.mark.parametrize("connections", [3, sql_store.ENOUGH])
def test_many_deployments_on_few_connections(postgres_url: str, connections: int) -> None:
    """24 deployments, eight threads, few connections; from ``ENOUGH`` on one is kept for writing."""
    backend = SqlBackend(postgres_url, create=True, connections=connections)
    names = [f"shop-{n}" for n in range(DEPLOYMENTS)]
    watcher = Watcher(postgres_url)
    watcher.start()
    try:
        deployments = [Deployment.create(backend, name, MODEL, alpha=0.1, reserve=0.5) for name in names]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda dep: trade(dep, 8, ids="r"), deployments))
            assert all(pool.map(lambda dep: dep.audit(sample=0).clean, deployments))
        for dep in deployments:
            assert dep.state().rounds == 8
            dep.close()  # the others go on
        backend.close()
        time.sleep(1.0)
    finally:
        watcher.stop()
    assert 0 < watcher.most <= connections
    assert watcher.last == 0


def test_a_writer_is_kept(url: str) -> None:
    """Only one, and readers have the other connections."""
    backend = SqlBackend(url, create=True, connections=sql_store.ENOUGH)
    with Deployment.create(backend, "shop", MODEL, reserve=1.0) as dep:
        trade(dep, 3)
        (writer,) = backend.store._idle
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: dep.decide([], BASELINE), range(16)))
            list(pool.map(lambda n: dep.state(), range(16)))
        assert len(backend.store._idle) == 1
        assert dep.state().rounds == 19
    assert writer.connection.is_valid
    backend.close()
    assert not backend.store._idle


def test_no_connection_left(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_connections, "PATIENCE", 0.2)
    backend = SqlBackend(url, create=True, connections=1)
    with Deployment.create(backend, "shop", MODEL) as dep:
        with backend.reading("shop"):
            began = time.perf_counter()
            for attempt in (lambda: dep.decide([], BASELINE), dep.state, backend.names):
                with pytest.raises(StoreUnavailable, match="every connection"):
                    attempt()
            assert time.perf_counter() - began < 5.0
        dep.decide([], BASELINE)
        assert dep.state().rounds == 1
    backend.close()


def test_a_shared_backend_stays_open(any_url: str) -> None:
    with Deployment.create(any_url, "shop", MODEL) as owner:
        backend = owner._transactor.backend
        with Deployment.open(backend, "shop") as dep:
            trade(dep, 5)
        assert owner.state().rounds == 5
        with pytest.raises(InvalidInput, match="url"):
            Deployment.open(3, "shop")  # type: ignore[arg-type]
        assert in_agreement(owner)
