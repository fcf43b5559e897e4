"""One test case for every journal backend: the contract of ``c4b.journal.backend``, as tests.

In your own test suite, for a backend of your own::

    from c4b.testing.journal_backend import JournalBackendCase

    class TestMyBackend(JournalBackendCase):
        @pytest.fixture(autouse=True)
        def store(self, tmp_path):
            self.url = f"mine://{tmp_path}/store"  # an empty store, another one for every test

The backend is opened by ``c4b.journal.open_backend``; override ``open`` if it is not registered.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

from c4b.errors import NameTaken, UnknownDeployment
from c4b.journal.backend import BatchBackend, Head, JournalBackend, KnownRequest, StoredSnapshot
from c4b.journal.backend_registry import open_backend
from c4b.journal.entries import CREATED, DECIDED, GENESIS, OBSERVED, Entry
from c4b.journal.journal import Journal
from c4b.testing.kit import need_assertions

need_assertions()

NAME = "shop"
THREADS, APPENDS = 4, 15
"""Writers at once, and how many entries each of them appends."""
BYTES = bytes(range(256)) * 4


class JournalBackendCase:
    """The requirements on every backend. Each method that begins with ``test_`` is one test."""

    url: str
    """Address of an empty store; set a new one for every test."""

    def open(self, create: bool = False) -> JournalBackend:
        """Open the backend under test on the store at ``url``."""
        return open_backend(self.url, create)

    @contextmanager
    def journal(self, length: int = 1) -> Iterator[JournalBackend]:
        """A backend with one journal of ``length`` entries.

        Each entry has a request id, and they come in pairs: a decision, and an entry about it.
        """
        backend = self.open(create=True)
        try:
            backend.create(NAME, first())
            if length > 1:
                with backend.writing(NAME) as transaction:
                    entries = list(itertools.islice(following(first()), length - 1))
                    transaction.append(entries, entries[-1].hash())
            yield backend
        finally:
            backend.close()

    # -- existence -----------------------------------------------------------------------------

    def test_a_journal_begins_with_its_first_entry(self) -> None:
        with self.journal() as backend, backend.reading(NAME) as transaction:
            head = transaction.head
            assert (head.seq, head.hash, head.snapshot) == (0, first().hash(), -1)
            assert transaction.range(0, 0, 10) == [first()]
            assert transaction.snapshot_numbers() == []

    def test_names_are_sorted_and_taken_once(self) -> None:
        with self.journal() as backend:
            backend.create("banner", first())
            raises(NameTaken, lambda: backend.create(NAME, first()))
            assert backend.names() == ["banner", NAME]
            with backend.reading(NAME) as transaction:
                assert transaction.head.seq == 0

    def test_an_unknown_name(self) -> None:
        with self.journal() as backend:
            raises(UnknownDeployment, backend.reading("no-such").__enter__)
            raises(UnknownDeployment, backend.writing("no-such").__enter__)

    def test_a_closed_store_is_opened_again(self) -> None:
        with self.journal(5):
            pass
        backend = self.open()
        assert backend.names() == [NAME]
        with backend.reading(NAME) as transaction:
            assert transaction.head.seq == 4
            assert len(list(Journal(transaction).tail(-1, GENESIS))) == 5
        backend.close()

    # -- reading -------------------------------------------------------------------------------

    def test_every_byte_comes_back(self) -> None:
        strange = Entry(1, DECIDED, None, "Größe \N{SNOWMAN} '\"%s:x", 2**62, BYTES, first().hash())
        with self.journal() as backend:
            append(backend, strange)
            with backend.reading(NAME) as transaction:
                assert transaction.range(1, 1, 1) == [strange]
                assert [each.entry for each in transaction.requested([str(strange.request_id)])] == [
                    strange
                ]

    def test_many_entries_in_one_transaction(self) -> None:
        with self.journal(200) as backend, backend.reading(NAME) as transaction:
            expected = [first(), *itertools.islice(following(first()), 199)]
            assert transaction.range(0, 300, 300) == expected
            assert transaction.head[1:3] == (199, expected[-1].hash())

    def test_ranges(self) -> None:
        with self.journal(30) as backend, backend.reading(NAME) as transaction:

            def numbers(first: int, last: int, count: int, backwards: bool = False) -> list[int]:
                return [entry.seq for entry in transaction.range(first, last, count, backwards)]

            assert numbers(0, 29, 100) == list(range(30))
            assert numbers(3, 7, 100) == [3, 4, 5, 6, 7]
            assert numbers(3, 20, 2) == [3, 4]
            assert numbers(3, 7, 100, backwards=True) == [7, 6, 5, 4, 3]
            assert numbers(3, 20, 2, backwards=True) == [20, 19]
            assert numbers(0, 0, 5, backwards=True) == [0]
            assert numbers(30, 29, 5) == []

    def test_lookups_come_with_the_hash_in_the_next_entry(self) -> None:
        with self.journal(30) as backend, backend.reading(NAME) as transaction:
            entries = transaction.range(0, 29, 30)
            for seqs in ([7], [29], [9, 3, 4], [0, 29]):
                stored = transaction.at(seqs)
                assert [each.entry for each in stored] == [entries[seq] for seq in sorted(seqs)]
                for entry, next_previous in stored:
                    following = entries[entry.seq + 1].previous if entry.seq < 29 else None
                    assert next_previous == following
            assert transaction.at([30]) == []
            assert [each.entry.seq for each in transaction.at([5, 1000])] == [5]

    def test_request_ids(self) -> None:
        with self.journal(30) as backend, backend.reading(NAME) as transaction:

            def numbers(*ids: str) -> list[int]:
                return [each.entry.seq for each in transaction.requested(ids)]

            assert numbers("r-7") == [7]
            assert numbers("r-9", "r-3", "none") == [3, 9]
            assert numbers("none") == numbers("R-7") == numbers("r-7 ") == []
            assert numbers(*(f"r-{n}" for n in range(1000))) == list(range(1, 30))

    def test_entries_about_decisions(self) -> None:
        with self.journal(30) as backend, backend.reading(NAME) as transaction:

            def numbers(*seqs: int) -> list[int]:
                return [each.entry.seq for each in transaction.about(seqs)]

            assert numbers(1) == [2]
            assert numbers(5, 3) == [4, 6]
            assert numbers(2) == numbers(99) == []
            assert numbers(*range(1000)) == list(range(2, 30, 2))

    def test_journals_do_not_mix(self) -> None:
        with self.journal(10) as backend:
            backend.create("banner", first())
            append(backend, entry(first(), request_id="r-3"), name="banner")
            with backend.reading("banner") as transaction:
                assert transaction.head.seq == 1
                assert [e.seq for e in transaction.range(0, 100, 100)] == [0, 1]
                assert [each.entry.seq for each in transaction.requested(["r-3", "r-4"])] == [1]
                assert transaction.at([5]) == []
                assert transaction.about([1]) == []
            with backend.reading(NAME) as transaction:
                assert transaction.head.seq == 9

    def test_a_checked_reading_of_everything(self) -> None:
        with self.journal(2500) as backend, backend.reading(NAME) as transaction:
            journal = Journal(transaction)
            assert [e.seq for e in journal.tail(-1, GENESIS)] == list(range(2500))
            assert len(journal.decided(-1, 2500, 10**6)) == 1250
            assert [e.seq for e in journal.decided_last(-1, 2500, 3)] == [2499, 2497, 2495]
            assert len(journal.requested([f"r-{n}" for n in range(2500)])) == 2499
            assert len(list(journal.about(range(2500)))) == 1249
            assert len(journal.among(range(2500))) == 2500

    # -- writing -------------------------------------------------------------------------------

    def test_payloads_are_rewritten(self) -> None:
        """Only for stores that support it: see ``RewritableBackend``."""
        with self.journal(6) as backend:
            if not hasattr(backend, "rewrite"):
                return
            backend.create("banner", first())
            with backend.reading(NAME) as transaction:
                before = transaction.range(0, 9, 10)
            backend.rewrite(NAME, {2: b"", 4: BYTES})
            with backend.reading(NAME) as transaction:
                wanted = {2: b"", 4: BYTES}
                assert transaction.range(0, 9, 10) == [
                    entry._replace(payload=wanted.get(entry.seq, entry.payload)) for entry in before
                ]
            with backend.reading("banner") as transaction:
                assert transaction.range(0, 9, 10) == [first()]

    def test_an_append_moves_the_head(self) -> None:
        with self.journal() as backend:
            one = entry(first())
            two = entry(one)
            with backend.writing(NAME) as transaction:
                transaction.append([one, two], two.hash())
                assert (transaction.head.seq, transaction.head.hash) == (2, two.hash())
            with backend.reading(NAME) as transaction:
                assert (transaction.head.seq, transaction.head.hash) == (2, two.hash())
                assert transaction.range(1, 2, 2) == [one, two]

    def test_a_block_that_raises_appends_nothing(self) -> None:
        with self.journal(3) as backend:
            last = head_entry(backend)
            for appended in ([entry(last)], list(itertools.islice(following(last), 5))):

                def interrupted(appended: list[Entry] = appended) -> None:
                    with backend.writing(NAME) as transaction:
                        transaction.append(appended, appended[-1].hash())
                        content = StoredSnapshot(appended[-1].seq, appended[-1].hash(), b"d", b"c")
                        transaction.write_snapshot(content, 2)
                        raise KeyboardInterrupt

                raises(KeyboardInterrupt, interrupted)
                with backend.reading(NAME) as transaction:
                    assert transaction.head == head(backend)
                    assert (transaction.head.seq, transaction.head.snapshot) == (2, -1)
                    assert transaction.range(0, 100, 100)[-1] == last
                    assert transaction.snapshot_numbers() == []
            append(backend, entry(last))

    def test_a_request_id_is_unique(self) -> None:
        with self.journal(5) as backend:
            last, before = head_entry(backend), head(backend)
            again = entry(last, request_id="r-2")
            raises(KnownRequest, lambda: append(backend, again))
            raises(KnownRequest, lambda: backend.append_if_head(before.journal, again, again.hash()))
            twin = entry(last, request_id="twin")
            twins = [twin, entry(twin, request_id="twin")]

            def both() -> None:
                with backend.writing(NAME) as transaction:
                    transaction.append(twins, twins[-1].hash())

            raises(KnownRequest, both)
            assert head(backend) == before
            append(backend, twin)
            with backend.reading(NAME) as transaction:
                assert transaction.requested(["twin"])[0].entry == twin

    def test_appending_on_condition_of_the_head(self) -> None:
        with self.journal(5) as one:
            two = self.open()
            last, key = head_entry(one), head(one).journal
            mine, theirs = entry(last, request_id="mine"), entry(last, request_id="theirs")
            assert head(two).journal == key
            assert two.append_if_head(key, theirs, theirs.hash())
            assert not one.append_if_head(key, mine, mine.hash())
            assert head_entry(one) == theirs
            late = entry(theirs)
            assert not one.append_if_head(key, late._replace(seq=9), late.hash())
            assert not one.append_if_head(key, late._replace(previous=GENESIS), late.hash())
            assert one.append_if_head(key, late, late.hash())
            assert head_entry(two) == late
            two.close()

    def test_appending_several_on_condition_of_the_head(self) -> None:
        """Of stores that can; see ``c4b.journal.backend.BatchBackend``."""
        with self.journal(5) as some:
            if not hasattr(some, "append_all_if_head"):
                return
            backend, key = cast(BatchBackend, some), head(some).journal
            for size in range(1, backend.most_at_once + 1):
                entries = [entry(head_entry(some), request_id=f"{size}-0")]
                while len(entries) < size:
                    about = entries[-1].seq if len(entries) % 2 else None
                    entries.append(entry(entries[-1], f"{size}-{len(entries)}", about))
                before, last = head(some), entries[-1].hash()
                moved = [entries[0]._replace(previous=GENESIS), *entries[1:]]
                assert not backend.append_all_if_head(key, moved, last)
                assert not backend.append_all_if_head(key, [entries[0]._replace(seq=99)], last)
                twins = [*entries[:-1], entries[-1]._replace(request_id="r-2")]
                raises(KnownRequest, partial(backend.append_all_if_head, key, twins, twins[-1].hash()))
                assert head(some) == before
                assert backend.append_all_if_head(key, entries, last)
                assert not backend.append_all_if_head(key, entries, last)
                with some.reading(NAME) as transaction:
                    journal = Journal(transaction)
                    assert [*journal.tail(before.seq, before.hash)] == entries
                    assert journal.requested([f"{size}-0"]) == {f"{size}-0": entries[0]}

    def test_a_reader_does_not_wait_for_a_writer(self) -> None:
        with self.journal(3) as backend:
            other = self.open()
            with backend.writing(NAME) as transaction:
                new = entry(head_entry(other))
                transaction.append([new], new.hash())
                assert head(other).seq == 2
            assert head(other).seq == 3
            other.close()

    def test_a_reader_keeps_the_journal_that_it_began_with(self) -> None:
        with self.journal(10) as backend:
            other = self.open()
            with backend.reading(NAME) as transaction:
                last = head_entry(other)
                append(other, entry(last, about=1))
                journal = Journal(transaction)
                assert journal.head.seq == 9
                assert [e.seq for e in journal.tail(-1, GENESIS)] == list(range(10))
                assert [e.seq for e in journal.about([1])] == [2]
                assert journal.at(10) is None
                assert journal.at(9) == last
                assert journal.requested(["r-10"]) == {}
            other.close()

    def test_writers_are_serialised(self) -> None:
        """Threads read the head and append to it under the lock; no thread misses another's entry."""

        def work(backend: JournalBackend, name: str) -> None:
            for n in range(APPENDS):
                with backend.writing(NAME) as transaction:
                    (last,) = transaction.range(transaction.head.seq, transaction.head.seq, 1)
                    new = entry(last, request_id=f"{name}-{n}")
                    transaction.append([new], new.hash())

        self._in_threads(work)

    def test_conditional_appends_are_serialised(self) -> None:
        """Threads append on condition of the head until they succeed: each append is there once."""

        def work(backend: JournalBackend, name: str) -> None:
            for n in range(APPENDS):
                while True:
                    last, key = head_entry(backend), head(backend).journal
                    new = entry(last, request_id=f"{name}-{n}")
                    if backend.append_if_head(key, new, new.hash()):
                        break

        self._in_threads(work)

    def _in_threads(self, work: Callable[[JournalBackend, str], None]) -> None:
        errors: list[BaseException] = []

        def run(name: str) -> None:
            backend = self.open()
            try:
                work(backend, name)
            except BaseException as error:  # noqa: BLE001 (raised again below, in the test's thread)
                errors.append(error)
            finally:
                backend.close()

        with self.journal() as backend:
            threads = [threading.Thread(target=run, args=(f"t{n}",)) for n in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]
            with backend.reading(NAME) as transaction:
                entries = list(Journal(transaction).tail(-1, GENESIS))
            assert len(entries) == 1 + THREADS * APPENDS
            assert len({e.request_id for e in entries}) == len(entries)

    # -- snapshots -----------------------------------------------------------------------------

    def test_snapshots(self) -> None:
        with self.journal() as backend:
            last, written = first(), []
            for _ in range(4):
                last = entry(last)
                digest = hashlib.sha256(BYTES).digest()
                with backend.writing(NAME) as transaction:
                    transaction.append([last], last.hash())
                    written.append(StoredSnapshot(last.seq, last.hash(), digest, BYTES))
                    transaction.write_snapshot(written[-1], 2)
                    assert transaction.head.snapshot == last.seq
            backend.create("banner", first())
            with backend.reading("banner") as transaction:
                assert transaction.snapshot_numbers() == []
            with backend.reading(NAME) as transaction:
                assert transaction.head.snapshot == 4
                assert transaction.snapshot_numbers() == [4, 3]
                assert [transaction.snapshot(seq) for seq in (4, 3)] == written[:1:-1]
                assert transaction.snapshot(1) is None


