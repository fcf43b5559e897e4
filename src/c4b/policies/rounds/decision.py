"""A decision, as an immutable value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from c4b._validate import Array
from c4b.policies.rounds import notebook_html
from c4b.policies.rounds.candidate_fields import CandidateField

if TYPE_CHECKING:
    from c4b.policies.rounds.explanation import Explanation


class Receipt(NamedTuple):
    """The position of a decision in a journal. Keep it to prove later that the entry was there."""

    seq: int
    """Number of the journal entry."""
    hash: str
    """Hash of the entry, which covers every entry before it."""


class DecisionNumbers(NamedTuple):
    """A decision's numbers in the order in which a journal keeps them."""

    bank_before: float
    bank: float
    certificate: float
    ucb: float
    radius: float


def candidate_name(labels: Sequence[str] | None, candidate: int) -> str:
    """A candidate's name for display: its label with its index, or its index alone."""
    return (
        f"candidate {candidate}" if labels is None else f"{labels[candidate]!r} (candidate {candidate})"
    )


def same_content(one: Any, other: Any) -> bool:
    """Whether two values are equal; arrays are compared by content, and NaN equals NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 (NaN)


class LeftOut(Protocol):
    """Computes the numbers that a decision left out, from the state at that moment."""

    def details(self, known: Array) -> Array:
        """The details (5, K) with every number; ``known`` holds those that the decision has."""
        ...


class DecisionFields(NamedTuple):
    """The fields of a decision."""

    id: str
    """Id of the decision, for ``observe``, ``forget``, ``executed`` and ``explain``."""
    action: int | None
    """The action to execute: an index into the candidates, or None for the baseline."""
    bank: float
    """Certified lower bound of R0 + cumulative contrast after this action; NaN without a gate."""
    certificate: float
    """Lower bound of this round's contrast for the executed action."""
    ucb: float
    """Upper confidence bound of the executed action's reward."""
    radius: float
    """Radius of the confidence set that was used."""
    bank_before: float
    """The bank before this decision was charged."""
    policy: str
    """Name of the policy that decided."""
    alarm: str | None
    """Why the data contradict the model at this moment, or None. With an alarm, earlier certificates are
    void."""
    details: Array
    """(5, K): one row for each ``CandidateField``. Numbers that the choice did not depend on may be left
    out; they are computed on first access from the state at that moment. Do not overwrite the candidates
    before that; otherwise the access raises ``InvalidInput``."""
    propensity: float | None = None
    """Probability of this action given the past, if the gate randomises; None if the choice was
    certain."""
    receipt: Receipt | None = None
    """Receipt of a deployment's decision; None without a journal."""
    labels: tuple[str, ...] | None = None
    """Names of the candidates, or None if the round had none."""
    held: str | None = None
    """Why a deployment plays the baseline regardless of the gate's choice: ``"shadow"``, ``"frozen"`` or
    ``"ramp"``. None: the gate's choice is executed."""
    proposed: int | None = None
    """The candidate that the gate chose in a round that was held; None: the baseline."""
    left_out: LeftOut | None = None
    """Computes the numbers that were left out of ``details``; None: nothing was left out."""


_RECEIPT = DecisionFields._fields.index("receipt")
_new = tuple.__new__
"""Makes a ``Decision`` of all its fields in the least time."""


class Decision(DecisionFields):
    """One decision. ``bank`` is what is certified after it; its own reward is not known yet."""

    __slots__ = ()

    @property
    def computed(self) -> Array:
        """The part of ``details`` that the choice depended on; NaN elsewhere."""
        return super().details

    @property
    def details(self) -> Array:
        """Numbers of every candidate, shape (5, K); see ``DecisionFields.details``."""
        details = self.computed
        if self.left_out is not None and np.isnan(details[CandidateField.SEPARATE]).any():
            details[:] = self.left_out.details(details)
        return details

    def recorded(self, id_: str, receipt: Receipt) -> Decision:
        """Return the decision with the id and the receipt of its journal entry."""
        return _new(Decision, (id_, *self[1:_RECEIPT], receipt, *self[_RECEIPT + 1 :]))

    @property
    def numbers(self) -> DecisionNumbers:
        """The banks, the bounds and the radius as one value."""
        _, _, bank, certificate, ucb, radius, before, *_ = self
        return _new(DecisionNumbers, (before, bank, certificate, ucb, radius))

    @property
    def is_baseline(self) -> bool:
        """Whether the action to execute is the baseline."""
        return self.action is None

    @property
    def label(self) -> str | None:
        """Name of the chosen candidate; None for the baseline, and without labels."""
        return None if self.action is None or self.labels is None else self.labels[self.action]

    def explain(self) -> Explanation:
        """Explain the choice: score, margin, admissibility and avoided penalty of each candidate."""
        from c4b.policies.rounds.explanation import Explanation  # noqa: PLC0415 (it explains decisions)

        return Explanation(self)

    def __repr__(self) -> str:
        what = "baseline" if self.action is None else candidate_name(self.labels, self.action)
        return f"Decision({self.id!r}, {what}, bank={self.bank:.4g})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook_html.decision(self)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        """Whether both decisions have the same content; NaN equals NaN."""
        if not isinstance(other, Decision):
            return False
        same_details = same_content(self.details, other.details)  # which completes them
        return same_details and all(map(same_content, self[:-1], other[:-1]))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)
