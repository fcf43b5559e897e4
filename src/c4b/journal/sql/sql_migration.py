"""From the tables of an earlier version to those of this one: on request, in one transaction."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from c4b.errors import StoreUnavailable
from c4b.journal.sql import sql_schema as schema
from c4b.journal.sql.sql_store import Store


def migrate(url: str) -> tuple[int, int]:
    """Bring a store up to date, and make its indexes again; returns its schema version before and after.

    Stop what uses the store and back it up first. Processes of the earlier version that still run are
    refused from then on. Entries keep every byte that is hashed. The first opening of a deployment
    afterwards reads its whole journal. If anything goes wrong, nothing changed.
    """
    store = Store(url)
    try:
        with store.administering() as connection:
            if not schema.exists(connection):
                raise StoreUnavailable("the store has no tables of reserve-c4b; nothing to migrate")
            schema.exclusive(connection)
            before = schema.recorded_version(connection)
            if schema.OLDEST <= before <= schema.VERSION:
                _drop_reference(connection)
                schema.compress_nothing(connection)
            if before == schema.VERSION:
                schema.restore_indexes(connection)
                return before, before
            if not schema.OLDEST <= before < schema.VERSION:
                schema.refuse(before)
            _to_2(connection)
            connection.execute(schema.version.update(), {"version": schema.VERSION})
            return before, schema.VERSION
    finally:
        store.close()


def _drop_reference(connection: Connection) -> None:
    """The journal's foreign key, which earlier versions made. A server looks it up at every append."""
    if connection.dialect.name == "postgresql":
        for key in inspect(connection).get_foreign_keys("c4b_journal"):
            connection.execute(text(f'ALTER TABLE c4b_journal DROP CONSTRAINT "{key["name"]}"'))


def _to_2(connection: Connection) -> None:
    """The journal's key becomes one number; see ``sql_schema.journal``.

    Snapshots are dropped: those written under Python 3.12 or later hold sums rounded in another way.
    """
    for index in ("c4b_journal_request", "c4b_journal_about"):
        connection.execute(text(f"DROP INDEX {index}"))
    place = f"deployment * {schema.DEPLOYMENT} + seq"
    if connection.dialect.name == "postgresql":  # in place: the table keeps its owner and its grants
        key = inspect(connection).get_pk_constraint("c4b_journal")["name"]
        for change in (
            "ALTER TABLE c4b_journal ADD COLUMN place BIGINT",
            f"UPDATE c4b_journal SET place = {place}",
            f'ALTER TABLE c4b_journal DROP CONSTRAINT "{key}"',
            "ALTER TABLE c4b_journal ADD PRIMARY KEY (place)",
        ):
            connection.execute(text(change))
        for wanted in schema.journal.indexes:
            wanted.create(connection)
    else:
        copied = "deployment, seq, kind, about, request_id, at, payload, previous"
        connection.execute(text("PRAGMA legacy_alter_table = ON"))  # views keep the name that they use
        connection.execute(text("ALTER TABLE c4b_journal RENAME TO c4b_journal_1"))
        schema.journal.create(connection)
        connection.execute(
            text(
                f"INSERT INTO c4b_journal (place, {copied}) SELECT {place}, {copied} "
                "FROM c4b_journal_1 ORDER BY deployment, seq"
            )
        )
        connection.execute(text("DROP TABLE c4b_journal_1"))
    connection.execute(text("DELETE FROM c4b_snapshot"))
    connection.execute(text("UPDATE c4b_deployment SET snapshot = -1"))
