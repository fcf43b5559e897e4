"""What a driver's error means: nothing was written, nobody knows, or the store is damaged."""

from __future__ import annotations

import sqlite3

from c4b.errors import JournalCorrupt, StoreUnavailable
from c4b.journal.backend import KnownRequest, LostBeforeCommit, Unacknowledged

READ_ONLY = "25006"
"""PostgreSQL's state for a session that may only read, also after the server itself may write again."""
_UNSURE = ("08", "57", "40003")
"""PostgreSQL's states that leave open whether a commit happened."""
_REMEDIES = {
    READ_ONLY: "the server is a standby, or sets default_transaction_read_only",
    "22P05": "the database must have ENCODING 'UTF8' for texts like this",
    "42501": "the rights that a user needs are in docs/operating.md",
    "42P05": "a pooler that shares sessions (PgBouncer: pool_mode) must be set to session",
    "26000": "a pooler that shares sessions (PgBouncer: pool_mode) must be set to session",
    "57014": "where statement_timeout ended it, give this user a longer one",
}
"""What to do, by PostgreSQL's state."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def translated(cause: BaseException, lost: bool, committing: bool, file: str | None = None) -> Exception:
    """file: of an SQLite store."""
    message = " ".join(str(cause).split()) or type(cause).__name__
    code = getattr(cause, "sqlite_errorcode", None)
    state = getattr(cause, "sqlstate", None) or ""
    damaged = code is not None and code & 0xFF in _DAMAGED
    if (code or 0) & 0xFF == sqlite3.SQLITE_CANTOPEN and not committing:
        return StoreUnavailable(
            f"{file}: {message}; nothing was written. Its folder must exist, this user must be allowed "
            "to write in it, and the process to have more files open (ulimit -n)"
        )
    if (code or 0) & 0xFF == sqlite3.SQLITE_NOTADB:
        return JournalCorrupt(
            f"{file}: {message}, or its first page is damaged; check the path, or restore the file from "
            "a backup"
        )
    if (
        damaged
        or state in ("XX001", "XX002")
        or "decode to UTF-8" in message
        or isinstance(cause, UnicodeError)
    ):
        return JournalCorrupt(f"the store is damaged ({message}); restore it from a backup")
    if (code or 0) & 0xFF == sqlite3.SQLITE_CONSTRAINT or state.startswith("23"):
        if "request" in message:  # the only unique thing of that name
            return KnownRequest(message)
        return JournalCorrupt(f"the store contradicts its journal ({message}); run an audit")
    if committing and (not state or state.startswith(_UNSURE)):
        return Unacknowledged(
            f"{message}; the commit was not acknowledged: it was recorded or it was not, never half. "
            "Repeat the call with the same request_id to learn which"
        )
    if lost:
        return LostBeforeCommit(f"{message}; nothing was written, try again")
    remedy = f"; {_REMEDIES[state]}" if state in _REMEDIES else ""
    return StoreUnavailable(f"{message}{remedy}; nothing was written")
