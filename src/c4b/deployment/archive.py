"""Move the payloads of a closed prefix of a journal to a Parquet file, and bring them back.

The store keeps of each archived entry all but its payload: number, kind, time, request id and the hash of
the entry before. So an old request id is still recognised (and refused with ``EntryArchived``), and the
chain still shows where the file belongs. Snapshots carry the state across the seam; an audit is given the
file and reads through it. Needs the extra ``study``.

A file has one row for each entry, in order: ``seq``, ``kind``, ``about``, ``request_id``, ``at``,
``payload``, ``previous``, exactly what the entry's hash covers (see ``c4b.journal.entries``). Contexts
are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from c4b._whole_files import written_whole
from c4b.deployment.questions import queries
from c4b.deployment.transactions.snapshot import holds_summary, intact
from c4b.deployment.transactions.state import State
from c4b.errors import EntryArchived, InvalidInput
from c4b.journal.backend import JournalBackend, StoredSnapshot, rewritable
from c4b.journal.entries import Entry
from c4b.journal.envelope import hashed_part
from c4b.journal.journal import Journal

if TYPE_CHECKING:
    import polars

AT_ONCE = 1000
"""Entries written or read at a time."""
WRITTEN = "must be a file that an archive was written to"


class Prefix(NamedTuple):
    """Entries that can be archived."""

    first: int
    last: int
    hash: bytes
    """Of the last one."""


def closed_prefix(journal: Journal, state: State, before: int | None) -> Prefix | None:
    """The longest prefix that nothing needs any more: older than ``before`` (microseconds), without a
    decision that waits for its outcome, and behind every snapshot that is kept. None: there is none."""
    snapshots = journal.transaction.snapshot_numbers()
    if not all(map(_can_do_without, map(journal.transaction.snapshot, snapshots))):
        return None  # one of an earlier version; new ones take its place
    last = min([*snapshots, *state.open], default=0) if snapshots else 0
    last = min([last, *(seq - 1 for seq in state.open)])
    gone = queries.last_gone(journal, state)
    if before is not None:
        last = _last_before(journal, gone, last, before)
    entry = journal.at(last) if last > gone else None
    return None if entry is None else Prefix(gone + 1, last, entry.hash())


def _can_do_without(stored: StoredSnapshot | None) -> bool:
    """Whether nothing before this snapshot has to be read again."""
    return stored is not None and intact(stored) and holds_summary(stored.content)


def _last_before(journal: Journal, low: int, high: int, before: int) -> int:
    """The last entry of a time before ``before`` among those after ``low``; times never decrease."""
    while low < high:
        middle = (low + high + 1) // 2
        entry = journal.at(middle)
        if entry is not None and entry.at < before:
            low = middle
        else:
            high = middle - 1
    return low


def write(journal: Journal, prefix: Prefix, path: Path) -> None:
    """Write the entries of ``prefix``, each checked against the chain, and sync the file and its name."""
    import polars as pl  # noqa: PLC0415 (slow to import)

    first = journal.at(prefix.first)
    assert first is not None
    rows: dict[str, list[Any]] = {name: [] for name in Entry._fields}
    for entry in journal.tail(prefix.first - 1, first.previous):
        if entry.seq > prefix.last:
            break
        kept = entry._replace(payload=hashed_part(entry.payload))
        for name, value in kept._asdict().items():
            rows[name].append(value)
    frame = pl.DataFrame(rows, schema=_schema(pl))
    about = {"c4b": f"hash {prefix.hash.hex()}"}
    with written_whole(path, durably=True) as draft:
        frame.write_parquet(draft, row_group_size=AT_ONCE, metadata=about)


def _schema(pl: Any) -> dict[str, Any]:
    types = (pl.Int64, pl.String, pl.Int64, pl.String, pl.Int64, pl.Binary, pl.Binary)
    return dict(zip(Entry._fields, types, strict=True))


def empty(backend: JournalBackend, name: str, prefix: Prefix) -> None:
    """Remove the payloads of ``prefix`` from the store. Whoever is interrupted may call it again."""
    for first in range(prefix.first, prefix.last + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, prefix.last + 1))
        rewritable(backend).rewrite(name, dict.fromkeys(numbers, b""))


class Archives:
    """The payloads in archive files, read a page at a time."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        import polars as pl  # noqa: PLC0415 (slow to import)

        self._files: list[tuple[int, int, polars.LazyFrame]] = []
        for path in paths:
            try:
                frame = pl.scan_parquet(str(path), glob=False)
                columns = dict(frame.collect_schema())
                if columns != _schema(pl):
                    raise InvalidInput("archive", str(path), f"{WRITTEN} (its columns are others)")
                first, last = frame.select(a=pl.first("seq"), b=pl.last("seq")).collect().row(0)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise InvalidInput("archive", str(path), f"{WRITTEN} ({error})") from error
            if first is None or last is None:
                raise InvalidInput("archive", str(path), f"{WRITTEN} (it holds no entry)")
            self._files.append((int(first), int(last), frame))

    def entries(self, first: int, last: int) -> list[Entry]:
        """The archived entries between two numbers."""
        found = []
        for start, stop, frame in self._files:
            low, high = max(first, start), min(last, stop)
            if low <= high:
                rows = frame.slice(low - start, high - low + 1).collect().rows()
                found += [Entry(*row) for row in rows]
        return found

    def filled(self, page: Sequence[Entry]) -> list[Entry]:
        """A page of a journal, with the payloads that are archived."""
        empty_ = [entry.seq for entry in page if entry.payload == b""]
        if not empty_:
            return list(page)
        payloads = {entry.seq: entry.payload for entry in self.entries(empty_[0], empty_[-1])}
        return [
            entry._replace(payload=payloads.get(entry.seq, b"")) if entry.payload == b"" else entry
            for entry in page
        ]

    def ranges(self) -> list[tuple[int, int]]:
        return [(first, last) for first, last, _ in self._files]


def check_filled(page: Sequence[Entry]) -> None:
    for entry in page:
        if entry.payload == b"":
            raise EntryArchived(
                f"entry {entry.seq} was archived; give the file that holds it (archive=..., command "
                "line: --archive FILE), and every other archive of this deployment"
            )


def bring_back(backend: JournalBackend, name: str, path: Path) -> int:
    """Write the payloads of a file into the store again; returns how many entries there were."""
    archives = Archives([path])
    ((first, last),) = archives.ranges()
    with backend.reading(name) as transaction:
        stored = {each.entry.seq: each for each in transaction.at([last])}
    if last not in stored or stored[last].next_previous is None:
        raise InvalidInput("path", str(path), f"does not belong to {name!r}")
    previous: bytes | None = None
    for start in range(first, last + 1, AT_ONCE):
        page = archives.entries(start, min(start + AT_ONCE - 1, last))
        for entry in page:
            if previous is not None and entry.previous != previous:
                raise InvalidInput("path", str(path), f"is damaged at entry {entry.seq - 1}")
            previous = entry.hash()
    if previous != stored[last].next_previous:
        raise InvalidInput("path", str(path), f"is damaged, or does not belong to {name!r}")
    for start in range(first, last + 1, AT_ONCE):
        page = archives.entries(start, min(start + AT_ONCE - 1, last))
        rewritable(backend).rewrite(name, {entry.seq: entry.payload for entry in page})
    return last - first + 1
