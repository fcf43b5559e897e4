"""Tokens: who may do what. The store keeps a hash; the secret is shown once.

A token is ``c4b_ID_SECRET``: the id is public and finds the row, the secret has 256 random bits, so a
plain SHA-256 of it cannot be searched. Once a token was ever created, requests without one are refused,
also after all were revoked: revoking never opens a door.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
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
    LargeBinary,
    MetaData,
    String,
    Table,
    func,
    inspect,
    select,
    update,
)

from c4b.deployment import limits as checks
from c4b.deployment.views import moment
from c4b.errors import InvalidInput, UnknownName
from c4b.journal.sql_store import Store

T = TypeVar("T")

FRESH = 1.0
"""Seconds for which a worker believes what it read: a revoked token works no longer than this."""
_PREFIX = "c4b"
_ID = re.compile(r"[0-9a-f]{12}")
_CREATION_LOCK = 0x633463  # any number that only this module uses

_metadata = MetaData()
_tokens = Table(
    "c4b_token",
    _metadata,
    Column("id", String(16), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("deployment", String(100)),  # null: all of them
    Column("label", String(200), nullable=False),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970
    Column("revoked", BigInteger),
)


class Scope(IntEnum):
    """What a token may do; each includes those before it."""

    read = 1
    """Look: states, decisions, explanations, audit, export, metrics, dashboard."""
    decide = 2
    """Ask for decisions, and report outcomes and what was executed."""
    admin = 3
    """Create deployments and give them history."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token as far as it may be shown."""

    id: str
    scope: Scope
    deployment: str | None
    label: str
    created: datetime
    revoked: datetime | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "scope": self.scope.name,
            "deployment": self.deployment,
            "label": self.label,
            "created": self.created.isoformat(),
            "revoked": None if self.revoked is None else self.revoked.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Grant:
    """What the bearer of a request may do."""

    token: str
    """Its id, for logs."""
    scope: Scope
    deployment: str | None

    def covers(self, scope: Scope, deployment: str | None) -> bool:
        """Whether it allows ``scope`` on ``deployment``; None: on the store as a whole."""
        return self.scope >= scope and self.deployment in (None, deployment)


ANYBODY = Grant("none", Scope.admin, None)
"""Who asks a service without tokens; it listens to its own machine only."""


def create(url: str, scope: str, deployment: str | None = None, label: str = "") -> str:
    """A new token, to be shown once; the store is made if there is none."""
    if scope not in Scope.__members__:
        raise UnknownName("scope", scope, f"must be one of {', '.join(Scope.__members__)}")
    if deployment is not None:
        checks.deployment_name(deployment)
    if not label.isprintable() or len(label) > 200:
        raise InvalidInput("label", label, "must be at most 200 printable characters")
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = {
        "id": name,
        "hash": _hash(secret),
        "scope": scope,
        "deployment": deployment,
        "label": label,
        "created": _now(),
    }
    _on(url, lambda connection: connection.execute(_tokens.insert(), row), make=True)
    return f"{_PREFIX}_{name}_{secret}"


def listed(url: str) -> list[Token]:
    """All tokens, oldest first, without their secrets."""

    def read(connection: Connection) -> list[Token]:
        if not inspect(connection).has_table(_tokens.name):
            return []
        rows = connection.execute(select(_tokens).order_by(_tokens.c.created, _tokens.c.id))
        return [_token(row) for row in rows]

    return _on(url, read)


def revoke(url: str, name: str) -> Token:
    """End a token's life; twice is harmless. ``name`` is its id; the whole token will do."""
    if name.startswith(f"{_PREFIX}_"):
        name = name.split("_")[1]  # and the secret is in no message

    def write(connection: Connection) -> Token:
        wanted = _tokens.c.id == name
        row = None
        if _ID.fullmatch(name) and inspect(connection).has_table(_tokens.name):
            first = func.coalesce(_tokens.c.revoked, _now())
            connection.execute(update(_tokens).where(wanted).values(revoked=first))
            row = connection.execute(select(_tokens).where(wanted)).first()
        if row is None:
            raise UnknownName("id", name, "is no token's id; `c4b token list` shows them")
        return _token(row)

    return _on(url, write, write=True)


class Gatekeeper:
    """Tells who a bearer is, for one worker; reads the tokens again when what it knows is not fresh."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Any] = {}
        self._read_at = float("-inf")
        self._open = True
        self._turn = threading.Lock()

    def grant(self, bearer: str | None) -> Grant | None:
        """What ``bearer`` may do, or None: not a valid token, or none where one is needed."""
        known = self._fresh()
        if self._open:
            return ANYBODY
        prefix, _, rest = (bearer or "").partition("_")
        name, _, secret = rest.partition("_")
        row = known.get(name)
        # compare even without a row, so that time does not tell which ids exist
        same = hmac.compare_digest(_hash(secret), row.hash if row else b"\0" * 32)
        if prefix != _PREFIX or row is None or not same or row.revoked is not None:
            return None
        return Grant(name, Scope[row.scope], row.deployment)

    @property
    def open(self) -> bool:
        """Whether no token was ever created; reads the store unless one is known."""
        if self._open:
            self._fresh()
        return self._open

    @property
    def stale(self) -> bool:
        """Whether the next question reads the store, which may wait."""
        return time.monotonic() - self._read_at > FRESH

    def _fresh(self) -> dict[str, Any]:
        if self.stale:
            with self._turn:
                if self.stale:
                    began = time.monotonic()
                    with self._store.administering(write=False) as connection:
                        there = inspect(connection).has_table(_tokens.name)
                        rows = connection.execute(select(_tokens)).all() if there else []
                    self._known = {row.id: row for row in rows}
                    self._open = self._open and not rows  # tokens that vanish open no door either
                    self._read_at = began
        return self._known


def _on(url: str, action: Callable[[Connection], T], make: bool = False, write: bool = False) -> T:
    store = Store(url, create=make)
    try:
        with store.administering(write=make or write) as connection:
            if make:
                if connection.dialect.name == "postgresql":  # or two that make the table collide
                    connection.execute(select(func.pg_advisory_xact_lock(_CREATION_LOCK)))
                _metadata.create_all(connection)
            return action(connection)
    finally:
        store.close()


def _token(row: Any) -> Token:
    revoked = None if row.revoked is None else moment(row.revoked)
    return Token(row.id, Scope[row.scope], row.deployment, row.label, moment(row.created), revoked)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _now() -> int:
    return int(time.time() * 1e6)
