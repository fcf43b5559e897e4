"""Erase the contexts of decisions, which may hold personal data, without breaking the hash chain.

The chain holds a salted hash of each context (see ``c4b.journal.envelope``). The text and the salt lie
beside it and are removed here. Everything else of a decision stays, and an audit stays clean.
"""

from __future__ import annotations

from collections.abc import Sequence

from c4b.errors import InvalidInput
from c4b.journal.backend import JournalBackend, rewritable
from c4b.journal.entries import DECIDED, Entry
from c4b.journal.envelope import CONTEXT, beside, hashed_part
from c4b.journal.journal import Journal

AT_ONCE = 1000
"""Contexts erased in one transaction."""


def erase_requested(backend: JournalBackend, name: str, request_id: str) -> int:
    """Erase the context of the decision of a request id; returns 1, or 0 if there is none any more.

    Of an archived decision there is none: files are without.
    """
    with backend.reading(name) as transaction:
        journal = Journal(transaction)
        stored = [each.entry for each in transaction.requested([request_id])]
        if any(entry.kind == DECIDED and entry.payload == b"" for entry in stored):
            return 0
        entry = journal.requested([request_id]).get(request_id)
    if entry is None or entry.kind != DECIDED:
        raise InvalidInput("request_id", request_id, "is of no decision of this deployment")
    return _erase(backend, name, [entry])


def erase_older(backend: JournalBackend, name: str, before: int) -> int:
    """Erase the contexts of all decisions made before a time, in microseconds since 1970."""
    after, erased = -1, 0
    while True:
        with backend.reading(name) as transaction:
            last = transaction.head.seq
            page = transaction.range(after + 1, last, AT_ONCE)
        old = [entry for entry in page if entry.at < before]
        erased += _erase(backend, name, [entry for entry in old if entry.kind == DECIDED])
        if not page or len(old) < len(page):
            return erased
        after = page[-1].seq


def _erase(backend: JournalBackend, name: str, entries: Sequence[Entry]) -> int:
    texts = [entry for entry in entries if entry.payload and beside(entry.payload)]
    for entry in entries:
        if entry.payload and not beside(entry.payload) and entry.unpack()[0].get(CONTEXT) is not None:
            raise InvalidInput(
                "name",
                name,
                "was created by a version that hashed contexts as they are: they cannot be erased without"
                " breaking the chain. Archive and close the deployment, and go on in a successor",
            )
    if texts:
        rewritable(backend).rewrite(name, {entry.seq: hashed_part(entry.payload) for entry in texts})
    return len(texts)
