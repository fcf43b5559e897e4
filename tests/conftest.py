"""Deterministic Hypothesis, the same examples in every run; and the stores: memory, an SQLite file, and a
real PostgreSQL server that comes from pip."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings

from support.postgres_server import Server

settings.register_profile("c4b", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("c4b")

_numbers = itertools.count()

collect_ignore = ["support"]  # no tests there; collecting for doctests would import it a second time

SLOW_FIXTURES = {"server", "postgres_url", "paper", "beyond"}
"""What takes long to make: a PostgreSQL server, the shipped studies."""
SLOW_FOLDER = Path(__file__).parent / "service"
"""Its tests start services as processes of their own."""


@pytest.hookimpl(tryfirst=True)  # before -m "not slow" looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use such a fixture, directly or not, or lie in that folder."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if SLOW_FIXTURES & fixtures or "postgresql" in parameters or SLOW_FOLDER in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL for the whole session, in a folder short enough for its socket's path."""
    folder = Path(tempfile.mkdtemp(prefix="c4b-pg-"))
    server = Server(folder / "data")
    yield server
    server.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def postgres_url(server: Server) -> Iterator[str]:
    """A database of its own."""
    name = f"test{next(_numbers)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.url(name)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def memory_url() -> str:
    return f"memory://test-{next(_numbers)}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Every test that asks for this runs on both SQL stores."""
    return _url(request)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def any_url(request: pytest.FixtureRequest) -> str:
    """For tests that need neither SQL nor several processes: every store."""
    return _url(request)


def _url(request: pytest.FixtureRequest) -> str:
    names = {"memory": "memory_url", "sqlite": "sqlite_url", "postgresql": "postgres_url"}
    value: str = request.getfixturevalue(names[request.param])
    return value


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real Dask cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made