def first() -> Entry:
    """The first entry of every journal here."""
    return Entry(0, CREATED, None, None, 1, b"first", GENESIS)


def entry(after: Entry, request_id: str | None = None, about: int | None = None) -> Entry:
    """An entry that continues the chain after another."""
    seq = after.seq + 1
    kind = DECIDED if about is None else OBSERVED
    return Entry(seq, kind, about, request_id, after.at + 1, b"%d" % seq, after.hash())


def following(after: Entry) -> Iterator[Entry]:
    """Endless entries: a decision, an entry about it, and so on; request ids are r-NUMBER."""
    while True:
        seq = after.seq + 1
        after = entry(after, f"r-{seq}", None if seq % 2 else seq - 1)
        yield after


def append(backend: JournalBackend, new: Entry, name: str = NAME) -> None:
    """Append one entry under the lock."""
    with backend.writing(name) as transaction:
        transaction.append([new], new.hash())


def head(backend: JournalBackend) -> Head:
    with backend.reading(NAME) as transaction:
        return transaction.head


def head_entry(backend: JournalBackend) -> Entry:
    """The last entry of the journal."""
    with backend.reading(NAME) as transaction:
        return transaction.range(transaction.head.seq, transaction.head.seq, 1)[0]


def raises(kind: type[BaseException], call: Callable[[], object]) -> None:
    """Fail unless ``call`` raises ``kind``."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")
