"""What of a PostgreSQL server makes decisions impossible later, or less durable than promised.

A missing right may show after days only: the first snapshot is made after thousands of entries.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

NEEDED = {
    "c4b_schema": ("SELECT",),
    "c4b_deployment": ("SELECT", "UPDATE"),
    "c4b_journal": ("SELECT", "INSERT"),
    "c4b_snapshot": ("SELECT", "INSERT", "DELETE"),
}
"""The rights by which a user decides and reports. More are needed to create deployments, to archive and
to erase."""
_MAY = text("SELECT has_table_privilege(to_regclass(:table), :right)")


def concerns(connection: Connection) -> list[str]:
    """Sentences for who starts a service; none for SQLite."""
    if connection.dialect.name != "postgresql":
        return []
    found = []
    if connection.execute(text("SHOW transaction_read_only")).scalar() == "on":
        found.append("the server is read-only (a standby?): decisions and outcomes are refused")
    if connection.execute(text("SELECT current_setting('fsync', true)")).scalar() == "off":
        found.append("the server has fsync = off: a loss of power may take decisions that were answered")
    missing = [
        f"{right} on {table}"
        for table, rights in NEEDED.items()
        for right in rights
        if not connection.execute(_MAY, {"table": table, "right": right}).scalar()
    ]
    if missing:
        found.append(f"the user lacks rights ({', '.join(missing)}): decisions fail now, or later on")
    return found
