"""Recompute the decisions of compiled policies from raw features and rewards, by independent arithmetic.

``recompute`` factorises every confidence set afresh with NumPy; for a sample of decisions ``exact``
computes the set in 50 digits. The executed action must be the one that the recorded margins and scores
choose. Margins and scores that are not recorded must not lead to another choice.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import LARGEST, Array
from c4b.deployment.audit.audit_report import Finding, Report
from c4b.deployment.audit.checks.decision_checks import (
    EVERYTHING,
    RecordedDecision,
    Share,
    described,
    same,
)
from c4b.deployment.audit.recomputed.recompute import TOLERANCE, RecomputedSet
from c4b.deployment.audit.recomputed.recomputed_belief import belief_of
from c4b.deployment.audit.recomputed.recomputed_books import JOINT, MARGIN, SCORE, SEPARATE, UCB, Books
from c4b.deployment.audit.recomputed.recomputed_choice import RecomputedChoice, RecordedRule
from c4b.policies.gate import Played
from c4b.policies.rounds.candidate_fields import CandidateField

LEAST_TOLERANCE, ROUNDINGS = 1e-10, 20.0
"""Of two arithmetics: so many times the rounding error of the set at hand, and at least the former; since
journals have known it."""
SUM = 8.0 * np.finfo(np.float64).eps
"""Relative rounding error of a sum of three numbers, generously."""
TIE = 2.0**-36
"""Relative difference that the order of equal scores may make in them, where the rule shuffles them."""
SMALL = 1e-4
"""Share of a candidate's own bound: a smaller difference to the baseline counts as so large."""
ALLOWANCE = 1e-3
"""Largest difference in the safe direction where rounding may be visible; bounds allow for rounding."""
ALLOWANCES = 4.0
"""The same where allowances are known: so many times the rounding error."""
CANCELLED, VISIBLE = 1e-10, 1e3
"""The same where only updates of an inverse have cancelled digits, times their leverage, if that is so
large."""


class Judge(NamedTuple):
    """What a decision is compared with, and how closely."""

    region: Any
    """The set in float64, or in 50 digits."""
    tolerance: float
    """Largest relative difference of a number that is better than recomputed."""
    allowance: float
    """The same of one that is worse: bounds allow for rounding."""
    of_scores: float
    """The same of a score, which is no bound and has no safe direction."""
    of_choices: bool = True
    """Whether the choice is judged, too."""


