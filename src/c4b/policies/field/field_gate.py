"""What the gates of this folder share: state in named arrays, told means, one decision in four steps."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput, NoSafeAction
from c4b.policies.compiled.compiled_gate import WRONG_MEAN
from c4b.policies.gate import Arrays, Gate, GateTerms, Played
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.round import Round

UNIT = np.finfo(float).eps
REVISION = 2
"""Of the gates of this folder, see ``GateFactory.revision``."""


class Choice(NamedTuple):
    """What a gate would play, before the baseline's turn comes."""

    action: int | None  # None: the baseline
    margins: Array  # (K,) bank after each candidate; -inf: not certified
    scores: Array  # (K,)
    ucb: Array  # (K,)
    baseline_margin: float
    propensity: float | None = None


class FieldGate(Gate):
    """A gate whose money and whose knowledge are dictionaries of arrays, written in place.

    ``money`` holds ``bank`` (1,) and ``rounds`` (1,), ``told`` (2,) with the sums of told means of plays
    and of fallback rounds, and what a derived class adds. ``facts`` is changed by outcomes only. From
    revision 2 on a told mean outside of the interval that the data give it raises the alarm.
    """

    name = ""
    revalues = True

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        if terms.floor < 0.0:
            remedy = f"{self.name} needs baseline means that are known to be nonnegative"
            raise InvalidInput("baseline_nonnegative", terms.baseline_nonnegative, remedy)
        if terms.model.misspecification > 0.0:
            remedy = f"{self.name} has no allowance for it; use 0 or a policy that has"
            raise InvalidInput("misspecification", terms.model.misspecification, remedy)
        self.terms = terms
        self.money: Arrays = {
            "bank": np.array([terms.reserve]),
            "rounds": np.zeros(1),
            "told": np.zeros(2),
        }
        if revision > 1:
            self.money["refuted"] = np.zeros(1)  # 1: a told mean was
        self.facts: Arrays = {"observations": np.zeros(1)}

    # -- what a derived class says -------------------------------------------------------------

    @abstractmethod
    def choose(self, round_: Round) -> Choice:
        """What to play; changes nothing."""

    @abstractmethod
    def lower(self, row: Array) -> float:
        """Lower bound of the mean of features (d,)."""

    def certificate(self, features: Array, is_baseline: bool, round_: Round) -> float:
        """Lower bound of the round's own contrast, with the told mean."""
        mean = round_.baseline_mean
        assert mean is not None
        alpha = self.terms.alpha
        return alpha * mean if is_baseline else self.lower(features) - (1.0 - alpha) * mean

    def told_interval(self, baseline: Array) -> tuple[float, float] | None:
        """What the data say of a baseline's mean, false with probability at most delta; None: nothing."""
        return None

    @abstractmethod
    def enter(self, played: Played, sign: float) -> None:
        """Add a round to ``money``, or take it out again."""

    @abstractmethod
    def value(self) -> float:
        """The bank that all rounds so far certify."""

    # -- Gate ----------------------------------------------------------------------------------

    def decide(self, round_: Round, decision_id: str) -> Decision:
        for k, row in enumerate(round_.candidates):
            self.check_row(f"{round_.argument}candidates[{k}]", row)
        self.check_row(f"{round_.argument}baseline", round_.baseline)
        with np.errstate(over="ignore", invalid="ignore"):  # a candidate beyond all bounds is not played
            choice, before = self.choose(round_), self.bank
        action = choice.action
        if action is not None and np.array_equal(round_.candidates[action], round_.baseline):
            action = None
        details = np.full((len(CandidateField), len(round_.candidates)), np.nan)
        details[CandidateField.UCB], details[CandidateField.MARGIN] = choice.ucb, choice.margins
        details[CandidateField.SCORE] = choice.scores
        features = round_.baseline if action is None else round_.candidates[action]
        bank = choice.baseline_margin if action is None else float(choice.margins[action])
        ucb = np.nan if action is None else float(choice.ucb[action])
        if np.isnan(bank):
            raise NoSafeAction(f"round {self.rounds}: the numbers of {self.name} are lost")
        self.charge(bank, Played(features, round_.baseline, action is None, round_.baseline_mean))
        return Decision(
            decision_id,
            action,
            bank,
            self.certificate(features, action is None, round_),
            ucb,
            self.radius,
            before,
            self.name,
            self.alarm,
            details,
            choice.propensity,
        )

    def charge(self, bank: float, played: Played) -> None:
        if "refuted" in self.money and played.baseline_mean is not None:
            low, high = self.told_interval(played.baseline) or (-np.inf, np.inf)
            if not low <= played.baseline_mean <= high:
                self.money["refuted"][0] = 1.0
        self.enter(played, 1.0)
        self.money["rounds"][0] += 1.0
        self.money["bank"][0] = bank

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        self.check_row("features", executed.features)
        self.enter(decided, -1.0)
        self.enter(executed, 1.0)
        self.money["bank"][0] = self.value() if bank is None else bank

    def enter_told(self, played: Played, sign: float) -> None:
        """Add the told mean to the sum that it belongs to."""
        if played.baseline_mean is not None:
            self.money["told"][int(played.is_baseline)] += sign * played.baseline_mean

    def credit(self, mean: float = 0.0) -> float:
        """R0 + alpha sum_F mu - c (sum_S mu + ``mean``), less what rounding can amount to."""
        displaced, fallback = self.money["told"].tolist()
        alpha = self.terms.alpha
        parts = (self.terms.reserve, alpha * fallback, -(1.0 - alpha) * (displaced + mean))
        rounding = (self.money["rounds"][0] + 8.0) * UNIT
        return float(sum(parts) - rounding * sum(map(abs, parts)))

    def snapshot(self) -> Arrays:
        money = {f"ledger.{name}": array for name, array in self.money.items()}
        return money | {f"facts.{name}": array for name, array in self.facts.items()}

    def restore(self, arrays: Arrays) -> None:
        own = self.snapshot()
        if own.keys() != arrays.keys() or any(own[n].shape != arrays[n].shape for n in own):
            raise ValueError(f"it holds other arrays than a {self.name} gate")
        for name, array in own.items():
            array[...] = arrays[name]

    @property
    def alarm(self) -> str | None:
        return WRONG_MEAN if self.money.get("refuted", np.zeros(1))[0] else None

    @property
    def bank(self) -> float:
        return float(self.money["bank"][0])

    @property
    def rounds(self) -> int:
        return int(self.money["rounds"][0])

    @property
    def observations(self) -> int:
        return int(self.facts["observations"][0])


def best(scores: Array, ties: Array) -> int:
    """The index of the highest score; of equal ones, the one with the smallest ``ties``."""
    return int(np.lexsort((ties, -scores))[0])
