"""The choices that a set of the fast path makes from the data, followed row by row.

Every allowed choice gives a set that holds ((B) and (M) of docs/theory.md); the choice decides tightness
only. So an audit takes the choice from the fast path, checks that it is allowed, and recomputes the set
that it gives. The norm ball holds in any case, so the audit also takes from the fast path whether the
ball is all that is left.
"""

from __future__ import annotations

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import Choice
from c4b.deployment.configuration import Configuration
from c4b.evidence import Evidence
from c4b.evidence.ellipsoids import views
from c4b.evidence.sets.bounded_parts.learned_statistics import SCALE, learned_of
from c4b.evidence.sets.several_ridges_parts.mix_choice import choice_of
from c4b.policies.compiled.compiled_gate import CompiledGate


def replayed_choice(configuration: Configuration) -> ReplayedChoice | None:
    """Before any data; None without a compiled set."""
    gate = configuration.run().gate
    return ReplayedChoice(gate.evidence) if isinstance(gate, CompiledGate) else None


class ReplayedChoice:
    """``recompute.SetChoice`` by an ``Evidence`` without data."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def learn(self, features: Array, rewards: Array) -> None:
        self._evidence.learn(features, rewards)

    def absorb(self, x: Array, y: float) -> None:
        self._evidence.absorber(self._evidence.flat, x, y)

    def ridges(self) -> Choice:
        return Choice(*choice_of(self._extra())[3:5])

    def scale(self) -> int:
        return int(learned_of(self._extra(), self._evidence.model.dim).sums[SCALE])

    @property
    def is_lost(self) -> bool:
        return bool(np.isinf(views(self._evidence.flat)[0].reach).all())

    def _extra(self) -> Array:
        return views(self._evidence.flat)[1].extra
