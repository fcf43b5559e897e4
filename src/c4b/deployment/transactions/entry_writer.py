"""The entries of one transaction: each goes into the state's chain, as the configuration says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from c4b._validate import Array
from c4b.deployment.transactions.journal_clock import JournalTime
from c4b.deployment.transactions.snapshot import ATTESTED
from c4b.deployment.transactions.state import AHEAD, State
from c4b.errors import C4BError, KeyMissing
from c4b.journal import entries as kinds
from c4b.journal import envelope, seal
from c4b.journal.backend import StoredSnapshot
from c4b.journal.entries import Entry, pack
from c4b.journal.journal import Journal
from c4b.journal.seal import Sealer

_new = tuple.__new__
"""Makes an ``Entry`` of all its fields in the least time."""


class JournalNeeded(C4BError):
    """The answer is in the journal, which was not opened."""


class EntryWriter:
    """Makes entries of a state that is up to date. It stores nothing: ``entries`` are to be appended."""

    def __init__(
        self,
        state: State,
        journal: Journal | None,
        time: JournalTime,
        snapshot: StoredSnapshot | None = None,
        sealer: Sealer | None = None,
    ) -> None:
        """Without a journal, a command that must look something up raises ``JournalNeeded``.

        snapshot: of the state as it is now, if one is due. The first entry attests it.
        """
        self.state = state
        self.snapshot = snapshot
        self.at, self.ahead = max(time.now, state.at), time.ahead
        self.entries: list[Entry] = []
        self.changed = False
        """Whether the state was changed so that ``take_back`` cannot restore it."""
        self._journal = journal
        self._sealer = sealer

    @property
    def journal(self) -> Journal:
        if self._journal is None:
            raise JournalNeeded
        return self._journal

    def _append(
        self,
        kind: str,
        fields: Mapping[str, Any],
        arrays: Mapping[str, Array],
        about: int | None = None,
        request_id: str | None = None,
    ) -> Entry:
        state = self.state
        if self.snapshot is not None and not self.entries and state.configuration.attests_snapshots:
            fields = {**fields, ATTESTED: self.snapshot.digest.hex()}
        if self.ahead != state.ahead:
            fields = {**fields, AHEAD: self.ahead}
            state.ahead = self.ahead
        configuration, sealer = state.configuration, self._sealer
        if configuration.key is not None and sealer is None:
            raise KeyMissing(
                f"{configuration.name!r} is sealed with the key {configuration.key}, which "
                f"is not known here; nothing was written. Give it in {seal.KEY} or {seal.KEY_FILE}"
            )
        payload = self._payload(fields, arrays)
        entry = _new(Entry, (state.seq + 1, kind, about, request_id, self.at, payload, state.hash))
        if sealer is not None and configuration.key is not None:
            entry = sealer.sealed(entry)
        state.advance(entry)
        self.entries.append(entry)
        return entry

    def _payload(self, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
        """As the configuration says: with room for a seal, compressed, with the context beside it."""
        configuration, beside, payload = self.state.configuration, b"", None
        if configuration.erases_contexts:
            fields, beside = envelope.set_aside(fields)
        if configuration.compress:
            payload = envelope.compressed(pack(fields, arrays), configuration.key is not None)
        if payload is None:
            if configuration.key is not None:
                arrays = {**arrays, seal.SEAL: seal.BLANK}
            payload = pack(fields, arrays)
        return envelope.enclosed(payload, beside) if beside else payload

    def _knowledge(self) -> dict[str, Any]:
        return {"set": self.state.fingerprint(), "observations": self.state.observations}

    def _record_model_alarm(self) -> None:
        """Record what has come to speak against the model; see ``Gate.alarm``."""
        alarm = self.state.gate.alarm
        if alarm is not None and alarm != self.state.model_alarm:
            self.state.model_alarm = alarm
            self._record_alarm(alarm, "model")

    def _record_alarm(self, reason: str, source: str) -> None:
        self.state.raise_alarm(self.state.seq + 1, self.at, reason, source)
        self._append(kinds.ALARM, {"reason": reason, "source": source}, {})
