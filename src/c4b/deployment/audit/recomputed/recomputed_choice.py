"""The candidate that the rule of a choice plays, recomputed: docs/theory.md, section "Choice".

Scores and margins are those that a decision records; the numbers that they are compared with are
recomputed. Where rounding could decide, both choices count as right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.audit.checks.decision_checks import RecordedDecision
from c4b.deployment.audit.recomputed.recomputed_approach import Approach, nearest
from c4b.deployment.audit.recomputed.recomputed_belief import Belief
from c4b.deployment.audit.recomputed.recomputed_books import MARGIN, SCORE, Books
from c4b.deployment.audit.recomputed.recomputed_counterweight import (
    COUNTERWEIGHTS,
    NONE,
    Counterweight,
    counterweight,
)
from c4b.deployment.audit.recomputed.recomputed_dues import dues
from c4b.deployment.audit.recomputed.recomputed_hope import (
    Hope,
    check_hope,
    leeway_left,
    possible_aims,
    what_is_cheap,
    what_is_soon,
)

BANK_COMPETES = 2.0
"""``RecordedRule.competes`` where what could be better and takes nothing from the bank is tried."""


class RecordedRule(NamedTuple):
    """The array ``rule`` of the journal's first entry."""

    propose: float
    boldness: float
    thrift: float
    latches: float
    checkpoints: float
    cushion: float
    period: float = 0.0  # journals of earlier versions have no optimistic rounds,
    competes: float = 0.0  # and no baseline that competes
    trust: float = 0.0
    kept_back: float = 0.0
    by_certificate: float = 0.0
    optimism: float = 0.0
    hope: float = 0.0
    hopes_trust: float = 0.0
    reluctance: float = 0.0
    restraint: float = 0.0
    boldest: float = 0.0
    saving: float = 0.0
    persists: float = 0.0
    ambition: float = 0.0
    endures: float = 0.0
    believes: float = 0.0
    unfunded: float = 0.0
    shuffles: float = 0.0
    careful: float = 0.0
    lessons: float = 0.0
    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class RecomputedChoice:
    """The rule, and what it depends on in one round besides candidates."""

    rule: RecordedRule
    books: Books
    region: Any  # what judges: the set in float64, or in 50 digits
    belief: Belief | None  # what is believed of theta
    noise: float
    linear: bool  # equal features have one mean
    baseline_nonnegative: bool
    tolerance: float  # relative difference of two arithmetics
    scale: float  # to which it is relative in margins
    optimistic: bool  # the round is
    boldness: float  # half-widths in its scores

    def chosen(self, decision: RecordedDecision, scores: Array) -> int | None:
        """What the rule takes, given all candidates and their recomputed scores (K,)."""
        candidates, baseline = decision.arrays["candidates"], decision.played.baseline
        details = decision.arrays["details"]
        if self.rule.competes and self._competition_hangs_on_rounding(baseline):
            latched = self.rule.latches and decision.fields["alarm"] is not None
            return None if latched else decision.chosen
        if self.rule.competes >= COUNTERWEIGHTS and not self.optimistic:
            weight = self._counterweight(decision, scores)
            left_out = np.isneginf(details[SCORE]) & np.isfinite(scores)
            made, possible = decision.chosen, weight.possible
            if not weight.is_sure and possible is None:
                return made
            if possible is not None and made is not None and possible[made] and not left_out.any():
                return made  # else the rule went on, which is checked below
            if weight.candidate is not None:
                if left_out.any():
                    raise Finding(f"leaves out candidate {int(left_out.argmax())}, nothing competed")
                return weight.candidate
        chosen = self._choice(details, baseline, decision.fields["alarm"])
        if self.rule.competes and self.optimistic:
            return self._against_the_baselines_score(details, chosen, decision.chosen, baseline)
        if self.rule.competes:
            self._competition(details, candidates, baseline, chosen, scores)
        return chosen

    def _choice(self, details: Array, baseline: Array, alarm: str | None) -> int | None:
        """The candidate that the rule takes, given the recorded margins and scores."""
        if self.rule.latches and alarm is not None:
            return None
        scores = np.where(details[SCORE] < np.inf, details[SCORE], -np.inf)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        least = 0.0 if self.optimistic else self.books.least(self.rule.thrift, baseline)
        levels = [least, 0.0] if least > 0.0 else [0.0]
        for least in levels:
            fit = np.ones(len(scores), bool) if self.rule.propose else details[MARGIN] >= least
            fit &= scores > -np.inf
            if fit.any():
                best = int(np.argmax(np.where(fit, scores, -np.inf)))
                return best if details[MARGIN, best] >= 0.0 else None
        return None

    def _against_the_baselines_score(
        self, details: Array, chosen: int | None, action: int | None, baseline: Array
    ) -> int | None:
        """In an optimistic round the baseline is played if it has the highest score of all."""
        if chosen is None or self._baseline_is_unplayable(baseline):
            return chosen
        low, high = (float(bound[0]) for bound in self.books.region.bounds(baseline[None, :]))
        rival = high if self.boldness == 1.0 else 0.5 * (low + high + self.boldness * (high - low))
        if abs(details[SCORE, chosen] - rival) <= self.tolerance * (1.0 + abs(rival)):
            return action  # a tie up to rounding
        return chosen if details[SCORE, chosen] > rival else None

    def _counterweight(self, decision: RecordedDecision, recomputed: Array) -> Counterweight:
        baseline, details = decision.played.baseline, decision.arrays["details"]
        latched = self.rule.latches and decision.fields["alarm"] is not None
        if latched or self._baseline_is_unplayable(baseline):
            return NONE
        candidates, books = decision.arrays["candidates"], self.books
        near = self.tolerance * (self.scale + float(np.abs(baseline).max(initial=0.0)))
        passed_over = np.isneginf(details[SCORE])
        scores = np.where(passed_over, recomputed, details[SCORE])
        doubts = near + np.where(passed_over, self.tolerance * self.blur(candidates), 0.0)

        def promise(k: int) -> tuple[float, float]:
            one = candidates[k : k + 1]
            doubt = near + self.tolerance * float(self._sizes(one, baseline)[0])
            if self.rule.competes == COUNTERWEIGHTS:
                return float(books.promises(one, baseline, self.rule.trust)[0]), doubt
            return float(self._promises(one, baseline)[0]), doubt

        if self.rule.careful and self.belief is not None:
            view = Approach(
                self.belief, self.region, books.prefix, books.alpha, candidates, baseline, self.tolerance
            )
            dues = self._dues(candidates, baseline, scores, doubts, details[MARGIN])
            return nearest(scores, doubts, details[MARGIN], promise, view, dues, decision.chosen)
        return counterweight(
            scores,
            doubts,
            details[MARGIN],
            candidates,
            promise,
            books.baseline_margin(baseline),
            near,
            self.rule.competes == COUNTERWEIGHTS,
        )

    def _competition(
        self,
        details: Array,
        candidates: Array,
        baseline: Array,
        chosen: int | None,
        recomputed: Array,
    ) -> None:
        """A score of -inf says that the baseline promises as much and leaves as much in the bank; the
        candidate played promises or leaves more, or gives hope. ``recomputed``: scores (K,) before any
        candidate was left out."""
        scores, margins = details[SCORE], details[MARGIN]
        promises = self._promises(candidates, baseline)
        rival = self.books.baseline_margin(baseline)
        scale = self._sizes(candidates, baseline)
        near = self.tolerance * self.scale
        doubts = near + self.tolerance * scale
        least, most = self._dues(candidates, baseline, recomputed, doubts, margins)
        sure = self.books.promises(candidates, baseline, -1.0)
        hope = self._hopes(candidates, baseline, recomputed)
        gains, aims = hope.could, self._aims(hope, margins, candidates, baseline)
        pays = margins >= self._fund(baseline) + near
        pays &= gains > aims[1] + self.tolerance * scale
        short = np.where(pays, np.inf, sure)  # of surely being better, if below 0
        more = (promises > self.tolerance * scale) & (short > self.tolerance * scale)
        more |= margins > rival + most + near
        could = np.full(len(margins), -np.inf)  # how much better a candidate could be that is tried
        if BANK_COMPETES <= self.rule.competes <= COUNTERWEIGHTS:
            could = self.books.promises(candidates, baseline, 1.0)
            more |= (margins > self.books.bank + near) & (could > self.tolerance * scale)
        wrong = np.isneginf(scores) & more
        if wrong.any():
            beaten = int(wrong.argmax())
            raise Finding(
                f"leaves out candidate {beaten}, which promises or leaves more than the baseline"
            )
        if chosen is None or self.is_baseline(chosen, candidates, baseline):
            self._hope(hope, aims, details, candidates, baseline, None)
            return
        leaves_more = margins[chosen] > rival + least[chosen] - near
        if could[chosen] > -self.tolerance * scale[chosen]:
            leaves_more = leaves_more or margins[chosen] > self.books.bank - near
        unplayable = self._baseline_is_unplayable(baseline)
        low = gains[chosen] < aims[0] - self.tolerance * scale[chosen]
        dear = (low or margins[chosen] < self._fund(baseline) - near) and (
            sure[chosen] < -self.tolerance * scale[chosen]
        )
        if (
            not unplayable
            and not leaves_more
            and dear
            and promises[chosen] > self.tolerance * scale[chosen]
        ):
            raise Finding(
                f"executes candidate {chosen}, which is not surely better than the baseline and leaves "
                f"{'what is saved for a better one' if low else 'too little in the bank'}"
            )
        if not unplayable and not leaves_more and not promises[chosen] > -self.tolerance * scale[chosen]:
            tried = np.flatnonzero((margins >= 0.0) & ~np.isneginf(scores)).tolist() == [chosen]
            if not (self.rule.hope and tried and hope.better[chosen] > -self.tolerance * scale[chosen]):
                raise Finding(f"executes candidate {chosen}, which promises less than the baseline")
            if low:
                raise Finding(f"tries candidate {chosen}, which takes what is saved for a better one")
            self._hope(hope, aims, details, candidates, baseline, chosen)

    def _dues(
        self, candidates: Array, baseline: Array, scores: Array, doubts: Array, margins: Array
    ) -> tuple[Array, Array]:
        """The least and the most (K,) that candidates must leave in the bank for their expected losses.

        scores (K,) before any candidate was left out; doubts: what rounding may change in them; margins
        (K,) as recorded."""
        if not self.rule.careful or self.belief is None:
            return np.zeros(len(candidates)), np.zeros(len(candidates))
        books, gains = self.books, self.belief.view(candidates - baseline, 0.0)[0]
        saved = books.credit(baseline, books.tolerance, max(books.floor, 0.0))
        near = self.tolerance * (1.0 + float(np.abs(baseline).max(initial=0.0)))
        nears = self.tolerance * self._sizes(candidates, baseline)
        prices = np.full((2, len(candidates)), -math.inf)
        if self.rule.lessons:
            hangs = self.tolerance * (2.0 * self.scale + float(np.abs(baseline).max(initial=0.0)))
            price = books.baseline_margin(baseline) - margins
            prices = np.array([price - hangs, price + hangs]) / self.rule.lessons
        return dues(scores, doubts, gains, nears, (saved - near, saved + near), prices)

    def _fund(self, baseline: Array) -> float:
        """What a candidate must leave in the bank that is not surely better than the baseline."""
        if not self.rule.hope:
            return -math.inf
        low, high = self.region.bounds(baseline[None, :])
        wanted = (1.0 - self.rule.unfunded) * self._leeway
        return min(wanted * 0.5 * float(low[0] + high[0]), self.books.bank)

    @property
    def _leeway(self) -> float:
        return max(self.books.alpha * math.sqrt(self.books.rounds) - self.rule.reluctance, 0.0)

    def _promises(self, candidates: Array, baseline: Array) -> Array:
        """What each candidate promises above the baseline (K,), by the set and by what is believed."""
        promises = self.books.promises(candidates, baseline, self.rule.trust)
        if self.belief is None:
            return promises
        mean, spread = self.belief.view(candidates - baseline, self.rule.believes)
        return np.asarray(np.minimum(promises, mean + self.rule.trust * spread))

    def _hopes(self, candidates: Array, baseline: Array, scores: Array) -> Hope:
        """What could be better and may be tried; scores (K,) before any candidate was left out."""
        books = self.books
        low, high = self.region.bounds(np.array([books.prefix, baseline]))
        middles = 0.5 * (low + high)
        if self.belief is not None:
            middles[0] = books.prefix @ self.belief.mean
        left, size = leeway_left(middles, books.alpha, books.rounds, self.rule.hope, self.rule.reluctance)
        scale = self._sizes(candidates, baseline)
        features = np.full(len(candidates), len(baseline))
        saving, granting = self.rule.saving, float(books.rounds)
        if self.rule.persists:
            features = np.count_nonzero(candidates != baseline, axis=1)
            begun = (self.rule.reluctance / books.alpha) ** 2
            grows = self.rule.endures and granting > begun
            granting = begun * (granting / begun) ** 0.75 if grows else min(granting, begun)
        elif self._leeway > 0.0:
            saving = 0.0
        contrasts = candidates - baseline
        low, high = self.region.bounds(contrasts)
        views = [(0.5 * (low + high), 0.5 * self.rule.hopes_trust * (high - low))]
        better = gains = sum(views[0])
        if self.belief is not None:
            views.append(self.belief.view(contrasts, self.rule.believes))
            gains = sum(views[1])
            better = np.minimum(better, gains)
        size += float(self.blur(books.prefix[None, :], of_scores=False)[0])
        cheap = soon = np.ones(len(candidates), bool)
        dear = late = np.zeros(len(candidates), bool)
        most = self.rule.patience * books.rounds if self.rule.patience else math.inf
        for view in views:
            learned, near = (features, self.noise), self.tolerance * scale
            cheaper, dearer = what_is_cheap(
                middles,
                (books.alpha * books.rounds, saving * books.alpha * granting),
                view,
                learned,
                (self.tolerance * max(size, 1.0), near),
            )
            sooner, later = what_is_soon(most, view, learned, near)
            if most == math.inf:
                sooner, later = np.ones_like(sooner), np.zeros_like(later)
            cheap, dear = cheap & cheaper, dear | dearer
            soon, late = soon & (sooner | cheaper), late | (later & dearer)
        least = books.least(self.rule.thrift, baseline)
        return Hope(left, self.tolerance * size, gains, better, cheap, dear, soon, late, scores, least)

    def _aims(
        self, hope: Hope, margins: Array, candidates: Array, baseline: Array
    ) -> tuple[float, float]:
        """The least and the most, as rounding can make it, that a candidate must be able to gain to take
        from the bank."""
        if not self.rule.ambition or not len(margins) or self._baseline_is_unplayable(baseline):
            return -math.inf, -math.inf
        books = self.books
        saved = books.credit(baseline, books.tolerance, 0.0) * books.rounds
        near = self.tolerance * (1.0 + self.scale + saved + self._sizes(candidates, baseline))
        promises = self._promises(candidates, baseline)
        return possible_aims(hope, margins + saved, promises, self.rule.ambition, near)

    def _hope(
        self,
        hope: Hope,
        aims: tuple[float, float],
        details: Array,
        candidates: Array,
        baseline: Array,
        tried: int | None,
    ) -> None:
        """Which candidate is tried where none promises more than the baseline, if any is."""
        if not self.rule.hope or self._baseline_is_unplayable(baseline):
            return
        scale = self._sizes(candidates, baseline)
        promises = self._promises(candidates, baseline)
        near = self.tolerance * scale
        no = (promises > -near) | (hope.could - near <= aims[1])
        better = np.where(no, -np.inf, hope.better - near)
        bank = self.tolerance * self.scale
        passed_over = np.isneginf(details[SCORE])
        check_hope(hope._replace(better=better), details[MARGIN], passed_over, tried, bank)

    def _sizes(self, candidates: Array, baseline: Array) -> Array:
        """Sizes (K,) to which the tolerance of comparisons with the baseline is relative."""
        sizes = 1.0 + np.abs(candidates).max(axis=1, initial=0.0)
        return np.asarray(sizes + self.blur(candidates - baseline, of_scores=False))

    def blur(self, candidates: Array, of_scores: bool = True) -> Array:
        """What two arithmetics may differ in a score, or in what is expected, of each candidate (K,),
        over the tolerance."""
        if self.belief is None:
            return np.zeros(len(candidates))
        blur = self.belief.blur if of_scores else self.belief.mean_blur
        return np.asarray(blur / self.tolerance * np.linalg.norm(candidates, axis=1))

    def _baseline_is_unplayable(self, baseline: Array) -> bool:
        """Then it does not compete."""
        return not self.baseline_nonnegative and not self.books.baseline_margin(baseline) >= 0.0

    def _competition_hangs_on_rounding(self, baseline: Array) -> bool:
        """Whether the baseline's margin, which must be 0 or more if it competes, is nearly 0."""
        near = self.tolerance * self.scale
        return not self.baseline_nonnegative and abs(self.books.baseline_margin(baseline)) <= near

    def is_baseline(self, action: int | None, candidates: Array, baseline: Array) -> bool:
        """Whether a candidate is the incumbent offered again: equal features have one linear mean."""
        return action is not None and self.linear and np.array_equal(candidates[action], baseline)
