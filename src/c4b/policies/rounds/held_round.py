"""A round in which the baseline is played whatever the gate chooses.

The gate decides as always, so that its choice can be shown. If that is a candidate, the decision is taken
back, and the gate decides once more with no candidates at all: that is the same gate on a smaller round,
so whatever it promises holds.
"""

from __future__ import annotations

from c4b.policies.gate import Gate
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.gate_answer import answered
from c4b.policies.rounds.round import Round


def decide_for_baseline(gate: Gate, round_: Round, decision_id: str, reason: str) -> Decision:
    """Charge the baseline; the decision says what the gate chose among ``round_.candidates``."""
    mark = gate.mark()
    chosen = answered(gate, round_, decision_id)
    made = chosen
    if chosen.action is not None:
        gate.undo(mark)
        made = answered(gate, _without_candidates(round_), decision_id)
    return made._replace(
        details=chosen.computed, left_out=chosen.left_out, held=reason, proposed=chosen.action
    )


def decide_uncharged(gate: Gate, round_: Round, decision_id: str, reason: str) -> Decision:
    """The same, and the ledger stays as it is: what the gate would do if it began now."""
    mark = gate.mark()
    made = decide_for_baseline(gate, round_, decision_id, reason)
    gate.undo(mark)
    return made._replace(bank=made.bank_before)


def _without_candidates(round_: Round) -> Round:
    items = round_.items
    if items is not None:
        items = items._replace(candidates=items.candidates[:0])
    return round_._replace(candidates=round_.candidates[:0], labels=None, items=items)
