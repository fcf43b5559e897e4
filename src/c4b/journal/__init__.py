"""The journal: entries, their hash chain, and the backends that store them. Independent of policies."""

from c4b.journal.backend import Head, JournalBackend, JournalTransaction, StoredEntry, StoredSnapshot
from c4b.journal.backend_registry import open_backend, register_backend
from c4b.journal.entries import Entry

__all__ = [
    "Entry",
    "Head",
    "JournalBackend",
    "JournalTransaction",
    "StoredEntry",
    "StoredSnapshot",
    "open_backend",
    "register_backend",
]
