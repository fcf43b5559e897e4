"""Audit a journal with code that takes no part in decisions: hashes, order, sets, banks, admissibility.

An audit reads one journal in three independent ways:

1. *by itself* (``auditor``): entries are numbered without gaps, hashes and times are right, every outcome
   is about an open decision, each bank continues the one before it exactly, every executed candidate is
   the one that the recorded margins and scores choose, and the store's indexes find every entry;
2. *by other arithmetic* (``recomputed_checks``): every confidence set, bound, margin and bank is computed
   again from the raw features and rewards. For a gate in plain Python there is no other arithmetic;
   ``replayed_checks`` decides every round again instead, and the report's level says so;
3. *by replay*: the fast path's state after every entry is compared with the recorded fingerprints and
   snapshots.

The audit ends at the first entry for which something does not hold. Replay may differ in the last bits
between machines. Such a difference is counted and is not a finding, because 2. bounds it.

The journal is read in pages, each in a transaction of its own: an audit may take hours, and a server ends
transactions that are idle for long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from c4b.deployment.archive import Archives, check_filled
from c4b.deployment.audit.audit_report import Finding, Report
from c4b.deployment.audit.auditor import Auditor
from c4b.deployment.audit.checks.decision_checks import EVERYTHING, Share
from c4b.deployment.audit.entry_format import entry_hash, has_seal, key_of
from c4b.deployment.audit.verified_place import VerifiedPlace
from c4b.deployment.questions.witness import Attested
from c4b.errors import InvalidInput
from c4b.journal.backend import Head, JournalBackend, StoredSnapshot
from c4b.journal.entries import GENESIS, Entry
from c4b.journal.journal import Journal

Progress = Callable[[int, int], None]
"""Called with the entries that hold so far, and their number altogether."""
PAGE = 100
"""Entries read at a time; one may have megabytes."""
FARTHEST = 2**39
"""More than any journal's last number."""
REPORTED = 0.5
"""Seconds between two calls of ``progress``."""


class Task(NamedTuple):
    """What one process audits."""

    sample: int
    """Decisions recomputed in 50 digits, about."""
    share: Share = EVERYTHING
    verified: VerifiedPlace | None = None
    """Where an earlier audit came to. Decisions up to there are not recomputed again."""
    attested: Attested = {}  # noqa: RUF012 (nobody changes it)
    """What witnesses and receipts say."""
    archives: tuple[str, ...] = ()
    """Files with payloads that are not in the store any more."""


class StoredJournal:
    """One journal up to the head that it had when the audit began."""

    def __init__(self, backend: JournalBackend, name: str, archives: Sequence[str] = ()) -> None:
        self._backend, self.name = backend, name
        self._archives = Archives(archives) if archives else None
        with backend.reading(name) as transaction:
            self.head: Head = transaction.head
            stored = [transaction.snapshot(seq) for seq in transaction.snapshot_numbers()]
        self.snapshots: dict[int, StoredSnapshot] = {
            each.seq: each for each in stored if each is not None and each.seq <= self.head.seq
        }
        self.strays = [each.seq for each in stored if each is not None and each.seq > self.head.seq]

    def entries(self) -> Iterator[Entry]:
        """As they are stored; raises ``Finding`` after a page in which lookups find another journal."""
        after = -1
        while after < self.head.seq:
            with self._backend.reading(self.name) as transaction:
                page = transaction.range(after + 1, self.head.seq, PAGE)
                misplaced = Journal(transaction).misplaced(page)
            if not page:
                return
            if self._archives is not None:
                page = self._archives.filled(page)
            check_filled(page)
            yield from page
            if misplaced is not None:
                seq, finding = misplaced
                raise Finding(finding, seq)
            after = page[-1].seq

    def beyond(self) -> int | None:
        """The number of an entry that is stored beyond the end of the journal, where nothing may be."""
        with self._backend.reading(self.name) as transaction:
            stored = transaction.range(self.head.seq + 1, FARTHEST, 1)
        with self._backend.reading(self.name) as transaction:  # a writer moves the end with its entry
            return next((entry.seq for entry in stored if entry.seq > transaction.head.seq), None)


