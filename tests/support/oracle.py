"""Slow, obvious policies, written from the paper and the theory sheet alone; see ``oracle_ledger``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from support.oracle_belief import expected_theta
from support.oracle_ledger import OracleLedger, Pending
from support.oracle_sets import Array

TRUST = 0.02  # half-widths that count in what a candidate promises above the baseline
BELIEVING = ("constrained", "unbiased", "several-ridges")  # sets in whose coordinates theta is believed


class StopHere(Exception):
    """No action has a margin >= 0 and the baseline is not known to be nonnegative."""


class OraclePolicy(OracleLedger):
    """Algorithm 1 with every method's choice. ``reserve-c4b+`` scores by what it believes of theta, or by
    the interval where nothing is believed and in optimistic rounds; it saves bank, prefers the baseline
    to a candidate that promises and leaves no more, and plays only the baseline once the model is
    refuted."""

    best: Array  # the best-scored candidate of the round at hand,
    pool: Array  # and all of them

    def decide(self, candidates: Array, baseline: Array) -> dict[str, Any]:
        """One round of Algorithm 1, up to and including the ledger update."""
        baseline = np.array(baseline, dtype=float)
        candidates = np.array(candidates, dtype=float).reshape(-1, self.set.dim)
        if not (np.all(np.isfinite(candidates)) and np.all(np.isfinite(baseline))):
            raise ValueError("features must be finite")
        self.pool = candidates
        ucb = [self.set.upper(x) for x in candidates]
        margin = [self._candidate_margin(x, baseline) for x in candidates]
        joint = [self.set.lower(x - self.c * baseline) for x in candidates]  # (8)
        baseline_upper = self.set.upper(baseline)
        separate = [self.set.lower(x) - self.c * baseline_upper for x in candidates]  # (9)

        self.promises: list[float] = []
        score = [self._score(x) for x in candidates] if self.name == "reserve-c4b+" else list(ucb)
        hope: int | None = None
        self.is_dear = False
        hopeful = not self._optimistic() and self._hopeful(baseline)
        before = list(score)
        self.best = candidates[int(np.argmax(score))] if len(score) else baseline
        self.aim: float = self._aim(score, margin, candidates, baseline, hopeful)
        self.is_low = False

        tested = list(range(len(candidates))) if not self.alarmed else []
        if self.name == "revalue" and tested:
            tested = [int(np.argmax(ucb))]  # propose: only the optimistic candidate
        action = self._saves_up(score, margin, candidates, baseline)
        while action is None:
            for index in tested:
                if margin[index] >= 0.0 and (action is None or score[index] > score[action]):
                    action = index
            if action is None or self._beats_baseline(candidates[action], margin[action], baseline):
                break
            if self._optimistic():
                action = None
                break
            if (
                hope is None
                and not self.is_dear
                and not self.is_low
                and self._worth_trying(candidates[action], baseline, hopeful)
            ):
                hope = action
            tested.remove(action)
            score[action] = -np.inf
            action = None
        if action is None and hope is not None:
            action, score[hope] = hope, before[hope]

        if action is None:
            bank, certificate = self._baseline_margin(baseline), self._credit(baseline)
            must_pass = self.name != "linucb" and not self.baseline_nonnegative
            if must_pass and (self.alarmed or not bank >= 0.0):
                raise StopHere("no action has a margin >= 0")
        else:
            bank = float("nan") if self.name == "linucb" else margin[action]
            certificate = separate[action] if self.name == "separate" else joint[action]

        handle = self.rounds
        entry = Pending(None if action is None else candidates[action].copy(), baseline)
        self.rounds, self.bank, self.pending[handle] = handle + 1, bank, entry
        self._book(entry, +1.0)
        self.past.append((bank, self.prefix.copy()))
        return {
            "action": action, "bank": bank, "certificate": certificate, "round": handle,
            "ucb": np.array(ucb, dtype=float), "margin": np.array(margin, dtype=float),
            "joint": np.array(joint, dtype=float), "separate": np.array(separate, dtype=float),
            "score": np.array(score, dtype=float), "promises": self.promises,
        }  # fmt: skip

    def _optimistic(self) -> bool:
        """Those in which 8 times the leeway, plus one for each 1024 rounds, passes a whole number."""
        before, after = (8.0 * self._leeway(t) + t / 1024 for t in (self.rounds, self.rounds + 1))
        return math.floor(after) > math.floor(before)

    def _boldness(self) -> float:
        """Half-widths above the middle; of two optimistic rounds the first adds a whole one."""
        usual = min(0.4 / math.sqrt(self.set.dim / 5.0), 1.0)
        if not self._optimistic():
            return usual
        number = math.floor(8.0 * self._leeway(self.rounds + 1) + (self.rounds + 1) / 1024)
        return 1.0 if number % 2 == 1 else max(usual, 0.5)

    def _leeway(self, rounds: int) -> float:
        return max(self.alpha * math.sqrt(rounds) - 0.25 * math.sqrt(self.set.dim / 5.0), 0.0)

    def _hopeful(self, baseline: Array) -> bool:
        """Whether, by middles, that of Z by what is believed, less seems lost or gained than four
        baselines for each unit of leeway.
        Sets what learning may cost: 3/4 of what alpha had granted before there was leeway, and from
        then on more by the power 3/4 of the rounds, less that."""
        self.allowance = 0.0
        if self.name != "reserve-c4b+" or self.rounds == 0:
            return False
        left = (self.set.lower(self.prefix) + self.set.upper(self.prefix)) / 2.0
        if self.set.confidence in BELIEVING:
            left = self._view(self.prefix, baseline)[0]
        mean = (self.set.lower(baseline) + self.set.upper(baseline)) / 2.0
        lost = self.rounds * self.alpha * mean - left
        without = (0.25 / self.alpha) ** 2 * self.set.dim / 5.0
        granting = self.rounds if self.rounds < without else without**0.25 * self.rounds**0.75
        self.allowance = 0.75 * self.alpha * granting * mean - abs(lost)
        self.promises.append(self.allowance)
        if not self._leeway(self.rounds) > 0.0:
            return False
        self.promises.append(4.0 * self._leeway(self.rounds) * mean - abs(lost))
        self.plays = 4.0 * self.rounds
        return self.promises[-1] > 0.0

    def _worth_trying(self, x: Array, baseline: Array, hopeful: bool) -> bool:
        """Whether what x could gain is above 0, and learning takes, in hope, no more plays than four
        times the rounds there were, or costs no more than it may: for each feature that differs one play,
        or as many as make the gain three standard errors, at the loss of the middle."""
        low, high = self.set.lower(x - baseline), self.set.upper(x - baseline)
        share = max(0.5, min(0.5 * math.sqrt(5.0 / self.set.dim), 1.0))
        views = [((low + high) / 2.0, share * (high - low) / 2.0)]
        if self.set.confidence in BELIEVING:
            mean, deviation = self._view(x - baseline, baseline)
            views.append((mean, self._deviations() * deviation))
        return all(self._pays(x - baseline, middle, more, hopeful) for middle, more in views)

    def _pays(self, contrast: Array, middle: float, more: float, hopeful: bool) -> bool:
        """``_worth_trying`` in one view: the candidate seems to gain ``middle``, or so much more."""
        gain = middle + more
        self.promises.append(gain)
        if gain <= 0.0:
            return False
        plays = int(np.count_nonzero(contrast)) * max(1.0, (3.0 * self.set.noise / gain) ** 2)
        if hopeful:
            self.promises.append(plays / self.plays - 1.0)
            if plays <= self.plays:
                return True
        if self.allowance <= 0.0:
            return False
        cost = plays * max(0.0, -middle)
        self.promises.append(self.allowance - cost)
        return cost <= self.allowance

    def _gain(self, x: Array, baseline: Array) -> float:
        """What x could gain: what is believed of x - x(b) and some standard deviations, or the middle
        plus half of the half-width, or more of it, at most all, with fewer features than 5."""
        if self.set.confidence in BELIEVING:
            mean, deviation = self._view(x - baseline, baseline)
            return mean + self._deviations() * deviation
        low, high = self.set.lower(x - baseline), self.set.upper(x - baseline)
        share = max(0.5, min(0.5 * math.sqrt(5.0 / self.set.dim), 1.0))
        return (low + high) / 2.0 + share * (high - low) / 2.0

    def _aim(
        self, scores: list[float], margins: list[float], xs: Array, baseline: Array, hopeful: bool
    ) -> float:
        """A fifth of what the best-scored candidate could gain, if it would be played and as many rounds
        of the baseline as there were pay for it."""
        if self.name != "reserve-c4b+" or self._optimistic() or not len(scores):
            return -math.inf
        top = int(np.argmax(scores))
        others = [score for k, score in enumerate(scores) if k != top]
        self.promises += [scores[top] - max(others)] if others else []
        left = margins[top] + self.rounds * self.alpha * max(self.set.lower(baseline), 0.0)
        low, high = self.set.lower(xs[top] - baseline), self.set.upper(xs[top] - baseline)
        promise = (low + high) / 2.0 + TRUST * (high - low) / 2.0
        promise = min(promise, self._believed_promise(xs[top] - baseline, baseline))
        self.promises += [left, promise]
        if left < 0.0 or not (promise > 0.0 or self._worth_trying(xs[top], baseline, hopeful)):
            return -math.inf
        return 0.2 * self._gain(xs[top], baseline)

    def _saves_up(
        self, scores: list[float], margins: list[float], xs: Array, baseline: Array
    ) -> int | None:
        """If the best-scored candidate of all promises more than the baseline but is not admissible: the
        admissible one that brings it nearest, less what is due. Where nothing is believed, the
        best-scored one of those that leave more than the baseline would."""
        if self.name != "reserve-c4b+" or self._optimistic() or self.alarmed or not len(scores):
            return None
        rival = self._baseline_margin(baseline)
        if not self.baseline_nonnegative and not rival >= 0.0:
            return None
        top = int(np.argmax(scores))
        low, high = self.set.lower(xs[top] - baseline), self.set.upper(xs[top] - baseline)
        promise = (low + high) / 2.0 + TRUST * (high - low) / 2.0
        promise = min(promise, self._believed_promise(xs[top] - baseline, baseline))
        self.promises += [promise, margins[top]]
        if margins[top] >= 0.0 or promise <= 0.0:
            return None
        if self.set.confidence in BELIEVING:
            usual = self._ahead(baseline, baseline, xs[top])
            gains = {
                k: self._ahead(xs[k], baseline, xs[top]) - usual - self._due(xs[k], baseline, xs[top])
                for k, margin in enumerate(margins)
                if margin >= 0.0
            }
            order = sorted(gains.values(), reverse=True)
            self.promises += [*margins, *order[:1], *(order[0] - gain for gain in order[1:2])]
            return max(gains, key=lambda k: gains[k]) if order and order[0] > 0.0 else None
        self.promises += [margin - max(rival, 0.0) for margin in margins]
        leaving = [k for k, margin in enumerate(margins) if margin > max(rival, 0.0)]
        return max(leaving, key=lambda k: scores[k], default=None)

    def _beats_baseline(self, x: Array, margin: float, baseline: Array) -> bool:
        """Whether the middle of x - x(b) plus a fiftieth of the half-width is above 0, and what is
        believed of it; or the bank afterwards higher than after the baseline; in optimistic rounds
        whether its score is higher."""
        if self.name != "reserve-c4b+":
            return True
        if not self.baseline_nonnegative and not self._baseline_margin(baseline) >= 0.0:
            return True
        if self._optimistic():
            ahead = self._score(x) - self._score(baseline)
            self.promises.append(ahead)
            return ahead > 0.0
        low, high = self.set.lower(x - baseline), self.set.upper(x - baseline)
        promise = (low + high) / 2.0 + TRUST * (high - low) / 2.0
        promise = min(promise, self._believed_promise(x - baseline, baseline))
        rival = self._baseline_margin(baseline) + self._due(x, baseline, self.best)
        self.promises += [promise, margin - rival] if promise <= 0.0 else [promise]
        gain = self._gain(x, baseline)
        self.promises.append(gain - self.aim if self.aim > -math.inf else 1.0)
        self.is_low = gain <= self.aim
        self.is_dear = promise > 0.0 and (
            self._is_dear(margin, low, baseline) or (self.is_low and low <= 0.0)
        )
        return (promise > 0.0 and not self.is_dear) or margin > rival

    def _deviations(self) -> float:
        """Standard deviations that count as possible: two, and more with fewer features than 5."""
        return 2.0 * max(1.0, math.sqrt(5.0 / self.set.dim))

    def _believed_promise(self, v: Array, baseline: Array) -> float:
        """What is expected of v @ theta, and a fiftieth of what is possible."""
        mean, deviation = self._view(v, baseline)
        return mean + TRUST * self._deviations() * deviation

    def _believed(self, v: Array) -> tuple[float, float]:
        """Mean and standard deviation of v @ theta after all observations, in the eyes of somebody for
        whom theta was N(0, S^2/d I); nothing is believed with sets that have other coordinates."""
        if self.set.confidence not in BELIEVING:
            return math.inf, 0.0
        precision, moment = self._precision(), self._sums()[1] / self.set.noise**2
        return float(v @ np.linalg.solve(precision, moment)), float(
            np.sqrt(v @ np.linalg.solve(precision, v))
        )

    def _view(self, v: Array, baseline: Array) -> tuple[float, float]:
        """The same, with the mean of somebody who does not know the prior's variance."""
        if self.set.confidence not in BELIEVING:
            return math.inf, 0.0
        gram, moment = self._sums()
        mean = expected_theta(gram, moment, self.pool, baseline, self.set.noise, self.set.norm_bound)
        return float(v @ mean), self._believed(v)[1]

    def _sums(self) -> tuple[Array, Array]:
        """The sums of x x^T and of x y."""
        gram, moment = np.zeros((self.set.dim, self.set.dim)), np.zeros(self.set.dim)
        for x, y in zip(self.set.features, self.set.rewards, strict=True):
            gram += np.outer(x, x)
            moment += x * y
        return gram, moment

    def _precision(self) -> Array:
        prior = np.eye(self.set.dim) * self.set.dim / self.set.norm_bound**2
        return np.asarray(prior + self._sums()[0] / self.set.noise**2)

    def _due(self, x: Array, baseline: Array, best: Array) -> float:
        """What a play must leave above the baseline's margin: the plays of ``best`` that it pays for are
        worth what it is expected to lose. One such play counts as three."""
        if self.set.confidence not in BELIEVING:
            return 0.0
        loss = -self._view(x - baseline, baseline)[0]
        gain = self._view(best - baseline, baseline)[0]
        self.promises += [loss, gain]
        if loss <= 0.0:
            return 0.0
        price = self._baseline_margin(baseline) - self._candidate_margin(best, baseline)
        price = max(price / 3.0, self.alpha * max(self.set.lower(baseline), 0.0))
        return loss * price / gain if gain > 0.0 else math.inf

    def _ahead(self, x: Array, baseline: Array, target: Array) -> float:
        """What will be certified of the prefix, and of ``target`` after it, once x was observed: the mean
        as expected now, and as many deviations less as there are now in half a width."""
        waits = self.prefix + self.alpha * baseline + target - self.c * baseline
        whole = waits + x - baseline
        widths = (self.set.upper(waits) - self.set.lower(waits)) / 2.0 / self._believed(waits)[1]
        precision = self._precision() + np.outer(x, x) / self.set.noise**2
        deviation = float(np.sqrt(whole @ np.linalg.solve(precision, whole)))
        return self._view(whole, baseline)[0] - widths * deviation

    def _score(self, x: Array) -> float:
        """What is believed plus some standard deviations, else the middle of the interval plus some
        half-widths."""
        mean, deviation = self._believed(x)
        if mean < math.inf and not self._optimistic():
            return mean + self._deviations() * deviation
        low, high, bold = self.set.lower(x), self.set.upper(x), self._boldness()
        return high if bold == 1.0 else (high + low + bold * (high - low)) / 2.0

    def _is_dear(self, margin: float, low: float, baseline: Array) -> bool:
        """Whether one not surely better leaves less than a quarter of the leeway, or than there is."""
        mean = (self.set.lower(baseline) + self.set.upper(baseline)) / 2.0
        fund = min(self._leeway(self.rounds) * mean / 4.0, self.bank)
        self.promises += [margin - fund, low] if margin < fund else [margin - fund]
        return margin < fund and low <= 0.0
