"""Decisions of compiled policies, recomputed from raw features and rewards by independent arithmetic.

``recompute`` factorises every confidence set afresh with NumPy; for a sample of decisions ``exact`` does
it in 50 digits. What was executed must be what the recorded margins and scores choose, and what is not
recorded must not choose otherwise.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding, Report
from c4b.deployment.audit.decision_checks import EVERYTHING, RecordedDecision, Share, described, same
from c4b.deployment.audit.recompute import RecomputedSet
from c4b.deployment.audit.recomputed_belief import Belief, belief_of
from c4b.deployment.audit.recomputed_books import JOINT, MARGIN, SCORE, SEPARATE, UCB, Books
from c4b.deployment.audit.recomputed_counterweight import (
    COUNTERWEIGHTS,
    NONE,
    Counterweight,
    counterweight,
)
from c4b.deployment.audit.recomputed_hope import (
    Hope,
    check_hope,
    leeway_left,
    possible_aims,
    what_is_cheap,
)
from c4b.policies.candidate_fields import CandidateField
from c4b.policies.gate import Played

TOLERANCE = 1e-6
"""Largest difference between two arithmetics, relative to 1 + the size of the numbers involved, in
journals of early versions, and anywhere."""
LEAST_TOLERANCE, ROUNDINGS = 1e-11, 20.0
"""Since then: so many times the rounding error of the set at hand, and at least the former."""
SUM = 8.0 * np.finfo(np.float64).eps
"""Relative rounding error of a sum of three numbers, generously."""
ALLOWANCE = 1e-3
"""Largest difference in the safe direction where rounding may be visible; bounds allow for rounding."""


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
        self.region: Any = self.set
        """What judges: the set in float64, or in 50 digits."""
        self.compares_numbers = True
        self.belief: Belief | None = None
        """What the choice of the decision at hand believes."""
        if every:
            from c4b.deployment.audit.exact import Sums  # noqa: PLC0415 (mpmath is needed here only)

            self.sums: Any = Sums(self.model["dim"])

    @property
    def bank(self) -> float:
        bank: float = self.books.bank
        return bank

    @property
    def observations(self) -> int:
        count: int = self.set.count
        return count

    def learn(self, features: Array, rewards: Array) -> None:
        self.set.add(features, rewards)
        if self.every:
            self.sums.add(features, rewards)

    def absorb(self, played: Played, reward: float | tuple[float, ...], charged: bool) -> None:
        count = 1 if played.items is None else len(played.items)
        if not (self.learns_plays_only and played.is_baseline):
            if isinstance(reward, tuple):
                assert played.items is not None
                self.learn(played.items, np.array(reward))
            else:  # one outcome of n items has the noise of sqrt(n) of them
                self.learn(played.features[None, :] / np.sqrt(count), np.array([reward / np.sqrt(count)]))
        if not played.is_baseline:
            self.books.earn(played.features, float(np.sum(reward)), count)

    def decided(self, decision: RecordedDecision) -> None:
        if self.books.known:
            self.set.renew()
        books = self.books
        if not decision.charged:
            self.books = copy.copy(books)
        self.books.tell(decision.played.baseline, decision.played.baseline_mean)
        if self.share.covers(decision):
            self.set.renew()
            self._in_either_arithmetic(lambda: self._recompute(decision))
        if decision.charged:
            self.books.charge(decision.numbers.bank, *decision.played[:4])
        self.books = books

    def _in_either_version(self, check: Callable[[], None]) -> None:
        """A check with the norm ball in the bounds; if it fails, as the first version bounded."""
        try:
            check()
        except Finding as finding:
            self.set.within_ball = self.region.within_ball = False
            try:
                check()
            except Finding:
                raise finding from None
            finally:
                self.set.within_ball = self.region.within_ball = True

    def _in_either_arithmetic(self, check: Callable[[], None]) -> None:
        """A check in float64. Where rounding may be visible, 50 digits have the last word; an audit that
        does without them compares no numbers there, but still checks the choice."""
        try:
            self._in_either_version(check)
        except Finding:
            if not self.set.is_rough:
                raise
            self.region = self._exact() if self.every else self.set
            self.compares_numbers = bool(self.every)
            try:
                self._in_either_version(check)
            finally:
                self.region, self.compares_numbers = self.set, True

    def _exact(self) -> Any:
        from c4b.deployment.audit.exact import ExactSet  # noqa: PLC0415 (mpmath)

        exact = ExactSet(
            self.sums, self.set.count, self.model, self.ridges, self.set.choice, self.set.variance
        )
        exact.within_ball = self.set.within_ball
        return exact

    def _recompute(self, decision: RecordedDecision) -> None:
        books, baseline = copy.copy(self.books), decision.played.baseline
        candidates, details = decision.arrays["candidates"], decision.arrays["details"]
        action, numbers = decision.action, decision.numbers
        schedule = (int(self.rule.period), self.rule.optimism, self.rule.reluctance)
        self.optimistic = books.optimistic(*schedule)
        scale = 1.0 + abs(books.bank) if books.gated else 1.0
        books.region = self.region
        self.boldness = self.rule.boldness
        if self.optimistic:
            restrained = books.restrained(*schedule, int(self.rule.boldest))
            self.boldness = max(1.0 - self.rule.restraint, self.boldness) if restrained else 1.0
        recomputed = books.details(candidates, baseline, self.boldness, bool(self.rule.by_certificate))
        self.belief = belief_of(self.set) if self.rule.believes and not self.optimistic else None
        if self.belief is not None:
            recomputed[SCORE] = sum(self.belief.view(candidates, self.rule.believes))
        lows = self.region.bounds(candidates)[0]
        scales = scale + self._blur(candidates)
        if (some := decision.evaluated) is None:
            self._bounds(details, recomputed, scale, (MARGIN, JOINT, SEPARATE))
            self._scores(details, recomputed, scales, lows)
        else:
            self._bounds(details[:, some], recomputed[:, some], scale, (MARGIN, JOINT))
            self._scores(details[:, some], recomputed[:, some], scales[some], lows[some])
            details = self._with_others(details, recomputed, scales, some)
            decision = decision._replace(arrays={**decision.arrays, "details": details})
        self._near("radius", numbers.radius, self.region.radius, 1.0, larger_is_safe=True)
        if "estimate" in decision.arrays and self.region is self.set:
            self._explanation(decision.arrays)
        chosen = decision.chosen
        self._refutation(decision.fields["alarm"])
        if decision.complete:
            chosen = self._chosen(decision, recomputed[SCORE])
        elif self.rule.latches and decision.fields["alarm"] is not None and chosen is not None:
            raise Finding(f"chooses {described(chosen)} although the model is refuted")
        made = decision.chosen
        if made != chosen and not (made is None and self._is_baseline(chosen, candidates, baseline)):
            raise Finding(f"chooses {described(made)}, its own numbers choose {described(chosen)}")
        if action is None:
            if decision.charged:
                self._near("bank", numbers.bank, books.baseline_margin(baseline), scale)
            elif not same(numbers.bank, books.bank):
                raise Finding(f"charges a round in shadow: {books.bank!r} becomes {numbers.bank!r}")
            credit = books.credit(baseline, books.tolerance)
            self._near("certificate", numbers.certificate, credit, scale)
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
        if self.every and decision.round % self.every == 0:
            self._exactly(decision, scale)

    def _bounds(
        self, details: Array, recomputed: Array, scale: float, rows: tuple[CandidateField, ...]
    ) -> None:
        self._near("UCB of candidates", details[UCB], recomputed[UCB], scale, larger_is_safe=True)
        for row in rows:
            self._near(f"{row.name.lower()} of candidates", details[row], recomputed[row], scale)

    def _blur(self, candidates: Array) -> Array:
        """What two arithmetics may differ in what is believed of each candidate (K,), over the
        tolerance."""
        if self.belief is None:
            return np.zeros(len(candidates))
        return np.asarray(self.belief.blur / self._tolerance * np.linalg.norm(candidates, axis=1))

    def _promises(self, candidates: Array, baseline: Array) -> Array:
        """What each candidate promises above the baseline (K,), by the set and by what is believed."""
        promises = self.books.promises(candidates, baseline, self.rule.trust)
        if self.belief is None:
            return promises
        mean, spread = self.belief.view(candidates - baseline, self.rule.believes)
        return np.asarray(np.minimum(promises, mean + self.rule.trust * spread))

    def _sizes(self, candidates: Array, baseline: Array) -> Array:
        """Sizes (K,) to which the tolerance of comparisons with the baseline is relative."""
        sizes = 1.0 + np.abs(candidates).max(axis=1, initial=0.0)
        return np.asarray(sizes + self._blur(candidates - baseline))

    def _with_others(self, details: Array, recomputed: Array, scale: Array, some: list[int]) -> Array:
        """Details with recomputed numbers of all candidates but ``some``, whose own are recorded. Scores
        and margins are lowered by what two arithmetics may differ: where the rule chooses one of these
        candidates nevertheless, its margin should have been evaluated."""
        lowered = recomputed.copy()
        for row in (MARGIN, SCORE):
            lowered[row] -= self._tolerance * (scale + np.abs(recomputed[row]))
        lowered[:, some] = details[:, some]
        return lowered

    def _chosen(self, decision: RecordedDecision, scores: Array) -> int | None:
        """What the rule takes, given all candidates and their recomputed scores (K,)."""
        candidates, baseline = decision.arrays["candidates"], decision.played.baseline
        details = decision.arrays["details"]
        if self.rule.competes >= COUNTERWEIGHTS and not self.optimistic:
            weight = self._counterweight(decision, scores)
            if not weight.is_sure:
                return decision.chosen
            if weight.candidate is not None:
                left_out = np.isneginf(details[SCORE]) & np.isfinite(scores)
                if left_out.any():
                    raise Finding(f"leaves out candidate {int(left_out.argmax())}, nothing competed")
                return weight.candidate
        chosen = self._choice(details, baseline, decision.fields["alarm"])
        if self.rule.competes and self.optimistic:
            return self._against_the_baselines_score(details, chosen, decision.chosen, baseline)
        if self.rule.competes:
            self._competition(details, candidates, baseline, chosen, scores)
        return chosen

    def _counterweight(self, decision: RecordedDecision, recomputed: Array) -> Counterweight:
        baseline, details = decision.played.baseline, decision.arrays["details"]
        latched = self.rule.latches and decision.fields["alarm"] is not None
        if latched or self._baseline_is_unplayable(baseline):
            return NONE
        candidates, books = decision.arrays["candidates"], self.books
        return counterweight(
            np.where(np.isneginf(details[SCORE]), recomputed, details[SCORE]),
            details[MARGIN],
            candidates,
            lambda k: float(self._promises(candidates[k : k + 1], baseline)[0]),
            books.baseline_margin(baseline),
            self._tolerance * (1.0 + abs(books.bank) + float(np.abs(baseline).max(initial=0.0))),
            self.rule.competes == COUNTERWEIGHTS,
        )

    def _scores(self, details: Array, recomputed: Array, scale: Array, low: Array) -> None:
        """A score of -inf leaves a candidate out, which only the baseline's competition may do; it is
        checked there. A score is no bound: where rounding is visible it has no safe direction, but it is
        not above the UCB, unless the set is nearly empty and lower bounds are above upper ones."""
        scores = details[SCORE]
        missing = ~np.isfinite(scores) & np.isfinite(recomputed[SCORE])
        missing &= ~(np.isneginf(scores) & (bool(self.rule.competes) and not self.optimistic))
        if missing.any() and self.compares_numbers and self.set.has_sharp_scores:
            left_out = int(missing.argmax())
            raise Finding(f"gives candidate {left_out} the score {scores[left_out]!r}")
        scored = np.isfinite(scores)
        if not self.set.is_rough:
            self._near("score of candidates", scores[scored], recomputed[SCORE][scored], scale[scored])
            return
        if self.set.has_sharp_scores:
            size = 1.0 + np.abs(low) + np.abs(recomputed[UCB])
            if not (np.abs(scores - recomputed[SCORE]) <= TOLERANCE * size)[scored].all():
                raise Finding("gives a candidate another score than its bounds do")
        size = 1.0 + np.abs(details[UCB])
        above = scores > details[UCB] + SUM * size
        above &= ~(scores <= recomputed[SCORE] + self._tolerance * (size + scale))
        if above[scored].any():
            raise Finding("gives a candidate a score above its UCB")

    def _sum(self, bank: float, certificate: float) -> None:
        """A ledger that carries its bank adds the certificate to it, and nothing else."""
        books = self.books
        if books.ledger == "carry" and self.compares_numbers and math.isfinite(bank):
            total = books.bank + certificate
            if abs(bank - total) > SUM * (abs(books.bank) + abs(certificate) + abs(books.price(False))):
                raise Finding(
                    f"leaves bank {bank!r}, but {books.bank!r} and its certificate {certificate!r} are "
                    f"{total!r}"
                )

    def _explanation(self, arrays: dict[str, Array]) -> None:
        """What decides nothing, but is shown to whoever asks why; early versions did not record it."""
        contrasts = arrays["candidates"] - (1.0 - self.books.alpha) * arrays["baseline"]
        with np.errstate(invalid="ignore"):
            recorded = contrasts @ arrays["estimate"]
            recomputed = contrasts @ self.set.stack().centres[0]
        recorded = np.where(np.isnan(recorded), -np.inf, recorded)
        self._near("estimated contrasts", recorded, recomputed, 1.0)
        if "upper" in arrays:  # one that is too large explains less, but nothing wrongly
            self._near("upper bounds of contrasts", -arrays["upper"], -self.set.bounds(contrasts)[1], 1.0)

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

    def _refutation(self, alarm: str | None) -> None:
        """The decision says of the model what the data say."""
        refuted = self.set.alarmed or self.books.refuted
        closest = min(self.set.closest, self.books.closest)
        if refuted != (alarm is not None) and closest > TOLERANCE:
            raise Finding(f"says {alarm!r} of the model, the data say otherwise")

    @property
    def _tolerance(self) -> float:
        """Of comparisons without a safe direction."""
        return ALLOWANCE if self.set.is_rough else self._two_arithmetics

    @property
    def _two_arithmetics(self) -> float:
        """The largest difference between what is recorded and what is recomputed."""
        if not self.is_exact:
            return TOLERANCE
        rounding = ROUNDINGS * self.set.rounding()
        return TOLERANCE if math.isnan(rounding) else min(max(rounding, LEAST_TOLERANCE), TOLERANCE)

    def _against_the_baselines_score(
        self, details: Array, chosen: int | None, action: int | None, baseline: Array
    ) -> int | None:
        """In an optimistic round the baseline is played if it has the highest score of all."""
        if chosen is None or self._baseline_is_unplayable(baseline):
            return chosen
        low, high = (float(bound[0]) for bound in self.books.region.bounds(baseline[None, :]))
        rival = high if self.boldness == 1.0 else 0.5 * (low + high + self.boldness * (high - low))
        if abs(details[SCORE, chosen] - rival) <= self._tolerance * (1.0 + abs(rival)):
            return action  # a tie up to rounding
        return chosen if details[SCORE, chosen] > rival else None

    def _baseline_is_unplayable(self, baseline: Array) -> bool:
        return (
            not self.baseline_nonnegative and not self.books.baseline_margin(baseline) >= self._tolerance
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
        near = self._tolerance * (1.0 + abs(self.books.bank))
        sure = self.books.promises(candidates, baseline, -1.0)
        hope = self._hopes(candidates, baseline, recomputed)
        gains, aims = hope.could, self._aims(hope, margins, candidates, baseline)
        pays = margins >= self._fund(baseline) + near
        pays &= gains > aims[1] + self._tolerance * scale
        short = np.where(pays, np.inf, sure)  # of surely being better, if below 0
        more = (promises > self._tolerance * scale) & (short > self._tolerance * scale)
        more |= margins > rival + near
        could = np.full(len(margins), -np.inf)  # how much better a candidate could be that is tried
        if BANK_COMPETES <= self.rule.competes <= COUNTERWEIGHTS:
            could = self.books.promises(candidates, baseline, 1.0)
            more |= (margins > self.books.bank + near) & (could > self._tolerance * scale)
        wrong = np.isneginf(scores) & more
        if wrong.any():
            beaten = int(wrong.argmax())
            raise Finding(
                f"leaves out candidate {beaten}, which promises or leaves more than the baseline"
            )
        if chosen is None or self._is_baseline(chosen, candidates, baseline):
            self._hope(hope, aims, details, candidates, baseline, None)
            return
        leaves_more = margins[chosen] > rival - near
        if could[chosen] > -self._tolerance * scale[chosen]:
            leaves_more = leaves_more or margins[chosen] > self.books.bank - near
        unplayable = self._baseline_is_unplayable(baseline)
        low = gains[chosen] < aims[0] - self._tolerance * scale[chosen]
        dear = (low or margins[chosen] < self._fund(baseline) - near) and (
            sure[chosen] < -self._tolerance * scale[chosen]
        )
        if (
            not unplayable
            and not leaves_more
            and dear
            and promises[chosen] > self._tolerance * scale[chosen]
        ):
            raise Finding(
                f"executes candidate {chosen}, which is not surely better than the baseline and leaves "
                f"{'what is saved for a better one' if low else 'too little in the bank'}"
            )
        if not unplayable and not leaves_more and not promises[chosen] > -self._tolerance * scale[chosen]:
            tried = np.flatnonzero((margins >= 0.0) & ~np.isneginf(scores)).tolist() == [chosen]
            if not (self.rule.hope and tried and hope.better[chosen] > -self._tolerance * scale[chosen]):
                raise Finding(f"executes candidate {chosen}, which promises less than the baseline")
            if low:
                raise Finding(f"tries candidate {chosen}, which takes what is saved for a better one")
            self._hope(hope, aims, details, candidates, baseline, chosen)

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
        size += float(self._blur(books.prefix[None, :])[0])
        cheap, dear = np.ones(len(candidates), bool), np.zeros(len(candidates), bool)
        for view in views:
            cheaper, dearer = what_is_cheap(
                middles,
                (books.alpha * books.rounds, saving * books.alpha * granting),
                view,
                (features, float(self.model["noise"])),
                (self._tolerance * max(size, 1.0), self._tolerance * scale),
            )
            cheap, dear = cheap & cheaper, dear | dearer
        least = books.least(self.rule.thrift, baseline)
        return Hope(left, self._tolerance * size, gains, better, cheap, dear, scores, least)

    def _aims(
        self, hope: Hope, margins: Array, candidates: Array, baseline: Array
    ) -> tuple[float, float]:
        """The least and the most, as rounding can make it, that a candidate must be able to gain to take
        from the bank."""
        if not self.rule.ambition or not len(margins) or self._baseline_is_unplayable(baseline):
            return -math.inf, -math.inf
        books = self.books
        saved = books.credit(baseline, books.tolerance, 0.0) * books.rounds
        near = self._tolerance * (2.0 + abs(books.bank) + saved)
        near += self._tolerance * float(self._sizes(candidates, baseline).max())
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
        near = self._tolerance * scale
        no = (promises > -near) | (hope.could - near <= aims[1])
        better = np.where(no, -np.inf, hope.better - near)
        bank = self._tolerance * (1.0 + abs(self.books.bank))
        passed_over = np.isneginf(details[SCORE])
        check_hope(hope._replace(better=better), details[MARGIN], passed_over, tried, bank)

    def _is_baseline(self, action: int | None, candidates: Array, baseline: Array) -> bool:
        """Whether a candidate is the incumbent offered again: equal features have one linear mean."""
        linear = self.model["misspecification"] == 0.0
        return action is not None and linear and np.array_equal(candidates[action], baseline)

    def _exactly(self, decision: RecordedDecision, scale: float) -> None:
        books, action, baseline = copy.copy(self.books), decision.action, decision.played.baseline
        books.region = exact = self._exact()
        radius = decision.numbers.radius
        self._near("radius (50 digits)", radius, exact.radius, 1.0, larger_is_safe=True)
        if books.gated and decision.charged:
            margin = books.baseline_margin(baseline)
            if action is not None:
                candidate = decision.arrays["candidates"][action : action + 1]
                margin = books.details(candidate, baseline, 1.0)[MARGIN, 0]
            self._near("bank (50 digits)", decision.numbers.bank, margin, scale)
        self.report.precise += 1

    def executed(self, round_: int, decided: Played, executed: Played, bank: float) -> None:
        self.set.renew()

        def check() -> None:
            books = copy.copy(self.books)
            books.region = self.region
            recomputed = books.amended(
                (decided.features, decided.is_baseline),
                (executed.features, executed.is_baseline),
                executed.baseline,
                executed.baseline_mean,
                round_,
            )
            if books.gated:
                self._near("bank", bank, recomputed, 1.0 + abs(books.bank))
                books.bank = bank
            books.region = self.set
            self.books = books

        self._in_either_arithmetic(check)

    def _near(
        self, what: str, recorded: Any, recomputed: Any, scale: Any, larger_is_safe: bool = False
    ) -> None:
        """Recorded numbers agree with recomputed ones. A recorded -inf is always safe; +inf or NaN never
        is, unless recomputed. Where rounding may be visible, what is recorded has an allowance for it: a
        smaller number, or a larger one, is safe; by how much, only float64 limits."""
        if not self.compares_numbers:
            return
        recorded, recomputed = np.atleast_1d(recorded), np.atleast_1d(recomputed)
        with np.errstate(invalid="ignore"):
            error = np.abs(recorded - recomputed) / (scale + np.abs(recomputed))
        error[(recorded == recomputed) | (np.isnan(recorded) & np.isnan(recomputed))] = 0.0
        error[np.isneginf(recorded)] = 0.0
        if self.set.is_rough:
            safe = recorded > recomputed if larger_is_safe else recorded < recomputed
            error[safe & ((error <= ALLOWANCE) | (self.region is not self.set))] = 0.0
        worst, tolerance = float(np.max(error, initial=0.0)), self._two_arithmetics
        if not worst <= tolerance:
            k = int(np.argmax(~(error <= tolerance)))
            raise Finding(f"{what}: recorded {recorded[k]!r}, recomputed {recomputed[k]!r}")
        self.report.largest_error = max(self.report.largest_error, worst)
