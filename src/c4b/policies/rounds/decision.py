"""What was decided and why, frozen at the moment of the decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from c4b._validate import Array
from c4b.policies.rounds import notebook_html
from c4b.policies.rounds.candidate_fields import CandidateField


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


def same_content(one: object, other: object) -> bool:
    """Whether two values are equal, also where they are arrays, or NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)  # type: ignore[arg-type]
    return one == other or (one != one and other != other)  # noqa: PLR0124 (NaN)


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


class CandidateReport(NamedTuple):
    """One line of an explanation; all numbers in units of reward."""

    candidate: int
    ucb: float
    margin: float
    """Bank after playing it; admissible when >= 0. +inf: no gate. -inf: cannot be certified."""
    admissible: bool
    joint: float
    separate: float
    penalty: float
    """joint - separate (10): what bounding the two rewards apart would have cost."""
    chosen: bool
    estimate: float = math.nan
    """Estimated contrast; NaN where the decision alone does not tell: see ``Deployment.explain``."""
    upper: float = math.nan
    """Upper bound of the contrast, of which ``joint`` is the lower one; NaN likewise."""
    reason: str = ""
    """Why it was not played although it is admissible; empty where that needs no reason or is unknown."""
    score: float = math.nan
    """What ordered the admissible candidates; -inf: it was passed over for the baseline."""
    label: str | None = None
    """Its name, if the round had names."""


PASSED_OVER = "promises too little beside the baseline"
SAVES_LESS = "would leave less in the bank"
HELD = {
    "shadow": "the deployment is in shadow mode",
    "frozen": "the deployment is frozen",
    "ramp": "the ramp's share of rounds is used up",
}
"""Reasons of ``Decision.held``, as they are shown."""
LOWER_UCB, LOWER_SCORE = "has a lower UCB", "has a lower score"


