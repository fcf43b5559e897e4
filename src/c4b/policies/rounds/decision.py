"""What was decided, frozen at the moment of the decision."""

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
    """Where a decision is in a journal: whoever keeps it can show later that it was there."""

    seq: int
    """Number of the journal's entry."""
    hash: str
    """Its hash, which covers every entry before it."""


class DecisionNumbers(NamedTuple):
    """A decision's numbers in the order in which a journal keeps them."""

    bank_before: float
    bank: float
    certificate: float
    ucb: float
    radius: float


def candidate_name(labels: Sequence[str] | None, candidate: int) -> str:
    """A candidate as people call it: its label with its index, or its index alone."""
    return (
        f"candidate {candidate}" if labels is None else f"{labels[candidate]!r} (candidate {candidate})"
    )


def same_content(one: Any, other: Any) -> bool:
    """Whether two values are equal, also where they are arrays, or NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 (NaN)


class LeftOut(Protocol):
    """What a decision's numbers can be completed from: the state of that moment."""

    def details(self, known: Array) -> Array:
        """(5, K) with every number; ``known`` is what the decision has of it."""
        ...


class DecisionFields(NamedTuple):
    """What a decision consists of."""

    id: str
    """Names the decision: give it to ``observe``, ``forget``, ``executed`` and ``explain``."""
    action: int | None
    """Index into the candidates, or None for the baseline: what to execute."""
    bank: float
    """Certified lower bound of R0 + cumulative contrast once this is executed; NaN without a gate."""
    certificate: float
    """Lower bound of this round's contrast for the executed action."""
    ucb: float
    """Optimistic reward of the executed action."""
    radius: float
    """Radius of the confidence set that was used."""
    bank_before: float
    """The bank before this decision was charged."""
    policy: str
    """Name of the policy that decided."""
    alarm: str | None
    """What speaks against the model at this moment; earlier certificates are void then."""
    details: Array
    """(5, K): one row for each ``CandidateField``. Numbers that the choice did not depend on may have
    been left out; they are computed when somebody asks for them, from the state of that moment. The
    candidates must not have been overwritten until then; else ``InvalidInput`` says so."""
    propensity: float | None = None
    """Probability of this action given the past, of a gate that randomises; None: it was certain."""
    receipt: Receipt | None = None
    """Of a deployment's decision; None without a journal."""
    labels: tuple[str, ...] | None = None
    """Names of the candidates, if the round had some."""
    held: str | None = None
    """Why a deployment plays the baseline whatever the gate chose: ``"shadow"``, ``"frozen"`` or
    ``"ramp"``; None: it does what the gate chose."""
    proposed: int | None = None
    """The candidate that the gate chose in a round that was held; None: the baseline."""
    left_out: LeftOut | None = None
    """Computes what was left out of ``details``; None: nothing was."""


_RECEIPT = DecisionFields._fields.index("receipt")
_new = tuple.__new__
"""Makes a ``Decision`` of all its fields in the least time."""


class Decision(DecisionFields):
    """One decision. ``bank`` is what is certified after it; no reward has been seen yet."""

    __slots__ = ()

    @property
    def computed(self) -> Array:
        """``details`` as far as the choice depended on them, NaN elsewhere."""
        return super().details

    @property
    def details(self) -> Array:
        """(5, K): see ``DecisionFields.details``."""
        details = self.computed
        if self.left_out is not None and np.isnan(details[CandidateField.SEPARATE]).any():
            details[:] = self.left_out.details(details)
        return details

    def recorded(self, id_: str, receipt: Receipt) -> Decision:
        """The same with the id and the receipt that its entry in a journal gave it."""
        return _new(Decision, (id_, *self[1:_RECEIPT], receipt, *self[_RECEIPT + 1 :]))

    @property
    def numbers(self) -> DecisionNumbers:
        """Banks, bounds and radius by themselves."""
        return DecisionNumbers(self.bank_before, self.bank, self.certificate, self.ucb, self.radius)

    @property
    def is_baseline(self) -> bool:
        """Whether the incumbent's own action is to be executed."""
        return self.action is None

    @property
    def label(self) -> str | None:
        """Name of the candidate that was chosen; None for the baseline and without labels."""
        return None if self.action is None or self.labels is None else self.labels[self.action]

    def explain(self) -> Explanation:
        """Why: every candidate's score, margin, admissibility and the penalty that was avoided."""
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
        """Whether both say the same; a number that is none equals another one."""
        if not isinstance(other, Decision):
            return False
        same_details = same_content(self.details, other.details)  # which completes them
        return same_details and all(map(same_content, self[:-1], other[:-1]))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)
