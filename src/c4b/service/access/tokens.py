"""Tokens: create, list and revoke them. The store keeps a hash; the secret is shown once.

A token is ``c4b_ID_SECRET``. The id is public and identifies the row. The secret has 256 random bits, so
a plain SHA-256 of it cannot be reversed by search. Once a token was ever created, requests without a
token are refused, also after all tokens were revoked.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    LargeBinary,
    MetaData,
    String,
    Table,
    func,
    inspect,
    null,
    select,
    text,
    update,
)

from c4b import _validate
from c4b.deployment import limits as checks
from c4b.deployment.questions.views import moment
from c4b.errors import InvalidInput, UnknownName
from c4b.journal.sql.sql_store import Store

T = TypeVar("T")

TOKEN_PREFIX = "c4b"
_TOKEN_ID = re.compile(r"[0-9a-f]{12}")
LONGEST = 36_500
"""Days after which a token may expire, at most."""
_CREATION_LOCK = 0x633463  # any number that only this module uses

_metadata = MetaData()
token_table = Table(
    "c4b_token",
    _metadata,
    Column("id", String(16), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("deployment", String(100)),  # null: all of them
    Column("label", String(200), nullable=False),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970
    Column("revoked", BigInteger),
    Column("expires", BigInteger),
    Column("rate", Float),  # requests a second; null: no limit
)


class Scope(IntEnum):
    """What a token allows. Each scope includes those before it."""

    read = 1
    """Read states, decisions, explanations, audits, exports, metrics and the dashboard."""
    decide = 2
    """Ask for decisions; report outcomes and executed actions."""
    admin = 3
    """Create deployments and give them history."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: str
    scope: Scope
    deployment: str | None
    label: str
    created: datetime
    revoked: datetime | None
    expires: datetime | None
    rate: float | None
    """Requests a second, of each worker."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "scope": self.scope.name,
            "deployment": self.deployment,
            "label": self.label,
            "created": self.created.isoformat(),
            "revoked": None if self.revoked is None else self.revoked.isoformat(),
            "expires": None if self.expires is None else self.expires.isoformat(),
            "rate": self.rate,
        }


def create(
    url: str,
    scope: str,
    deployment: str | None = None,
    label: str = "",
    expires: float | None = None,
    rate: float | None = None,
) -> str:
    """Create a token and return it with its secret. The store is created if it does not exist.

    expires: days after which it is not valid any more. rate: requests a second that each worker accepts.
    """
    for name, value in (("expires", expires), ("rate", rate)):
        if value is not None:
            _validate.positive(name, value, "must be a positive number")
    if expires is not None and expires > LONGEST:
        remedy = f"must be at most {LONGEST} days; leave it out for a token that does not expire"
        raise InvalidInput("expires", expires, remedy)
    if scope not in Scope.__members__:
        raise UnknownName("scope", scope, f"must be one of {', '.join(Scope.__members__)}")
    if deployment is not None:
        checks.deployment_name(deployment)
    if not label.isprintable() or len(label) > 200:
        raise InvalidInput("label", label, "must be at most 200 printable characters")
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = {
        "id": token_id,
        "hash": hash_secret(secret),
        "scope": scope,
        "deployment": deployment,
        "label": label,
        "created": _now(),
        "expires": None if expires is None else _now() + int(expires * 86_400e6),
        "rate": rate,
    }
    _in_transaction(url, lambda connection: connection.execute(token_table.insert(), row), create=True)
    return f"{TOKEN_PREFIX}_{token_id}_{secret}"


def listed(url: str) -> list[Token]:
    """Return all tokens, oldest first, without their secrets."""

    def read(connection: Connection) -> list[Token]:
        if not inspect(connection).has_table(token_table.name):
            return []
        return [_token(row) for row in rows_of(connection)]

    return _in_transaction(url, read)


def revoke(url: str, token_id: str) -> Token:
    """Revoke a token, given its id or the whole token. Revoking it again changes nothing."""
    if token_id.startswith(f"{TOKEN_PREFIX}_"):
        token_id = token_id.split("_")[1]  # keeps the secret out of messages

    def write(connection: Connection) -> Token:
        same_id = token_table.c.id == token_id
        row = None
        if _TOKEN_ID.fullmatch(token_id) and inspect(connection).has_table(token_table.name):
            first = func.coalesce(token_table.c.revoked, _now())
            connection.execute(update(token_table).where(same_id).values(revoked=first))
            row = next((each for each in rows_of(connection) if each.id == token_id), None)
        if row is None:
            raise UnknownName("id", token_id, "is no token's id; `c4b token list` shows them")
        return _token(row)

    return _in_transaction(url, write, write=True)


def rows_of(connection: Connection) -> list[Any]:
    """All tokens, oldest first. A table of an earlier version lacks some columns, which are None then."""
    there = _columns(connection)
    listed = [each if each.name in there else null().label(each.name) for each in token_table.c]
    oldest = select(*listed).select_from(token_table).order_by(token_table.c.created, token_table.c.id)
    return list(connection.execute(oldest))


def _columns(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(token_table.name)}


def _add_columns(connection: Connection) -> None:
    """To a table that an earlier version made."""
    missing = {"expires": "BIGINT", "rate": "DOUBLE PRECISION"}
    for name in missing.keys() - _columns(connection):
        connection.execute(text(f"ALTER TABLE {token_table.name} ADD COLUMN {name} {missing[name]}"))


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _in_transaction(
    url: str, action: Callable[[Connection], T], create: bool = False, write: bool = False
) -> T:
    """Run ``action`` in one transaction; with ``create``, create the store and the table if needed."""
    store = Store(url, create=create)
    try:
        with store.administering(write=create or write) as connection:
            if create:
                if connection.dialect.name == "postgresql":  # concurrent CREATE TABLE would collide
                    connection.execute(select(func.pg_advisory_xact_lock(_CREATION_LOCK)))
                _metadata.create_all(connection)
                _add_columns(connection)
            return action(connection)
    finally:
        store.close()


def _token(row: Any) -> Token:
    revoked, expires = (None if at is None else moment(at) for at in (row.revoked, row.expires))
    return Token(
        row.id,
        Scope[row.scope],
        row.deployment,
        row.label,
        moment(row.created),
        revoked,
        expires,
        row.rate,
    )


def _now() -> int:
    return int(time.time() * 1e6)