class Explanation:
    """The reasons for one decision: iterate for the candidates, ``str()`` for a table.

    contrasts: (2, K), estimate and upper bound of every candidate's contrast, if they are known.
    rule: how the policy orders admissible candidates, in words; because: why it chose this one.
    ``c4b.policies.catalogue.choice_in_words`` writes both.
    """

    def __init__(
        self, decision: Decision, contrasts: Array | None = None, rule: str = "", because: str = ""
    ) -> None:
        self.decision, self.rule, self.because = decision, rule, because
        unknown = [(math.nan, math.nan)] * decision.details.shape[1]
        known = unknown if contrasts is None else contrasts.T.tolist()
        reasons = _reasons(decision)
        self.candidates = [
            CandidateReport(
                k,
                ucb,
                margin,
                margin >= 0.0,
                joint,
                separate,
                joint - separate,
                k == decision.action,
                known[k][0],
                known[k][1],
                reasons[k],
                score,
                None if decision.labels is None else decision.labels[k],
            )
            for k, (ucb, margin, joint, separate, score) in enumerate(decision.details.T.tolist())
        ]

    @property
    def summary(self) -> str:
        """One sentence."""
        decision, total = self.decision, len(self.candidates)
        if decision.alarm:
            return f"ALARM: {decision.alarm}; certificates are void. {self._reason(decision, total)}"
        return self._reason(decision, total)

    def _reason(self, decision: Decision, total: int) -> str:
        if math.isnan(decision.bank):
            return f"{decision.policy} has no gate: highest UCB of {total} candidates; nothing certified."
        fit = sum(c.admissible for c in self.candidates)
        if decision.held is not None:
            why = HELD.get(decision.held, decision.held)
            chosen = "the baseline"
            if decision.proposed is not None:
                chosen = candidate_name(decision.labels, decision.proposed)
            return (
                f"The baseline was played: {why}. The gate chose {chosen} "
                f"({fit} of {total} candidates are admissible); bank {decision.bank:.4f}."
            )
        if decision.action is not None:
            name = candidate_name(decision.labels, decision.action)
            return (
                f"{name[0].upper()}{name[1:]} was played: admissible ({fit} of {total} were), "
                f"bank {decision.bank_before:.4f} -> {decision.bank:.4f}."
            )
        if decision.alarm:
            return f"The baseline was played, whatever was admissible; bank {decision.bank:.4f}."
        if not total:
            return f"The baseline was played: there were no candidates; bank {decision.bank:.4f}."
        if any(c.reason == PASSED_OVER for c in self.candidates):
            return (
                f"The baseline was played: no candidate that is admissible ({fit} of {total} are) "
                f"promises more, or enough for what it takes from the bank; bank "
                f"{decision.bank:.4f}."
            )
        if any(c.reason == LOWER_UCB for c in self.candidates):
            return (
                f"The baseline was played: it has the highest UCB in an optimistic round "
                f"({fit} of {total} candidates are admissible); bank {decision.bank:.4f}."
            )
        if fit:
            return (
                f"The baseline was played: the highest-UCB proposal is not admissible "
                f"({fit} of {total} others are); bank {decision.bank:.4f}."
            )
        nearest = max(self.candidates, key=lambda c: c.margin)
        return (
            f"The baseline was played: none of {total} candidates is admissible; "
            f"{candidate_name(decision.labels, nearest.candidate)} came nearest and lacks "
            f"{-nearest.margin:.4f}; bank {decision.bank:.4f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data; numbers that are not finite become None."""

        def plain(value: Any) -> Any:
            return None if isinstance(value, float) and not math.isfinite(value) else value

        decision = self.decision
        return {
            "id": decision.id,
            "policy": decision.policy,
            "action": decision.action,
            "bank_before": plain(decision.bank_before),
            "bank": plain(decision.bank),
            "certificate": plain(decision.certificate),
            "ucb": plain(decision.ucb),
            "radius": plain(decision.radius),
            "alarm": decision.alarm,
            **({} if decision.label is None else {"label": decision.label}),
            **({} if decision.propensity is None else {"propensity": decision.propensity}),
            **({} if decision.receipt is None else {"receipt": decision.receipt._asdict()}),
            **({} if decision.held is None else {"held": decision.held, "proposed": decision.proposed}),
            "summary": self.summary,
            "rule": self.rule,
            "because": self.because,
            "candidates": [
                {field: plain(value) for field, value in candidate._asdict().items()}
                for candidate in self.candidates
            ],
        }

    def __iter__(self) -> Iterator[CandidateReport]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __str__(self) -> str:
        lines = [line for line in (self.summary, self.because, self.rule) if line]
        if self.candidates:
            numbers = "   #       ucb    margin  admissible     joint  separate  penalty avoided"
            lines.append(f"{numbers}  not played because")
        for c in self.candidates:
            verdict = "yes" if c.admissible else "no"
            mark = "*" if c.chosen else " "
            line = (
                f"{mark}{c.candidate:3d} {c.ucb:9.4f} {c.margin:9.4f}  {verdict:>10} "
                f"{c.joint:9.4f} {c.separate:9.4f}  {c.penalty:15.4f}  {c.reason}"
            )
            line += "" if c.label is None else f"  {c.label!r}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notebook_html.explanation(self)


def _reasons(decision: Decision) -> list[str]:
    """Why each admissible candidate was not played, from the recorded scores and margins.

    A score of -inf says that it was passed over for the baseline. In a round that scores by the UCB alone
    the two rows are equal.
    """
    details = decision.details
    played = decision.action if decision.held is None else decision.proposed
    scores, ucbs, margins = (
        details[row].tolist() for row in (CandidateField.SCORE, CandidateField.UCB, CandidateField.MARGIN)
    )
    if decision.alarm or math.isnan(decision.bank) or decision.propensity is not None:
        return [""] * len(scores)
    by_ucb = all(s == u for s, u in zip(scores, ucbs, strict=True) if math.isfinite(s))
    admissible = [u for u, margin in zip(ucbs, margins, strict=True) if margin >= 0.0]
    ucb_to_beat = max(admissible, default=math.inf)
    reasons = []
    for k, (score, margin) in enumerate(zip(scores, margins, strict=True)):
        if k == played or not margin >= 0.0:
            reasons.append("")
        elif score == -math.inf:
            reasons.append(PASSED_OVER)
        elif math.isnan(score):
            reasons.append("")
        elif played is None:
            reasons.append(LOWER_UCB if by_ucb and ucb_to_beat < decision.ucb else "")
        elif score > scores[played]:
            reasons.append(SAVES_LESS if margin < margins[played] else "")
        else:
            reasons.append(LOWER_UCB if by_ucb else LOWER_SCORE)
    return reasons
