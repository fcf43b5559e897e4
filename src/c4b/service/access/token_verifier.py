"""Verify the token of a request, with the tokens of the store cached for a second."""

from __future__ import annotations

import hmac
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import inspect

from c4b.errors import C4BError
from c4b.journal.sql.sql_store import Store
from c4b.service.access.tokens import TOKEN_PREFIX, Scope, hash_secret, rows_of, token_table

CACHE_SECONDS = 1.0
"""Seconds for which a worker uses the tokens that it read. A revoked token works no longer than this."""
_EARLY_SECONDS = 0.75 * CACHE_SECONDS
"""Age from which they are read again beside the requests, so that none has to wait for it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the sender of a request may do."""

    token: str
    """The token's public id, for logs."""
    scope: Scope
    deployment: str | None
    """The only deployment that the token is valid for, or None for all."""
    rate: float | None = None
    """Requests a second that each worker accepts; None: any number."""

    def covers(self, scope: Scope, deployment: str | None) -> bool:
        """Whether it allows ``scope`` on ``deployment``, or on the whole store if that is None."""
        return self.scope >= scope and self.deployment in (None, deployment)


UNPROTECTED = Grant("none", Scope.admin, None)
"""The grant of every request while no token exists. The service then accepts local connections only."""


class TokenVerifier:
    """Verifies tokens for one worker process. Reads them again when the cached ones are too old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, Any] = {}
        self._read_at = float("-inf")
        self._unprotected = True
        self._lock = threading.Lock()
        self._refreshing = False

    def grant(self, token: str | None) -> Grant | None:
        """Return what ``token`` allows; None if it is not valid, or missing where one is needed."""
        return self._granted(self._current_rows(), token)

    def last_known_grant(self, token: str | None) -> Grant | None:
        """The same by the tokens that were read last, while the store is not available."""
        never_read = self._read_at == float("-inf")
        return None if never_read else self._granted(self._rows, token)

    def _granted(self, rows: dict[str, Any], token: str | None) -> Grant | None:
        if self._unprotected:
            return UNPROTECTED
        prefix, _, rest = (token or "").partition("_")
        token_id, _, secret = rest.partition("_")
        row = rows.get(token_id)
        # compare even without a row, so that the time taken does not reveal which ids exist
        same = hmac.compare_digest(hash_secret(secret), row.hash if row else b"\0" * 32)
        if prefix != TOKEN_PREFIX or row is None or not same or row.revoked is not None:
            return None
        if row.expires is not None and row.expires <= time.time() * 1e6:
            return None
        return Grant(token_id, Scope[row.scope], row.deployment, row.rate)

    @property
    def unprotected(self) -> bool:
        """Whether no token was ever created. Reads the store while none is known."""
        if self._unprotected:
            self._current_rows()
        return self._unprotected

    @property
    def stale(self) -> bool:
        """Whether the next call reads the store and may therefore wait."""
        return time.monotonic() - self._read_at > CACHE_SECONDS

    def claim_refresh(self) -> bool:
        """Whether the caller has to call ``refresh`` in a thread: the tokens will soon be too old, and
        nobody else does it."""
        if self._refreshing or time.monotonic() - self._read_at < _EARLY_SECONDS:
            return False
        self._refreshing = True
        return True

    def refresh(self) -> None:
        """Read the tokens. If that fails, a request that needs them finds out when they are too old."""
        try:
            with suppress(C4BError), self._lock:
                self._read()
        finally:
            self._refreshing = False

    def _current_rows(self) -> dict[str, Any]:
        if self.stale:
            with self._lock:
                if self.stale:
                    self._read()
        return self._rows

    def _read(self) -> None:
        began = time.monotonic()
        with self._store.administering(write=False) as connection:
            exists = inspect(connection).has_table(token_table.name)
            rows = rows_of(connection) if exists else []
        self._rows = {row.id: row for row in rows}
        # deleting the rows does not make the service unprotected again
        self._unprotected = self._unprotected and not rows
        self._read_at = began
