"""Why a decision was made, as data and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from c4b._validate import Array
from c4b.policies.rounds import notebook_html
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision, candidate_name


class CandidateReport(NamedTuple):
    """One candidate in an explanation; all numbers are in units of reward."""

    candidate: int
    ucb: float
    margin: float
    """Bank after playing the candidate; admissible when >= 0. +inf: no gate. -inf: cannot be
    certified."""
    admissible: bool
    joint: float
    separate: float
    penalty: float
    """joint - separate (10): what bounding the two rewards separately would have cost."""
    chosen: bool
    estimate: float = math.nan
    """Estimated contrast; NaN where the decision alone does not determine it: see
    ``Deployment.explain``."""
    upper: float = math.nan
    """Upper bound of the contrast (``joint`` is the lower one); NaN under the same condition."""
    reason: str = ""
    """Why an admissible candidate was not played; empty if no reason is needed or known."""
    score: float = math.nan
    """The score that ordered the admissible candidates; -inf: the baseline was preferred to it."""
    label: str | None = None
    """Name of the candidate, or None if the round had no names."""


PASSED_OVER = "promises too little compared with the baseline"
SAVES_LESS = "would leave less in the bank"
BRINGS_LESS = "brings the best-scored candidate less near"
HELD = {
    "shadow": "the deployment is in shadow mode",
    "frozen": "the deployment is frozen",
    "ramp": "the ramp's share of rounds is used up",
}
"""Texts for the values of ``Decision.held``."""
LOWER_UCB, LOWER_SCORE = "has a lower UCB", "has a lower score"


class Explanation:
    """The reasons for one decision. Iterate over it for the candidates; ``str()`` gives a table.

    Parameters
    ----------
    contrasts: (2, K), estimate and upper bound of every candidate's contrast, if they are known.
    rule: how the policy orders admissible candidates, in words.
    because: why the policy chose this action. ``c4b.policies.catalogue.choice_in_words`` writes both
        texts.
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
        """The decision and its reason in one sentence."""
        decision, total = self.decision, len(self.candidates)
        if decision.alarm:
            return f"ALARM: {decision.alarm}; certificates are void. {self._reason(decision, total)}"
        return self._reason(decision, total)

    def _reason(self, decision: Decision, total: int) -> str:
        if math.isnan(decision.bank):
            return (
                f"{decision.policy} has no gate: it played the highest UCB of {total} candidates, and "
                "nothing is certified."
            )
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
            return (
                "The baseline was played, regardless of which candidates are admissible; bank "
                f"{decision.bank:.4f}."
            )
        if not total:
            return f"The baseline was played: there were no candidates; bank {decision.bank:.4f}."
        if any(c.reason == PASSED_OVER for c in self.candidates):
            return (
                f"The baseline was played: no admissible candidate ({fit} of {total} are admissible) "
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
                f"({fit} of {total} candidates are); bank {decision.bank:.4f}."
            )
        nearest = max(self.candidates, key=lambda c: c.margin)
        return (
            f"The baseline was played: none of {total} candidates is admissible; "
            f"{candidate_name(decision.labels, nearest.candidate)} comes closest and is short by "
            f"{-nearest.margin:.4f}; bank {decision.bank:.4f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data. Numbers that are not finite become None."""

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

    def __repr__(self) -> str:
        return f"Explanation({self.summary!r})"

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
            reasons.append(SAVES_LESS if margin < margins[played] else BRINGS_LESS)
        else:
            reasons.append(LOWER_UCB if by_ucb else LOWER_SCORE)
    return reasons
