"""Audit a journal with code that decided nothing: hashes, order, sets, banks, admissibility.

Three independent readings of one journal:

1. *by itself* (``auditor``): numbers without gaps, hashes, times, every outcome about an open decision,
   banks that continue each other exactly, every executed candidate the one that the recorded margins and
   scores choose;
2. *by other arithmetic* (``recomputed_checks``): every confidence set, bound, margin and bank once more
   from the raw features and rewards. For a gate in plain Python there is no other arithmetic;
   ``replayed_checks`` decides every round again instead, and the report's level says so;
3. *by replay*: the fast path's state after every entry against the recorded fingerprints and snapshots.

The first entry for which something does not hold ends the audit. Replay may differ in the last bits
between machines. That is counted and not a finding, because 2. bounds the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from c4b.deployment.audit.audit_report import Finding, Report
from c4b.deployment.audit.auditor import Auditor
from c4b.deployment.audit.entry_format import entry_hash
from c4b.errors import InvalidInput
from c4b.journal.backend import StoredSnapshot
from c4b.journal.entries import GENESIS, Entry
from c4b.journal.journal import Journal

Progress = Callable[[int, int], None]


def run(journal: Journal, sample: int, progress: Progress | None = None) -> Report:
    """Audit everything up to the journal's head; ``sample`` decisions in 50 digits."""
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
        raise InvalidInput("sample", sample, "must be a whole number of at least 0")
    report, total = Report("?"), journal.head.seq + 1
    try:
        for _ in _followed(journal, report, max(1, total // (2 * sample)) if sample else 0):
            report.entries += 1
            if progress is not None and report.entries % 100 == 0:
                progress(report.entries, total)
    except Finding as finding:
        report.entry = report.entries if finding.entry is None else finding.entry
        report.finding = str(finding)
    if progress is not None:
        progress(report.entries, total)
    return report


def _followed(journal: Journal, report: Report, every: int) -> Iterator[Entry]:
    """Entries that hold, one by one; raises ``Finding`` at the first that does not."""
    auditor, hash_, expected = None, GENESIS, 0
    for entry in _entries(journal):
        if entry.seq != expected:
            raise Finding(f"is missing; the next one there is {entry.seq}")
        if entry.previous != hash_:
            raise Finding("does not match the hash that the entry after it carries", max(expected - 1, 0))
        hash_, expected = entry_hash(entry), expected + 1
        if auditor is None:
            auditor = _auditor(entry, report, every, _snapshots(journal))
        auditor.take(entry, hash_)
        report.hash = hash_.hex()
        yield entry
    if expected <= journal.head.seq:
        raise Finding("is missing, and so is everything after it")
    if hash_ != journal.head.hash:
        raise Finding("does not match the deployment's record of the last hash", journal.head.seq)
    if auditor is not None and auditor.snapshots:
        raise Finding("has a snapshot, but is not in the journal", min(auditor.snapshots))


def _auditor(first: Entry, report: Report, every: int, snapshots: dict[int, StoredSnapshot]) -> Auditor:
    try:
        return Auditor(first, report, every, snapshots)
    except Finding:
        raise
    except Exception as error:  # a damaged entry can hold anything
        raise Finding(f"cannot be followed ({type(error).__name__}: {error})") from error


def _entries(journal: Journal) -> Iterator[Entry]:
    after = -1
    while after < journal.head.seq:
        page = journal.unchecked(after)
        if not page:
            return
        yield from page
        if (lost := journal.unfound(page)) is not None:
            raise Finding("is not found by its request id or its decision: an index is damaged", lost)
        after = page[-1].seq


def _snapshots(journal: Journal) -> dict[int, StoredSnapshot]:
    """Those that are stored, by number."""
    stored = [journal.transaction.snapshot(seq) for seq in journal.transaction.snapshot_numbers()]
    return {each.seq: each for each in stored if each is not None}
