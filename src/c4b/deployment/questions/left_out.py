"""What a decision's entry leaves out, recomputed from the state of that moment.

A choice depends on the margins of a few candidates, and only these are on record. For the others the
journal is followed from the newest snapshot before the decision, or from its beginning, and the round is
decided again with every margin.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from c4b.deployment.configuration import Configuration
from c4b.deployment.questions.views import Record
from c4b.deployment.transactions import snapshot
from c4b.deployment.transactions.state import State
from c4b.errors import EntryArchived
from c4b.journal.backend import JournalBackend
from c4b.journal.journal import Journal
from c4b.journal.seal import Sealer
from c4b.policies.catalogue import choice_in_words
from c4b.policies.compiled.compiled_gate import UPPER, CompiledGate
from c4b.policies.rounds.round import Round

PAGE = 1000
"""Entries read in one transaction: to recompute an old decision may take long."""


def completed(
    record: Record, backend: JournalBackend, configuration: Configuration, sealer: Sealer | None
) -> Record:
    """``record`` with the numbers of every candidate.

    Where entries before the decision were archived, only the candidates that the choice depended on are
    shown.
    """
    made = record.decision
    assert record.evaluated is not None
    assert made.receipt is not None
    assert record.contrasts is not None
    try:
        state = _state_before(made.receipt.seq, backend, configuration, sealer)
    except EntryArchived:
        return replace(record, kept=record.evaluated)
    gate = state.gate
    assert isinstance(gate, CompiledGate)
    gate.leaves_out_margins = False
    round_ = Round(record.candidates, record.baseline, record.baseline_mean)
    above = gate.explanation(round_)[UPPER]
    found, known = gate.decide(round_, made.id).computed, made.computed
    made = made._replace(details=np.where(np.isnan(known), found, known), left_out=None)
    because = record.because
    if state.summary is not None:
        first = state.summary.first_play is None
        model = configuration.model
        because = choice_in_words.because(made, configuration.spec, model.dim, first, model.confidence)
    contrasts = np.stack([record.contrasts[0], above])
    return replace(record, decision=made, contrasts=contrasts, because=because, evaluated=None)


def _state_before(
    seq: int, backend: JournalBackend, configuration: Configuration, sealer: Sealer | None
) -> State:
    """The state before entry ``seq``; nobody waits meanwhile."""
    state: State | None = None
    while state is None or state.seq < seq - 1:
        with backend.reading(configuration.name) as transaction:
            journal = Journal(transaction, sealer)
            if state is None:
                state = snapshot.newest(journal, configuration, before=seq)
            left = min(seq - 1 - state.seq, PAGE)
            state.replay(islice(journal.tail(state.seq, state.hash), left))
    return state
