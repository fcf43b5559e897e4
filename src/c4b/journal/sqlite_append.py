"""One entry to a journal in SQLite as one statement, which is a transaction by itself.

An entry moves its journal's head, so two tables change. A server's statement can do that. SQLite's
cannot, but a trigger can: every connection that writes has a view into which an entry is inserted, and
the view's trigger does both, or refuses if the journal ends elsewhere. Four statements, from BEGIN to
COMMIT, take a sixth longer where the disk is fast.

View and trigger are temporary: they belong to the connection, and the file does not have them.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy import column, table

from c4b.journal.sql_schema import VERSION, deployments, journal, version

_written = [each.name for each in journal.c]
_view = table("c4b_append", *(column(each.name, each.type) for each in journal.c), column("hash"))
APPEND = _view.insert()
"""Values: the columns of the journal, and the entry's hash."""

_from_here = (
    f"id = NEW.deployment AND head = NEW.seq - 1 AND head_hash = NEW.previous "
    f"AND EXISTS (SELECT 1 FROM {version.name} WHERE version = {VERSION})"
)
PREPARATION = (
    f"CREATE TEMP VIEW IF NOT EXISTS {_view.name} ({', '.join(_view.c.keys())}) "
    f"AS SELECT {', '.join('NULL' for _ in _view.c)}",
    f"CREATE TEMP TRIGGER IF NOT EXISTS {_view.name}_both INSTEAD OF INSERT ON {_view.name} BEGIN "
    f"SELECT RAISE(ABORT, 'the journal ends elsewhere') "
    f"WHERE NOT EXISTS (SELECT 1 FROM {deployments.name} WHERE {_from_here}); "
    f"UPDATE {deployments.name} SET head = NEW.seq, head_hash = NEW.hash WHERE id = NEW.deployment; "
    f"INSERT INTO {journal.name} ({', '.join(_written)}) "
    f"VALUES ({', '.join(f'NEW.{name}' for name in _written)}); END",
)
"""What a connection executes before its first append."""

_NOTHING_YET = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_ERROR,
)


def ends_elsewhere(error: BaseException) -> bool:
    """Whether the trigger refused an entry."""
    return (
        isinstance(error, sqlite3.IntegrityError)
        and error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_TRIGGER
    )


def may_be_written(error: BaseException) -> bool:
    """False for errors that come before the first byte is written; else it is not known."""
    return not (isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF in _NOTHING_YET)
