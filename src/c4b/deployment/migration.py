"""From the tables of an earlier version to those of this one: on request, in one transaction."""

from __future__ import annotations

from sqlalchemy import Connection, text

from c4b.deployment import schema
from c4b.deployment.store import Store
from c4b.errors import StoreUnavailable


def migrate(url: str) -> tuple[int, int]:
    """Bring a store up to date; returns its schema version before and after.

    Stop what uses the store and back it up first. Processes of the earlier version that run on are
    refused from then on. Entries keep every byte that is hashed. If anything goes wrong, nothing changed.
    """
    store = Store(url)
    try:
        with store.administering() as connection:
            if not schema.exists(connection):
                raise StoreUnavailable("the store has no tables of reserve-c4b; nothing to migrate")
            schema.exclusive(connection)
            before = schema.found(connection)
            if before == schema.VERSION:
                return before, before
            if not schema.OLDEST <= before < schema.VERSION:
                schema.refuse(before)
            _to_2(connection)
            connection.execute(schema.version.update(), {"version": schema.VERSION})
            return before, schema.VERSION
    finally:
        store.close()


def _to_2(connection: Connection) -> None:
    """The journal's key becomes one number; see ``schema.journal``."""
    for index in ("c4b_journal_request", "c4b_journal_about"):
        connection.execute(text(f"DROP INDEX {index}"))
    connection.execute(text("ALTER TABLE c4b_journal RENAME TO c4b_journal_1"))
    schema.create_journal(connection)
    copied = "deployment, seq, kind, about, request_id, at, payload, previous"
    connection.execute(
        text(
            f"INSERT INTO c4b_journal (place, {copied}) SELECT deployment * {schema.DEPLOYMENT} + seq, "
            f"{copied} FROM c4b_journal_1 ORDER BY deployment, seq"
        )
    )
    connection.execute(text("DROP TABLE c4b_journal_1"))
