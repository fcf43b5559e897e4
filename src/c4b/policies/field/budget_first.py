"""``budget-first`` and ``budget-first-arms`` as gates in Python: what journals of earlier versions hold.

By these names compositions with the ledger ``budget`` decide now, with the same numbers. The baseline is
played until the credit covers the learner's whole regret, then the learner for good.

``Reg_T`` bounds the regret of an optimistic learner over T rounds, the baseline among its actions, on the
event that its intervals hold. Plays then add up to at least -Reg_T + alpha sum_S mu, so a credit
R0 + alpha sum_F mu >= Reg_T covers them all: docs/theory.md, "The field". The bound needs each outcome
before the next choice; while one is open, or lost, only the baseline is played.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from c4b._validate import Array
from c4b.certificates.contrast_kernels import both
from c4b.errors import InvalidInput
from c4b.evidence import ellipsoids
from c4b.evidence.evidence import Evidence
from c4b.evidence.model import DEFAULT_CONFIDENCE
from c4b.policies.catalogue.promise import HORIZON, ONE_HOT
from c4b.policies.catalogue.registry import register_former_gate
from c4b.policies.field.arms import Arms, psi
from c4b.policies.field.field_gate import REVISION, Choice, FieldGate, best
from c4b.policies.gate import GateTerms, Played
from c4b.policies.rounds.round import BASELINE_MEAN, Round

PLAYS, INSTEAD = 0, 1
"""Entries of ``money["plays"]``: how often the learner's choice was played; what was executed instead of
decisions certifies so much."""


class BudgetFirst(FieldGate):
    """The rule, for any learner with upper bounds and a regret bound."""

    knows_instead = True

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        assert terms.horizon is not None
        self.horizon = terms.horizon
        self.money["plays"] = np.zeros(2)
        self.facts["absorbed"] = np.zeros(1)  # outcomes of decisions

    @abstractmethod
    def regret(self, rows: Array) -> float:
        """Reg_T if rows (n, d) may be played next, from what is known before."""

    @abstractmethod
    def uppers(self, rows: Array) -> Array:
        """Upper bounds (n,) of the means of rows (n, d)."""

    def choose(self, round_: Round) -> Choice:
        mean, count = round_.baseline_mean, len(round_.candidates)
        assert mean is not None
        rows = np.vstack([round_.candidates, round_.baseline])
        ucb, regret = self.uppers(rows), self.regret(rows)
        left = self._credit() - regret
        open_ = self.rounds > self.facts["absorbed"][0]
        margin = left if self.rounds < self.horizon and not open_ else -np.inf
        top = best(ucb, np.array([row.tobytes() for row in rows])) if margin >= 0.0 else count
        own = self._credit() + self.terms.alpha * mean
        if self.money["plays"][PLAYS]:
            own -= regret
        choice = None if top == count else top
        return Choice(choice, np.full(count, margin), ucb[:count], ucb[:count], own)

    def _credit(self) -> float:
        """R0 + alpha sum_F mu, and what was executed instead of decisions."""
        fallback, instead = float(self.money["told"][1]), float(self.money["plays"][INSTEAD])
        total = self.terms.reserve + self.terms.alpha * fallback
        return total + instead - (self.rounds + 8.0) * 2.3e-16 * (total + abs(instead))

    def enter(self, played: Played, sign: float) -> None:
        self.enter_told(played, sign)
        self.money["plays"][PLAYS] += 0.0 if played.is_baseline else sign

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        self.check_row("features", executed.features)
        if decided.instead and not decided.is_baseline:
            self._withdraw(decided)
        self.enter(decided, -1.0)
        if executed.is_baseline:
            self.enter(executed, 1.0)
        else:
            assert executed.baseline_mean is not None
            owed = (1.0 - self.terms.alpha) * executed.baseline_mean
            self.money["plays"][INSTEAD] += self.lower(executed.features) - owed
        self.money["bank"][0] = self.value() if bank is None else bank

    def _withdraw(self, entered: Played) -> None:
        """What was executed instead of a decision was not executed after all. It is worth at most its
        upper bound of today."""
        assert entered.baseline_mean is not None
        owed, instead = (1.0 - self.terms.alpha) * entered.baseline_mean, self.money["plays"][INSTEAD]
        most = self.terms.model.norm_bound * float(np.linalg.norm(entered.features)) * (1.0 + 1e-12)
        worth = min(float(self.uppers(entered.features[None, :])[0]), most)
        self.money["plays"][PLAYS] += 1.0  # the caller takes a round of the learner's out
        self.money["plays"][INSTEAD] -= worth - owed + 4.6e-16 * (abs(instead) + abs(worth) + abs(owed))

    def value(self) -> float:
        nothing = np.zeros((1, self.terms.model.dim))
        return self._credit() - (self.regret(nothing) if self.money["plays"][PLAYS] else 0.0)

    def absorb_outcome(self, played: Played, reward: float) -> None:
        super().absorb_outcome(played, reward)
        self.facts["absorbed"][0] += 1.0


@register_former_gate("budget-first-arms", REVISION, needs=frozenset({BASELINE_MEAN, HORIZON, ONE_HOT}))
class BudgetFirstArms(BudgetFirst, Arms):
    """The learner is UCB over the intervals of ``arms``."""

    name = "budget-first-arms"

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        self.bounded_arms = terms.model.dim

    def regret(self, rows: Array) -> float:
        """The sum of widths, at most 4 sigma sqrt(psi d T) less 2 sigma sqrt(psi) an arm, and the first
        play of each arm, which costs at most S."""
        model, arms = self.terms.model, self.bounded_arms
        growth = float(psi(np.array([float(self.horizon)]), arms, model.delta)[0])
        first = max(0.0, model.norm_bound - 2.0 * model.noise * math.sqrt(growth))
        return 4.0 * model.noise * math.sqrt(growth * arms * self.horizon) + arms * first

    def told_interval(self, baseline: Array) -> tuple[float, float]:
        low, high = self.box()
        arm = int(baseline.argmax())
        return float(low[arm]), float(high[arm])

    def uppers(self, rows: Array) -> Array:
        high: Array = self.box()[1][rows.argmax(axis=1)]
        return high


@register_former_gate("budget-first", REVISION, needs=frozenset({BASELINE_MEAN, HORIZON}))
class BudgetFirstLinear(BudgetFirst):
    """The learner is LinUCB on the paper's set."""

    name = "budget-first"

    def __init__(self, terms: GateTerms, revision: int = REVISION) -> None:
        super().__init__(terms, revision)
        if terms.model.confidence not in (None, DEFAULT_CONFIDENCE):
            remedy = f"{self.name} has its regret bound for {DEFAULT_CONFIDENCE!r} only"
            raise InvalidInput("confidence", terms.model.confidence, remedy)
        self.evidence = Evidence(terms.model)
        self.terms = terms._replace(model=self.evidence.model)
        self.facts |= {"evidence": self.evidence.flat, "log_det": np.zeros(1)}
        self.money["longest"] = np.zeros(1)

    def _longest(self, rows: Array) -> float:
        """L: the longest row that was executed or may be now."""
        return max(float(np.sqrt(np.sum(rows**2, axis=1)).max()), float(self.money["longest"][0]))

    def regret(self, rows: Array) -> float:
        """2 beta sqrt(2 T d log(1 + T L^2 / (d lambda))), beta at least S L so that widths above 1
        count as 1."""
        model, rounds, longest = self.terms.model, self.horizon, self._longest(rows)
        growth = model.dim * math.log(1.0 + rounds * longest**2 / (model.dim * model.ridge))
        spread = float(self.facts["log_det"][0]) + growth - 2.0 * math.log(model.delta)
        beta = model.noise * math.sqrt(spread) + math.sqrt(model.ridge) * model.norm_bound
        return 2.0 * max(beta, model.norm_bound * longest) * math.sqrt(2.0 * rounds * growth)

    def uppers(self, rows: Array) -> Array:
        out, nothing = np.empty((2, len(rows))), np.zeros(rows.shape[1])
        both(self.evidence.flat, np.ascontiguousarray(-rows.T), nothing, self.terms.alpha, out)
        upper: Array = -out[0]  # U(x) = -L(-x)
        return upper

    def lower(self, row: Array) -> float:
        return self.evidence.lower(row)

    def told_interval(self, baseline: Array) -> tuple[float, float]:
        return self.evidence.lower(baseline), self.evidence.upper(baseline)

    def enter(self, played: Played, sign: float) -> None:
        super().enter(played, sign)
        self.money["longest"][0] = self._longest(np.stack([played.features, played.baseline]))

    def learn(self, features: Array, rewards: Array) -> None:
        self.evidence.learn(features, rewards)
        self.facts["log_det"][0] = ellipsoids.views(self.evidence.flat)[1].tally[ellipsoids.LOG_DET]
        self.facts["observations"][0] += len(rewards)

    def absorb(self, features: Array, reward: float) -> None:
        self.evidence.absorber(self.evidence.flat, features, reward)
        self.facts["observations"][0] += 1.0

    @property
    def alarm(self) -> str | None:
        return self.evidence.alarm or super().alarm

    @property
    def radius(self) -> float:
        return self.evidence.radius

    @property
    def estimate(self) -> Array:
        return self.evidence.estimate

    def covers(self, theta: Array) -> bool:
        return self.evidence.contains(theta)