class RecomputedChecks:
    """``DecisionChecks`` by independent arithmetic.

    every: one decision of so many in 50 digits; 0: none. share: the decisions to recompute.
    """

    level = "recomputed"

    def __init__(
        self,
        fields: dict[str, Any],
        arrays: dict[str, Array],
        report: Report,
        every: int,
        share: Share = EVERYTHING,
    ) -> None:
        self.report = report
        self.every = every
        self.share = share
        self.baseline_nonnegative: bool = fields["baseline_nonnegative"]  # a floor says the same
        composition = fields["composition"]
        self.model, self.ridges = fields["model"], arrays["ridges"]
        self.is_exact: bool = fields.get("ids_hold_hashes", False)
        """Whether every decision was made by arithmetic whose rounding error is known."""
        if composition.get("earned", "none") != "none":  # the other half is for the rewards of plays
            self.model = {**self.model, "delta": self.model["delta"] / 2.0}
        self.learns_plays_only = composition.get("learns", "all") == "plays"
        self.rule = RecordedRule(*arrays["rule"].tolist())
        self.set = RecomputedSet(self.model, self.ridges, arrays["alarms"])
        self.books = Books(fields, arrays["rule"], self.set)
        self.judge = Judge(self.set, 0.0, 0.0, 0.0)
        self.understates = False
        """Whether the last decision calls something -inf that is recomputed as a finite number."""
        if every:
            from c4b.deployment.audit.recomputed.exact import Sums  # noqa: PLC0415 (mpmath is needed here only)

            ridge, bound = float(np.min(self.ridges)), float(self.model["norm_bound"])
            self.sums: Any = Sums(self.model["dim"], ridge, bound)

    @property
    def bank(self) -> float:
        bank: float = self.books.bank
        return bank

    @property
    def observations(self) -> int:
        count: int = self.set.count
        return count

    def learn(self, features: Array, rewards: Array) -> None:
        self.set.learn(features, rewards)
        if self.every:
            self.sums.add(features, rewards)

    def _learn_outcome(self, x: Array, y: float) -> None:
        self.set.absorb(x, y)
        if self.every:
            self.sums.add(x[None, :], np.array([y]))

    def absorb(self, played: Played, reward: float | tuple[float, ...], charged: bool) -> None:
        count = 1 if played.items is None else len(played.items)
        if not (self.learns_plays_only and played.is_baseline):
            if isinstance(reward, tuple):
                assert played.items is not None
                for x, y in zip(played.items, reward, strict=True):
                    self._learn_outcome(x, y)
            else:  # one outcome of n items has the noise of sqrt(n) of them
                self._learn_outcome(played.features / np.sqrt(count), reward / np.sqrt(count))
        if not played.is_baseline:
            self.books.earn(played.features, float(np.sum(reward)), count)

    def decided(self, decision: RecordedDecision) -> None:
        books, self.understates = self.books, False
        if not decision.charged:
            self.books = copy.copy(books)
        if self.books.known:
            visible = (
                math.inf if self.set.is_lost else max(ROUNDINGS * self.set.rounding(), self._tolerance)
            )
            self.books.tell(decision.played.baseline, decision.played.baseline_mean, visible)
        if self.share.covers(decision):
            self._in_either_arithmetic(lambda: self._recompute(decision), decision.has_same_bits)
        if decision.charged:
            self.books.charge(decision.numbers.bank, *decision.played[:4])
        self.books = books

    def _in_either_version(self, check: Callable[[], None]) -> None:
        """A check with the norm ball in the bounds; if it fails, as the first version bounded."""
        try:
            check()
        except Finding as finding:
            self.set.within_ball = self.judge.region.within_ball = False
            try:
                check()
            except Finding:
                raise finding from None
            finally:
                self.set.within_ball = self.judge.region.within_ball = True

    def _in_either_arithmetic(self, check: Callable[[], None], has_same_bits: bool = False) -> None:
        """Run a check in float64, and again in 50 digits where rounding may be visible.

        There the result in 50 digits decides. An audit without 50 digits allows as much as rounding can
        change. Where features differ so much that 50 digits tell more than the deployment's float64, its
        float64 numbers decide about the choice. Where the set is lost, replay decides about the choice,
        if it ``has_same_bits``.
        """
        near, allowance = self._two_arithmetics, self._allowance
        self.judge = Judge(self.set, near, allowance, max(near, allowance))
        try:
            self._in_either_version(check)
        except Finding:
            if not self.set.is_rough:
                raise
            rounding, wide = self.set.rounding(), bool(self.every) and self.sums.is_wide
            judges = not (has_same_bits and self._left_to_replay and self.set.is_lost)
            worse = max(ALLOWANCES * rounding, near) if self._knows_allowances else math.inf
            if wide or not self._can_be_exact:
                visible = ROUNDINGS * rounding if rounding >= 0.0 else math.inf
                self.judge = Judge(self.set, max(visible, near), worse, worse, judges)
                self._in_either_version(check)
            if self._can_be_exact:
                if self.set.variance is not None:  # rounding in R changes the multipliers
                    near = max(rounding, near) if rounding < 1.0 else math.inf
                self.judge = Judge(self._exact(), near, worse, worse, judges and not wide)
                self._in_either_version(check)

    @property
    def _knows_allowances(self) -> bool:
        """Whether what a deployment adds for rounding is no more than a few times the rounding error: in
        an eigenbasis. Elsewhere it adds up over updates."""
        return self.set.ellipsoids > 1 and self.set.rounding() < 0.1

    def needs_replay(self, decision: RecordedDecision) -> bool:
        return self.understates or (self._left_to_replay and decision.has_same_bits)

    @property
    def _left_to_replay(self) -> bool:
        """Early versions had no allowances."""
        return self.is_exact and self._allowance > 0.0

    @property
    def _can_be_exact(self) -> bool:
        """Whether 50 digits are asked for, and sums have enough of them; those of ``bounded``, which are
        weighted in float64, do not if they are wide."""
        return bool(self.every) and not (self.set.variance is not None and self.sums.is_wide)

    def _exact(self) -> Any:
        from c4b.deployment.audit.recomputed.exact import ExactSet  # noqa: PLC0415 (mpmath)

        exact = ExactSet(
            self.sums, self.set.count, self.model, self.ridges, self.set.choice, self.set.variance
        )
        exact.within_ball, exact.is_lost = self.set.within_ball, self.set.is_lost
        return exact

    def _recompute(self, decision: RecordedDecision) -> None:
        books, baseline = copy.copy(self.books), decision.played.baseline
        candidates, details = decision.arrays["candidates"], decision.arrays["details"]
        action, numbers = decision.action, decision.numbers
        schedule = (int(self.rule.period), self.rule.optimism, self.rule.reluctance)
        optimistic, boldness = books.optimistic(*schedule), self.rule.boldness
        scale = 1.0 + abs(books.bank) if books.gated else 1.0
        reach = books.reach
        books.region = self.judge.region
        if optimistic:
            restrained = books.restrained(*schedule, int(self.rule.boldest))
            boldness = max(1.0 - self.rule.restraint, boldness) if restrained else 1.0
        shown, barred = decision.arrays, _is_barred(details, candidates)
        if barred.any():
            candidates = np.where(barred[:, None], 0.0, candidates)
            decision = decision._replace(arrays={**decision.arrays, "candidates": candidates})
        recomputed = books.details(candidates, baseline, boldness, bool(self.rule.by_certificate))
        choice = self._choice((shown["candidates"], baseline), optimistic, boldness, scale, reach)
        if choice.belief is not None:
            recomputed[SCORE] = choice.belief.scores(candidates, self.rule.believes)
        recomputed[:, barred] = details[:, barred]
        lows = self.judge.region.bounds(candidates)[0]
        sizes = scale + _finite(lows)
        scales = scale + choice.blur(candidates)
        if (some := decision.evaluated) is None:
            self._bounds(details, recomputed, sizes, reach, (MARGIN, JOINT, SEPARATE))
            self._scores(choice, details, recomputed, scales, lows)
        else:
            self._bounds(details[:, some], recomputed[:, some], sizes[some], reach, (MARGIN, JOINT))
            self._scores(choice, details[:, some], recomputed[:, some], scales[some], lows[some])
            others = choice.scale + choice.blur(candidates)
            details = self._with_others(details, recomputed, others, some)
            decision = decision._replace(arrays={**decision.arrays, "details": details})
        if not self.set.is_lost:
            self._radius("radius", numbers.radius, self.judge.region.radius)
        if "estimate" in shown and not self.set.is_rough:
            self._explanation(shown)
        chosen = decision.chosen
        self._refutation(decision.fields["alarm"])
        if not self.judge.of_choices:
            pass
        elif decision.complete:
            chosen = choice.chosen(decision, recomputed[SCORE])
        elif self.rule.latches and decision.fields["alarm"] is not None and chosen is not None:
            raise Finding(f"chooses {described(chosen)} although the model is refuted")
        made = decision.chosen
        if made != chosen and not (made is None and choice.is_baseline(chosen, candidates, baseline)):
            raise Finding(f"chooses {described(made)}, its own numbers choose {described(chosen)}")
        if action is None:
            upper = self.judge.region.bounds(baseline[None, :])[1]
            far = float(_finite(upper)[0])  # beside which a lower bound may be small: centre less width
            if decision.charged:
                margin = books.baseline_margin(baseline)
                self._near("bank", numbers.bank, margin, scale + (reach + far) * (numbers.bank < margin))
            elif not same(numbers.bank, books.bank):
                raise Finding(f"charges a round in shadow: {books.bank!r} becomes {numbers.bank!r}")
            self._near("UCB of the baseline", numbers.ucb, upper, scale, larger_is_safe=True)
            credit = books.credit(baseline, books.tolerance)
            self._near(
                "certificate", numbers.certificate, credit, scale + far * (numbers.certificate < credit)
            )
            if books.gated and not self.baseline_nonnegative and not numbers.bank >= 0.0:
                raise Finding(f"falls back with bank {numbers.bank!r} on a baseline that may be negative")
        else:
            margin = details[MARGIN, action]
            if books.gated and not (margin >= 0.0 and same(numbers.bank, margin)):
                raise Finding(f"executes candidate {action} with margin {margin!r}")
            row = SEPARATE if books.charges_separately else JOINT
            if not same(numbers.ucb, details[UCB, action]):
                raise Finding("gives another UCB than it lists for its candidate")
            certificate = details[row, action] - books.price(False)
            self._near("certificate", numbers.certificate, certificate, scale)
        if decision.charged:
            self._sum(numbers.bank, numbers.certificate)
        if self._can_be_exact and decision.round % self.every == 0:
            self._exactly(decision, scale)

    def _choice(
        self,
        offered: tuple[Array, Array],
        optimistic: bool,
        boldness: float,
        scale: float,
        reach: float,
    ) -> RecomputedChoice:
        """The rule of the decision at hand; ``offered``: candidates and baseline."""
        believing = self.rule.believes and not optimistic
        return RecomputedChoice(
            self.rule,
            self.books,
            self.judge.region,
            belief_of(self.set, offered if self.rule.careful else None, self.rule.lessons > 0.0)
            if believing
            else None,
            float(self.model["noise"]),
            self.model["misspecification"] == 0.0,
            self.baseline_nonnegative,
            self._tolerance,
            scale + reach * min(1.0, TOLERANCE / self._tolerance),
            optimistic,
            boldness,
        )

    def _radius(self, what: str, recorded: float, recomputed: float) -> None:
        """It explains; bounds are checked by themselves."""
        apart = abs(recorded * recorded - recomputed * recomputed)
        if not (recorded >= 0.0 and apart <= self.set.stack().lost):
            self._near(what, recorded, recomputed, 1.0, larger_is_safe=True)

    def _bounds(
        self,
        details: Array,
        recomputed: Array,
        scale: Array,
        reach: float,
        rows: tuple[CandidateField, ...],
    ) -> None:
        self._near("UCB of candidates", details[UCB], recomputed[UCB], scale, larger_is_safe=True)
        for row in rows:
            sizes = scale + _cancelled(details[row], recomputed[row], recomputed[UCB])
            if row is MARGIN:
                sizes += np.where(details[row] < recomputed[row], reach, 0.0)
            self._near(f"{row.name.lower()} of candidates", details[row], recomputed[row], sizes)

    def _with_others(self, details: Array, recomputed: Array, scale: Array, some: list[int]) -> Array:
        """Details with recomputed numbers of all candidates but ``some``, whose own are recorded. Scores
        and margins are lowered by what two arithmetics may differ: where the rule chooses one of these
        candidates nevertheless, its margin should have been evaluated."""
        lowered = recomputed.copy()
        for row in (MARGIN, SCORE):
            lowered[row] -= self._tolerance * (scale + np.abs(recomputed[row]))
        lowered[:, some] = details[:, some]
        return lowered

    def _scores(
        self, choice: RecomputedChoice, details: Array, recomputed: Array, scale: Array, low: Array
    ) -> None:
        """A score of -inf leaves a candidate out, which only the baseline's competition may do; it is
        checked there. No score is above the UCB, unless the set is nearly empty and lower bounds are
        above upper ones."""
        if not self.judge.of_choices:
            return
        scores = details[SCORE]
        missing = ~np.isfinite(scores) & np.isfinite(recomputed[SCORE])
        missing &= ~(np.isneginf(scores) & (bool(self.rule.competes) and not choice.optimistic))
        if missing.any() and not self.set.is_rough:
            left_out = int(missing.argmax())
            raise Finding(f"gives candidate {left_out} the score {scores[left_out]!r}")
        scored = np.isfinite(scores)
        size = scale + np.abs(low) + np.abs(recomputed[UCB]) + _finite(recomputed[SCORE])
        near = np.abs(scores - recomputed[SCORE]) <= self.judge.of_scores * size
        if not near[scored].all():
            raise Finding("gives a candidate another score than its bounds do")
        size = 1.0 + np.abs(details[UCB])
        above = scores > details[UCB] + (SUM + (TIE if self.rule.shuffles else 0.0)) * size
        above &= ~(scores <= recomputed[SCORE] + self._tolerance * (size + scale))
        if above[scored].any():
            raise Finding("gives a candidate a score above its UCB")

    def _sum(self, bank: float, certificate: float) -> None:
        """A ledger that carries its bank adds the certificate to it, and nothing else."""
        books = self.books
        if books.ledger == "carry" and math.isfinite(bank):
            total = books.bank + certificate
            if abs(bank - total) > SUM * (abs(books.bank) + abs(certificate) + abs(books.price(False))):
                raise Finding(
                    f"leaves bank {bank!r}, but {books.bank!r} and its certificate {certificate!r} are "
                    f"{total!r}"
                )

    def _explanation(self, arrays: dict[str, Array]) -> None:
        """Check the numbers that only explain a decision; early versions did not record them."""
        candidates, baseline = arrays["candidates"], arrays["baseline"]
        contrasts = candidates - (1.0 - self.books.alpha) * baseline
        with np.errstate(invalid="ignore"):
            recorded, centre = contrasts @ arrays["estimate"], self.set.stack().centres[0]
            recomputed, size = contrasts @ centre, np.abs(contrasts) @ np.abs(centre)
        low, high = self.set.bounds(contrasts)
        recorded = np.where(np.isnan(recorded), -np.inf, recorded)
        self._near("estimated contrasts", recorded, recomputed, 1.0 + size + _finite(high - low))
        if "upper" in arrays:  # one that is too large explains less, but nothing wrongly
            low, above = self.set.bounds(np.vstack([baseline, candidates]))
            reach = np.maximum(_finite(low), _finite(above))  # beside which a contrast may be small
            self._near("upper bounds of contrasts", -arrays["upper"], -high, 1.0 + reach[0] + reach[1:])

    def _refutation(self, alarm: str | None) -> None:
        """The decision says of the model what the data say."""
        by_data, by_means = self.set.refuted, self.books.refuted
        surely, perhaps = by_data.surely or by_means.surely, by_data.perhaps or by_means.perhaps
        if surely if alarm is None else not perhaps:
            raise Finding(f"says {alarm!r} of the model, the data say otherwise")

    @property
    def _tolerance(self) -> float:
        """Of comparisons without a safe direction."""
        return max(self._allowance, self._two_arithmetics)

    @property
    def _allowance(self) -> float:
        """What bounds may have been made worse by, so that they hold in spite of rounding."""
        if self.set.is_rough:
            return ALLOWANCES * self.set.rounding() if self._knows_allowances else ALLOWANCE
        leverage, added = self.set.leverage, 2.0 * self.set.allowance
        cancelled = min(CANCELLED * leverage, ALLOWANCE) if leverage > VISIBLE else 0.0
        return max(cancelled, added) if added > self._two_arithmetics else cancelled

    @property
    def _two_arithmetics(self) -> float:
        """The largest difference between what is recorded and what is recomputed."""
        if not self.is_exact or self.set.variance is not None:
            return TOLERANCE
        rounding = ROUNDINGS * self.set.rounding()
        return TOLERANCE if math.isnan(rounding) else min(max(rounding, LEAST_TOLERANCE), TOLERANCE)

    def _exactly(self, decision: RecordedDecision, scale: float) -> None:
        books, action, baseline = copy.copy(self.books), decision.action, decision.played.baseline
        books.region = exact = self._exact()
        # where nothing is left of the first ellipsoid, float64 may see a point
        if not (self.set.is_lost or math.isnan(exact.radius)):
            self._radius("radius (50 digits)", decision.numbers.radius, exact.radius)
        if books.gated and decision.charged:
            margin, bank = books.baseline_margin(baseline), decision.numbers.bank
            if action is not None:
                candidate = decision.arrays["candidates"][action : action + 1]
                ((ucb, margin, *_),) = books.details(candidate, baseline, 1.0).T
                scale += float(_cancelled(np.array(bank), margin, ucb))
            elif bank < margin:
                scale += float(_finite(self.set.bounds(baseline[None, :])[1])[0])
            scale += books.reach * (bank < margin)
            self._near("bank (50 digits)", bank, margin, scale)
        self.report.precise += 1

    def executed(self, round_: int, decided: Played, executed: Played, bank: float) -> None:
        before, reach = self.books, self.books.reach

        def check() -> None:
            books = copy.copy(before)
            books.region = self.judge.region
            recomputed = books.amended(
                (decided.features, decided.is_baseline),
                (executed.features, executed.is_baseline),
                executed.baseline,
                executed.baseline_mean,
                round_,
            )
            if books.gated:
                self._near("bank", bank, recomputed, 1.0 + abs(books.bank) + reach * (bank < recomputed))
                books.bank = bank
            books.region = self.set
            self.books = books

        self._in_either_arithmetic(check)

    def _near(
        self, what: str, recorded: Any, recomputed: Any, scale: Any, larger_is_safe: bool = False
    ) -> None:
        """Recorded numbers agree with recomputed ones. A recorded -inf is safe where smaller numbers are;
        +inf or NaN never is, unless recomputed. What is recorded may have an allowance for rounding: a
        smaller number, or a larger one, is safe."""
        recorded, recomputed = np.atleast_1d(recorded), np.atleast_1d(recomputed)
        if larger_is_safe:  # no number: no bound
            recorded, recomputed = np.fmin(recorded, np.inf), np.fmin(recomputed, np.inf)
        with np.errstate(invalid="ignore"):
            error = np.abs(recorded - recomputed) / (scale + np.abs(recomputed))
        error[(recorded == recomputed) | (np.isnan(recorded) & np.isnan(recomputed))] = 0.0
        if not larger_is_safe:
            self.understates |= bool((np.isneginf(recorded) & np.isfinite(recomputed)).any())
            error[np.isneginf(recorded)] = 0.0
        safe = recorded > recomputed if larger_is_safe else recorded < recomputed
        error[safe & (error <= self.judge.allowance)] = 0.0
        worst, tolerance = float(np.max(error, initial=0.0)), self.judge.tolerance
        if not worst <= tolerance:
            k = int(np.argmax(~(error <= tolerance)))
            raise Finding(f"{what}: recorded {recorded[k]!r}, recomputed {recomputed[k]!r}")
        self.report.largest_error = max(self.report.largest_error, worst)


def _cancelled(recorded: Array, recomputed: Array, ucb: Array) -> Array:
    """How much larger numbers are in the squares whose small difference a bound is the root of, where a
    candidate is nearly like the baseline. What is recorded has an allowance for what they cancel: it
    makes a bound smaller, never larger."""
    reach = np.where(np.isfinite(ucb), np.abs(ucb), 0.0)
    small = np.maximum(np.abs(recomputed), SMALL * reach)
    squares = np.divide(reach**2, small, out=np.zeros_like(small), where=small > 0.0)
    return np.where(recorded < recomputed, reach + squares, 0.0)


def _finite(numbers: Array) -> Array:
    """Their sizes; 0 for what is no number."""
    return np.where(np.isfinite(numbers), np.abs(numbers), 0.0)


def _is_barred(details: Array, candidates: Array) -> Array:
    """Which candidates (K,) are too large to be absorbed, and were not admitted or have no finite score:
    their own numbers, which may have overflowed, decide nothing."""
    huge = ~(np.abs(candidates).max(axis=1, initial=0.0) <= LARGEST)
    return np.asarray(huge & ((details[MARGIN] < 0.0) | ~(details[SCORE] < np.inf)))
