"""The shared test case of journal backends, on every backend that comes with the package."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint

import pytest

from c4b import Deployment
from c4b.errors import InvalidInput, StoreUnavailable
from c4b.journal import Entry, backend_registry, memory_backend, open_backend, register_backend
from c4b.journal.memory_backend import MemoryBackend, MemoryJournal
from c4b.testing.journal_backend import NAME, JournalBackendCase, append, entry, first
from support.shop_world import BASELINE, MODEL, create, fork, in_agreement, trade, waited


class TestMemory(JournalBackendCase):
    @pytest.fixture(autouse=True)
    def store(self, memory_url: str) -> None:
        self.url = memory_url


class TestSqlite(JournalBackendCase):
    @pytest.fixture(autouse=True)
    def store(self, sqlite_url: str) -> None:
        self.url = sqlite_url


class TestPostgresql(JournalBackendCase):
    @pytest.fixture(autouse=True)
    def store(self, postgres_url: str) -> None:
        self.url = postgres_url


# -- memory ------------------------------------------------------------------------------------


def test_a_name_is_one_store(memory_url: str) -> None:
    with create(memory_url) as dep:
        trade(dep, 5)
        assert Deployment.names(memory_url) == ["shop"]
        assert Deployment.names(f"{memory_url}-other") == []
    with Deployment.open(memory_url, "shop") as dep:
        assert dep.state().rounds == 5
        assert memory_url in repr(dep)


def test_a_forked_child_refuses_its_parents_stores(memory_url: str) -> None:
    with create(memory_url) as dep:
        trade(dep, 3)

        def child() -> None:
            for use in (
                lambda: dep.decide([], BASELINE),
                dep.state,
                lambda: Deployment.open(memory_url, "shop"),
                lambda: create(memory_url, "another"),
                lambda: Deployment.names(memory_url),
            ):
                with pytest.raises(StoreUnavailable, match="fork"):
                    use()
            create(f"{memory_url}-of-the-child").close()

        assert waited(fork(child)) == 0
        trade(dep, 3, seed=1)
        assert in_agreement(dep)


def test_a_writer_that_waits_too_long(memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_backend, "WAIT", 0.05)
    backend = open_backend(memory_url, create=True)
    backend.create(NAME, first())
    errors: list[BaseException] = []

    def other() -> None:
        try:
            append(open_backend(memory_url), entry(first()))
        except StoreUnavailable as error:
            errors.append(error)

    with backend.writing(NAME):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(errors) == 1


# -- registration ------------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The calls of a factory that was registered for ``mine://``; forgotten after the test."""
    monkeypatch.setattr(backend_registry, "_factories", dict(backend_registry._factories))
    calls: list[tuple[str, bool]] = []

    def factory(url: str, create: bool) -> MemoryBackend:
        calls.append((url, create))
        return MemoryBackend(f"memory://{url}")

    register_backend("mine", factory)
    return calls


def test_a_registered_backend(own: list[tuple[str, bool]], memory_url: str) -> None:
    url = memory_url.replace("memory", "mine")
    Deployment.create(url, "shop", MODEL).close()
    with Deployment.open(url, "shop") as dep:
        trade(dep, 5)
        assert dep.audit().clean
    assert Deployment.names(url) == ["shop"]
    assert own == [(url, True), (url, False), (url, False)]
    with pytest.raises(InvalidInput, match="registered already"):
        register_backend("mine", MemoryBackend)
    for scheme in ("sqlite", "memory"):
        with pytest.raises(InvalidInput, match="registered already"):
            register_backend(scheme, MemoryBackend)
    for scheme in ("Mine", "", "a b", "mine://", 7):
        with pytest.raises(InvalidInput, match="scheme"):
            register_backend(scheme, MemoryBackend)  # type: ignore[arg-type]  # wrong on purpose


def test_an_installed_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "theirs": EntryPoint("theirs", "c4b.journal.memory_backend:MemoryBackend", "c4b.journals"),
        "broken": EntryPoint("broken", "no_such_module:Backend", "c4b.journals"),
    }

    def installed(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "c4b.journals"
        return [point for key, point in points.items() if name in (None, key)]

    monkeypatch.setattr(backend_registry, "_factories", dict(backend_registry._factories))
    monkeypatch.setattr(backend_registry, "entry_points", installed)
    with pytest.raises(InvalidInput, match="memory://NAME"):  # its own complaint: it was found
        open_backend("theirs://x")
    with pytest.raises(StoreUnavailable, match="no_such_module"):
        open_backend("broken://x")
    with pytest.raises(InvalidInput, match=r"broken://\.\.\. or theirs://\.\.\."):
        open_backend("unknown://x")


def test_an_unknown_scheme_lists_the_known_ones() -> None:
    for url in ("mysql://me:secret@host/x", "mysql+driver://me:secret@host/x", "me:secret@host/x", "://"):
        with pytest.raises(InvalidInput) as refused:
            open_backend(url)
        text = str(refused.value)
        for known in ("sqlite:///FILE", "postgresql://USER:PASSWORD@HOST/DATABASE", "memory://NAME"):
            assert known in text
        assert "secret" not in text
    with pytest.raises(InvalidInput, match="memory://NAME"):
        open_backend("memory://")


# -- the test case itself ----------------------------------------------------------------------


class CommitsWhatRaised(MemoryBackend):
    @contextmanager
    def writing(self, name: str) -> Iterator[MemoryJournal]:
        transaction = MemoryJournal(self._contents(name))
        try:
            yield transaction
        finally:
            transaction.commit()


class IgnoresTheHead(MemoryBackend):
    def append_if_head(self, journal: Hashable, entry: Entry, hash_: bytes) -> bool:
        with self.writing(str(journal)) as transaction:
            transaction.append([entry], hash_)
        return True


class KnowsNoRequest(MemoryBackend):
    @contextmanager
    def writing(self, name: str) -> Iterator[MemoryJournal]:
        self._contents(name).by_request.clear()
        with super().writing(name) as transaction:
            yield transaction


class ListsNamesInAnyOrder(MemoryBackend):
    def names(self) -> list[str]:
        return super().names()[::-1]


@pytest.mark.parametrize(
    ("backend", "test"),
    [
        (CommitsWhatRaised, "test_a_block_that_raises_appends_nothing"),
        (IgnoresTheHead, "test_appending_on_condition_of_the_head"),
        (KnowsNoRequest, "test_a_request_id_is_unique"),
        (ListsNamesInAnyOrder, "test_names_are_sorted_and_taken_once"),
    ],
)
def test_the_case_notices_a_broken_backend(
    memory_url: str, backend: type[MemoryBackend], test: str
) -> None:
    class Broken(JournalBackendCase):
        def open(self, create: bool = False) -> MemoryBackend:
            return backend(memory_url, create)

    with pytest.raises(AssertionError):
        getattr(Broken(), test)()
