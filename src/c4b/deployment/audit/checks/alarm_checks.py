"""Check the alarms in a journal: every alarm that was due is recorded, and every recorded alarm was due.

The journal has an entry for each alarm, right after the entry that caused it. ``recomputed_checks``
computes for every decision whether the model is refuted; here the entries are compared with that. Where
rounding decides, replay gives the answer, if its bits are those of the deployment.
"""

from __future__ import annotations

from typing import Any

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.transactions.commands import HANDED_OVER, NEGATIVE_BANK
from c4b.deployment.transactions.state import State


class AlarmChecks:
    """Follows the entries of one journal; raises ``Finding``.

    of_model: whether the alarms of decisions are recomputed. A gate in plain Python may give any.
    """

    def __init__(self, of_model: bool) -> None:
        self._of_model = of_model
        self._due: str | None = None
        """What the next entry must record."""
        self._doubted: str | None = None
        """What was recorded although replay does not show it. The next decision must."""
        self._last = ""

    def take(self, kind: str, fields: dict[str, Any], arrays: dict[str, Array], state: State) -> None:
        """The next entry; ``state`` is the replayed one before it."""
        due, self._due, self._last = self._due, None, kind
        if kind == "alarm":
            self._recorded(fields["reason"], fields["source"], due, state)
        elif due is not None:
            raise Finding(f"follows what gives the alarm {due!r}, and is not that alarm")
        elif kind == "executed":
            before, after = arrays["numbers"]
            succession = state.rollout.succession
            handed = 0.0 if succession is None else succession.handed
            least = handed + state.gate.counts_on if handed else 0.0
            if before >= least > after:
                self._due = NEGATIVE_BANK if handed == 0.0 else HANDED_OVER
        elif kind == "decided" and self._of_model:
            alarm: str | None = fields["alarm"]
            doubted, self._doubted = self._doubted, None
            if doubted is not None and alarm is None:
                raise Finding(f"follows the alarm {doubted!r}, and does not have it")
            if alarm != state.model_alarm and fields.get("held") != "shadow":
                self._due = alarm  # in shadow a told mean contradicts its own round only

    def _recorded(self, reason: object, source: object, due: str | None, state: State) -> None:
        if not isinstance(reason, str):
            raise Finding("gives no reason")
        if source == "ledger":
            if reason != due:
                raise Finding(f"gives the alarm {reason!r} without a reason")
        elif source != "model":
            raise Finding(f"gives an alarm of {source!r}")
        elif self._of_model:
            replayed = state.gate.alarm
            if replayed not in (None, reason):
                raise Finding(f"gives the alarm {reason!r}; what is before it gives {replayed!r}")
            self._doubted = reason if replayed is None else None

    def replayed(self, kind: str, fields: dict[str, Any], state: State) -> None:
        """The entry was replayed to ``state`` from a set of the same bits as the recorded one."""
        if self._of_model and kind == "decided" and fields.get("held") != "shadow":
            recorded, replayed = fields["alarm"], state.gate.alarm
            if recorded != replayed:
                raise Finding(f"says {recorded!r} of the model, replayed {replayed!r}")

    def finish(self, state: State) -> None:
        """There are no more entries."""
        due = self._due
        if self._of_model and self._last in ("learned", "observed", "forgotten"):
            alarm = state.gate.alarm
            due = alarm if alarm != state.model_alarm else None
        if due is not None:
            raise Finding(f"is missing: the alarm {due!r}")
