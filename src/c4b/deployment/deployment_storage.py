"""Storage of a deployment: erase contexts, archive closed entries and restore them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from c4b.deployment import archive as archives
from c4b.deployment import erasure
from c4b.deployment import limits as checks
from c4b.deployment.deployment_orders import user_name
from c4b.deployment.questions import queries
from c4b.deployment.transactions.state import State
from c4b.deployment.transactions.transactor import Transactor
from c4b.errors import InvalidInput
from c4b.journal.backend import rewritable
from c4b.journal.backend_registry import open_backend
from c4b.journal.journal import Journal


class DeploymentStorage:
    """The storage methods of ``Deployment``, as a base class."""

    _transactor: Transactor

    def erase_context(self, request_id: str) -> int:
        """Erase the context of one decision, and return the number of erased contexts.

        Use it when a person asks for erasure. The hash chain does not change; see
        :mod:`c4b.deployment.erasure`. Repeating the call is harmless.
        """
        id_ = checks.request_id("request_id", request_id)
        if id_ is None:
            raise InvalidInput("request_id", None, "must be the request id of a decision")
        self._transactor.check_usable()
        return erasure.erase_requested(self._transactor.backend, self._transactor.name, id_)

    def erase_contexts(self, before: datetime) -> int:
        """Erase the contexts of all decisions made before a time, and return their number."""
        self._transactor.check_usable()
        limit = _microseconds("before", before)
        return erasure.erase_older(self._transactor.backend, self._transactor.name, limit)

    def archive(
        self,
        path: str | Path,
        reason: str,
        before: datetime | None = None,
        by: str | None = None,
    ) -> int:
        """Move closed entries to a Parquet file and return their number; 0 if there are none.

        Entries are moved up to the oldest decision without an outcome and the oldest snapshot, and with
        ``before`` only those made before that time. Keep the file: an audit needs it. Entries that an
        earlier call wrote but that are still in the store (after an interruption), or are there again
        (after ``unarchive``), are written again: only entries that the file holds are removed.
        """
        why, who = checks.text("reason", reason), checks.text("by", user_name() if by is None else by)
        limit, target = None if before is None else _microseconds("before", before), Path(path)
        if target.exists():
            raise InvalidInput("path", str(path), "exists already; an archive is never overwritten")

        def written(journal: Journal, state: State) -> archives.Prefix | None:
            queries.summary(journal, state)
            prefix = archives.closed_prefix(journal, state, limit)
            if prefix is not None:
                archives.write(journal, prefix, target)
            return prefix

        backend = rewritable(self._transactor.backend)
        prefix = self._transactor.read(written)
        if prefix is None:
            return 0
        hash_, file = prefix.hash.hex(), target.name
        self._transactor.write(lambda commands: commands.archive(prefix.last, hash_, who, why, file))
        archives.empty(backend, self._transactor.name, prefix)
        return prefix.last - prefix.first + 1

    @staticmethod
    def unarchive(url: str, name: str, path: str | Path) -> int:
        """Restore archived entries to the store; returns their number.

        It does not open the deployment, so it also works when no snapshot is intact.
        """
        backend = open_backend(url)
        try:
            return archives.bring_back(backend, name, Path(path))
        finally:
            backend.close()


def _microseconds(argument: str, value: object) -> int:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInput(argument, value, "must be a datetime with a time zone")
    return int(value.timestamp() * 1e6)
