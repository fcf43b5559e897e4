"""Recompute a journal with code that decided nothing: hashes, order, sets, banks, admissibility.

Three independent readings of one journal:

1. *by itself*: numbers without gaps, hashes, times, every outcome about an open decision, banks that
   continue each other exactly, every executed candidate the one that the recorded margins and scores
   choose;
2. *by other arithmetic*: every confidence set, bound, margin and bank once more from the raw features and
   rewards (``recompute``: NumPy, no incremental inverse; for a sample ``exact``: 50 digits);
3. *by replay*: the fast path's state after every entry against the recorded fingerprints and snapshots.

The first entry for which something does not hold ends the audit. Replay may differ in the last bits
between machines; that is counted, not held against the journal, because 2. bounds the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from c4b.deployment.audit.audit_report import Report
from c4b.deployment.audit.auditor import Auditor, Wrong, hash_of
from c4b.errors import InvalidInput
from c4b.journal.backend import StoredSnapshot
from c4b.journal.entries import GENESIS, Entry
from c4b.journal.journal import Journal

Progress = Callable[[int, int], None]


def run(journal: Journal, sample: int, progress: Progress | None = None) -> Report:
    """Audit everything up to the journal's head; ``sample`` decisions in high precision."""
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
        raise InvalidInput("sample", sample, "must be a whole number of at least 0")
    report, total = Report("?"), journal.head.seq + 1
    try:
        for _ in _followed(journal, report, max(1, total // (2 * sample)) if sample else 0):
            report.entries += 1
            if progress is not None and report.entries % 100 == 0:
                progress(report.entries, total)
    except Wrong as wrong:
        report.entry = report.entries if wrong.entry is None else wrong.entry
        report.finding = str(wrong)
    if progress is not None:
        progress(report.entries, total)
    return report


def _followed(journal: Journal, report: Report, every: int) -> Iterator[Entry]:
    """Entries that hold, one by one; raises ``Wrong`` at the first that does not."""
    auditor, hash_, expected = None, GENESIS, 0
    for entry in _rows(journal):
        if entry.seq != expected:
            raise Wrong(f"is missing; the next one there is {entry.seq}")
        if entry.previous != hash_:
            raise Wrong("does not match the hash that the entry after it carries", max(expected - 1, 0))
        hash_, expected = hash_of(entry), expected + 1
        if auditor is None:
            auditor = Auditor(entry, report, every, _snapshots(journal))
        auditor.take(entry, hash_)
        report.hash = hash_.hex()
        yield entry
    if expected <= journal.head.seq:
        raise Wrong("is missing, and so is everything after it")
    if hash_ != journal.head.hash:
        raise Wrong("does not match the deployment's record of the last hash", journal.head.seq)
    if auditor is not None and auditor.snapshots:
        raise Wrong("has a snapshot, but is not in the journal", min(auditor.snapshots))


def _rows(journal: Journal) -> Iterator[Entry]:
    after = -1
    while after < journal.head.seq:
        page = journal.unchecked(after)
        if not page:
            return
        yield from page
        after = page[-1].seq


def _snapshots(journal: Journal) -> dict[int, StoredSnapshot]:
    """Those that are stored, by number."""
    stored = [journal.transaction.snapshot(seq) for seq in journal.transaction.snapshot_numbers()]
    return {each.seq: each for each in stored if each is not None}