@np.errstate(all="warn", under="ignore")  # NumPy's own: callers who raise errors would be told findings
def run(
    backend: JournalBackend,
    name: str,
    task: Task,
    progress: Progress | None = None,
    reached: Callable[[VerifiedPlace], None] | None = None,
) -> Report:
    """Audit everything up to the journal's head; ``reached`` is told how far it came."""
    sample = task.sample
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
        raise InvalidInput("sample", sample, "must be a whole number of at least 0")
    journal = StoredJournal(backend, name, task.archives)
    report, total = Report("?"), journal.head.seq + 1
    every, last = max(1, total // (2 * sample)) if sample else 0, 0.0
    before = -1 if task.verified is None else task.verified.seq

    def tell() -> None:
        if progress is not None:
            progress(report.entries, total)
        if reached is not None and report.entries - 1 > before:
            reached(VerifiedPlace(name, report.entries - 1, report.hash))

    try:
        for _ in _followed(journal, report, every, task):
            report.entries += 1
            if time.monotonic() - last >= REPORTED:
                tell()
                last = time.monotonic()
    except Finding as finding:
        report.entry = report.entries if finding.entry is None else finding.entry
        report.finding = str(finding)
    else:
        tell()
    return report


def _followed(journal: StoredJournal, report: Report, every: int, task: Task) -> Iterator[Entry]:
    """Entries that hold, one by one; raises ``Finding`` at the first that does not."""
    auditor, hash_, expected, verified, key = None, GENESIS, 0, task.verified, None
    for entry in journal.entries():
        if entry.seq != expected:
            raise Finding(f"is missing; the next one there is {entry.seq}")
        if entry.previous != hash_:
            raise Finding("does not match the hash that the entry after it carries", max(expected - 1, 0))
        hash_, expected = entry_hash(entry), expected + 1
        if auditor is None:
            auditor = _auditor(entry, report, every, task, journal)
            if report.name != journal.name:
                raise Finding(f"creates {report.name!r}, not {journal.name!r}")
            key = key_of(auditor.state.configuration.key)
        if key is not None and not has_seal(entry, key):
            raise Finding("is not sealed with the deployment's key: somebody without it wrote the entry")
        if verified is not None and entry.seq == verified.seq and hash_.hex() != verified.hash:
            raise Finding("is not the one that an earlier audit verified")
        if task.attested.get(entry.seq, frozenset()) - {hash_.hex()}:
            raise Finding("is not the one that a witness or a receipt attests: the past was rewritten")
        report.attested += entry.seq in task.attested
        auditor.take(entry, hash_)
        report.hash = hash_.hex()
        yield entry
    report.sealed = key is not None
    if expected <= journal.head.seq:
        raise Finding("is missing, and so is everything after it")
    if hash_ != journal.head.hash:
        raise Finding("does not match the deployment's record of the last hash", journal.head.seq)
    if verified is not None and verified.seq >= expected:
        raise Finding("is missing, but an earlier audit verified it", verified.seq)
    if lost := [seq for seq in task.attested if not 0 <= seq < expected]:
        raise Finding(
            "is missing, but a witness or a receipt attests it: an old copy of the journal was restored, "
            "or its end was removed",
            min(lost),
        )
    if auditor is not None:
        auditor.finish()
    if strays := [*(auditor.snapshots if auditor is not None else ()), *journal.strays]:
        raise Finding("has a snapshot, but is not in the journal", min(strays))
    if (stray := journal.beyond()) is not None:
        raise Finding("is stored beyond the end of the journal", stray)


def _auditor(first: Entry, report: Report, every: int, task: Task, journal: StoredJournal) -> Auditor:
    after = -1 if task.verified is None else task.verified.seq
    share = task.share._replace(after=after)
    try:
        return Auditor(first, report, every, dict(journal.snapshots), share)
    except Finding:
        raise
    except Exception as error:  # a damaged entry can hold anything
        raise Finding(f"cannot be followed ({type(error).__name__}: {error})") from error
