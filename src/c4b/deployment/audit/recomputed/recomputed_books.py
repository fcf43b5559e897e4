"""Recompute the ledgers for audits, in NumPy. Shares no code with the kernels.

The bounds of each round come from the recomputed set; equation numbers as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.checks.refutation import Refutation
from c4b.deployment.audit.recomputed.recomputed_totals import Totals
from c4b.policies.rounds.candidate_fields import CandidateField

PREFIX = ("prefix", "revalue")
"""Names of the ledger that values all rounds anew; journals have the second."""
UCB, MARGIN, JOINT, SEPARATE, SCORE = CandidateField
"""Rows of a decision's details, as the journal's format has them."""
TOGETHER = 20_000
"""Numbers of which bounds are asked in one call, about."""


class Region(Protocol):
    """What the books ask of a set."""

    def bounds(self, vectors: Array) -> tuple[Array, Array]: ...


class Books:
    """The ledger: bank, prefix, revalued sums, checkpoints."""

    def __init__(self, fields: dict[str, Any], rule: Array, region: Region) -> None:
        self.region = region
        self.certificate = fields["composition"]["certificate"]
        self.ledger = fields["composition"]["ledger"]
        self.alpha, self.reserve = float(fields["alpha"]), float(fields["reserve"])
        floor = fields.get("baseline_floor")
        self.floor = float(floor) if floor is not None else 0.0
        if not fields["baseline_nonnegative"] and floor is None:
            self.floor = -np.inf
        composition = fields["composition"]
        self.phase = int(composition.get("phase", 1))
        self.known = self.certificate == "known"
        self.earns = composition.get("earned", "none") != "none"
        self.noise, self.level = fields["model"]["noise"], fields["model"]["delta"] / 2.0
        self.mean = np.nan  # the baseline's in this round, where it is told
        self.told = 0.0  # alpha sum_F mu - c sum_S mu
        self.fallbacks = self.plays = 0
        self.rewards = 0.0  # of absorbed plays
        self.refuted = Refutation()
        dim = fields["model"]["dim"]
        self.gated = self.ledger != "none"
        self.bank = self.reserve if self.gated else float("nan")
        self.prefix = np.zeros(dim)
        self.played, self.displaced, self.fallback = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        self.absorbed = np.zeros(dim)  # features of absorbed plays
        self.room, self.cushion = int(rule[4]), float(rule[5])
        self.kept_back = float(rule[9]) if self.ledger == "nonnegative" else 0.0
        self.tolerance = fields["model"]["misspecification"]
        self.values_corrections = bool(fields.get("values_corrections"))
        self.slack = 0.0  # what declared misspecification has cost so far
        self.rounds, self.stride = 0, 1
        self.executed_plays, self.changed = 0, False
        self.first_baseline: Array | None = None
        totals = getattr(region, "totals", None)
        claims = self.ledger == "nonnegative" and self.floor >= 0.0 and self.tolerance == 0.0
        self.totals: Totals | None = totals if claims else None
        self.kept: list[tuple[int, float, Array]] = [(0, self.reserve, np.zeros(dim))] * min(self.room, 1)

    def _lower(self, vector: Array) -> float:
        return float(self.region.bounds(vector[None, :])[0][0])

    def _upper(self, vector: Array) -> float:
        return float(self.region.bounds(vector[None, :])[1][0])

    @property
    def charges_separately(self) -> bool:
        """Whether a round's certificate is the separate one."""
        return self.known or (self.certificate == "separate" and self.ledger in ("carry", "round"))

    @property
    def reach(self) -> float:
        """How large the values of sums over rounds are, whose small difference a bank can be: where
        rounds are valued anew, and where many outcomes are pending."""
        if not self.gated:
            return 0.0
        found = np.abs(self.region.bounds(np.array([self.prefix, self.played, self.displaced])))
        return float(np.max(found, initial=0.0, where=np.isfinite(found)))

    def tell(self, baseline: Array, mean: float | None, blur: float) -> None:
        """The baseline's mean in the round to come, which its own interval may refute. blur: relative
        difference that rounding can make."""
        self.mean = np.nan if mean is None else mean
        low, high = (float(bound[0]) for bound in self.region.bounds(baseline[None, :]))
        outside = max(low - self.mean, self.mean - high) - self.tolerance
        size = sum(abs(number) for number in (low, high, self.mean) if np.isfinite(number))
        self.refuted = self.refuted.weighed(outside, blur * (1.0 + size))

    def earn(self, features: Array, reward: float, count: int) -> None:
        """The reward of a play was absorbed, or the sum of its ``count`` items' rewards."""
        self.plays += count
        self.rewards += reward
        self.absorbed = self.absorbed + features

    def credit(self, features: Array, tolerance: float = 0.0, floor: float | None = None) -> float:
        """(11), less what the mean may be below linear; or the mean that was told."""
        if self.known and floor is None:
            return float(self.alpha * self.mean)
        low = self._lower(features) - tolerance
        return float(self.alpha * max(low, self.floor if floor is None else floor))

    def price(self, is_baseline: bool) -> float:
        """What declared misspecification can cost a round."""
        if self.known:
            return 0.0 if is_baseline else float(self.tolerance)
        return float(self.tolerance * (self.alpha if is_baseline else 2.0 - self.alpha))

    def optimistic(self, period: int, optimism: float = 0.0, reluctance: float = 0.0) -> bool:
        """Whether the next round is the optimistic one of its block of ``period`` rounds; or, with
        ``optimism``, whether it brings their number to the next whole one."""
        if not period:
            return False
        if optimism > 0.0:
            rounds = np.array([self.rounds, self.rounds + 1], dtype=np.float64)
            leeway = np.maximum(self.alpha * np.sqrt(rounds) - reluctance, 0.0)
            before, after = np.floor(optimism * leeway + rounds / period)
            return bool(after > before)
        golden = 0.6180339887498949 * (self.rounds // period + 1)
        return self.rounds % period == int(period * (golden - np.floor(golden)))

    def restrained(self, period: int, optimism: float, reluctance: float, boldest: int) -> bool:
        """Whether an optimistic next round is none of those that score by the UCB, the first of each
        ``boldest`` optimistic rounds."""
        if boldest <= 1:
            return False
        leeway = max(self.alpha * float(np.sqrt(self.rounds + 1)) - reluctance, 0.0)
        return int(optimism * leeway + (self.rounds + 1) / period) % boldest != 1

    def promises(self, candidates: Array, baseline: Array, trust: float) -> Array:
        """Scores (K,) of x(a) - x(b): what each candidate promises above the baseline."""
        low, high = self.region.bounds(candidates - baseline)
        return np.asarray(0.5 * ((1.0 + trust) * high + (1.0 - trust) * low))

    def least(self, thrift: float, baseline: Array) -> float:
        """The margin that a thrifty choice would like to keep."""
        if thrift <= 0.0:
            return 0.0
        return float(min(thrift * self.bank, self.cushion * self.credit(baseline, self.tolerance, 0.0)))

    def details(
        self, candidates: Array, baseline: Array, boldness: float, by_certificate: bool = False
    ) -> Array:
        """UCB, margin, joint and separate certificate and score (5, K), from the set and the books."""
        c = 1.0 - self.alpha
        out = np.empty((len(CandidateField), len(candidates)))
        low, out[UCB] = self.region.bounds(candidates)
        contrasts = candidates - c * baseline
        out[JOINT] = self.region.bounds(contrasts)[0]
        out[SEPARATE] = low - c * (self.mean if self.known else self._upper(baseline))
        certificate = out[SEPARATE if self.charges_separately else JOINT]
        out[SCORE] = 0.5 * ((1.0 + boldness) * out[UCB] + (1.0 - boldness) * low)
        if by_certificate:
            out[SCORE] = certificate
        if not self.gated:
            out[MARGIN] = np.inf
        elif self.known and self.ledger == "prefix":
            gained = self._gained(candidates)
            out[MARGIN] = self._told(1) - c * self.mean + gained
        elif self.ledger in PREFIX and self.certificate == "joint":
            worth = self.region.bounds(self.prefix + contrasts)[0]
            out[MARGIN] = self.reserve + worth - self.slack
        elif self.ledger in PREFIX:
            owed = c * self._upper(self.displaced + baseline)
            gained = self.region.bounds(self.played + candidates)[0]
            earned = self.credit(self.fallback, 0.0, self._floor(0))
            out[MARGIN] = self.reserve + gained + earned - owed - self.slack
        elif self.ledger == "round":
            alone = certificate >= self.price(False)
            out[MARGIN] = np.where(alone, self.bank + certificate, -np.inf)
        else:
            now, _, free = self.free_claims(baseline)
            out[MARGIN] = np.maximum(max(self.bank, now) + certificate, free)
            for bank, lows in self._since(contrasts):
                out[MARGIN] = np.maximum(out[MARGIN], bank + lows)
        out[MARGIN] -= self.price(False) if self.gated else 0.0
        return out

    def baseline_margin(self, baseline: Array) -> float:
        if not self.gated:
            return float("nan")
        if self.known and self.ledger == "prefix":
            return self._told(1) + self.alpha * self.mean + float(self._gained(None)[0])
        if self.ledger in PREFIX and self.certificate == "joint":
            worth = self._lower(self.prefix + self.alpha * baseline)
            return self.reserve + worth - self.slack - self.price(True)
        if self.ledger in PREFIX:
            return self.revalued(self.fallback + baseline, 1) - self.price(True)
        best = self.bank + self.credit(baseline, self.tolerance)
        if self.ledger == "round":
            return best if best >= self.bank else -np.inf
        now, after, _ = self.free_claims(baseline)
        best = max(best, now + self.credit(baseline, self.tolerance), after)
        for bank, lows in self._since(self.alpha * baseline[None, :]):
            best = max(best, bank + float(lows[0]) - self.price(True))
        return best

    def _since(self, added: Array) -> Iterator[tuple[float, Array]]:
        """(12), of every round that is remembered: its bank, and bounds (n,) on what has come since
        together with each of ``added`` (n, d)."""
        at_once = max(1, TOGETHER // max(1, added.size))  # one call for each takes three times as long
        for first in range(0, len(self.kept), at_once):
            part = self.kept[first : first + at_once]
            sums = np.concatenate([self.prefix - prefix + added for _, _, prefix in part])
            lows = self.region.bounds(sums)[0].reshape(len(part), len(added))
            yield from zip((bank for _, bank, _ in part), lows, strict=True)

    def free_claims(self, baseline: Array) -> tuple[float, float, float]:
        """(N1) to (N3): the worth of all rounds now, after the baseline, and after any candidate."""
        if self.totals is None:
            return -np.inf, -np.inf, -np.inf
        low, high = (float(bound[0]) for bound in self.region.bounds(baseline[None, :]))
        low, lines, summed = max(low, 0.0), [(0.0, 0.0)], self.totals.covers(baseline)
        weight = self.alpha * self.rounds - self.executed_plays
        if summed:
            sums = self.totals.mean()
            low, high = max(low, sums[0]), min(high, sums[1])
            rest = self._lower(self.prefix - weight * baseline - self.totals.others)
            lines.append((self.totals.others_low() + rest, 0.0))
            if self.totals.together:
                least, slope = self.totals.line_below_earned(1.0 - self.alpha - weight)
                lines.append((least + rest, slope))

        def worth(rounds: int, plays: int) -> float:
            """The largest claim from a line below what plays have earned, above the baseline's mean."""
            credit = self.alpha * rounds
            weight = credit - plays - 8.0 * 2.0**-53 * credit
            worths = (
                base + (weight + slope) * (low if weight + slope >= 0.0 else high)
                for base, slope in lines
            )
            return float(self.reserve + max(worths))

        now = after = free = -np.inf
        if not self.changed and (
            self.first_baseline is None or np.array_equal(self.first_baseline, baseline)
        ):
            now, after = (
                worth(self.rounds, self.executed_plays),
                worth(self.rounds + 1, self.executed_plays),
            )
            free = worth(self.rounds + 1, self.executed_plays + 1)
        free = max(free, max(self.bank, now) - (1.0 - self.alpha) * high)
        keeps = self.kept_back * self.alpha * (self.rounds + 1) * low
        if self.totals.together:
            keeps = min(keeps, self.totals.most_kept_back)
        return now, after, free if free >= keeps else -np.inf

    def revalued(self, fallback: Array, more: int) -> float:
        """``more``: rounds of the fallback that are not counted yet."""
        owed = (1.0 - self.alpha) * self._upper(self.displaced) + self.slack
        earned = self.credit(fallback, 0.0, self._floor(more))
        return float(self.reserve + self._lower(self.played) + earned - owed)

    def _floor(self, more: int) -> float:
        """What the means of all fallback rounds sum to at least."""
        return (self.fallbacks + more) * self.floor if np.isfinite(self.floor) else self.floor

    def _told(self, more: int) -> float:
        """R0 and all told means, and what is left of a phase after ``more`` further rounds."""
        left = -(self.rounds + more) % self.phase if np.isfinite(self.floor) else 0
        ahead = self.alpha * left * self.floor if left else 0.0
        return float(self.reserve + self.told + ahead - self.slack)

    def _gained(self, candidates: Array | None) -> Array:
        """What all plays have earned, with one more of ``candidates`` (K, d), or without."""
        rows = np.zeros((1, len(self.played))) if candidates is None else candidates
        gained = self.region.bounds(self.played + rows)[0]
        if not self.earns:
            return gained
        m = self.plays + 20.0
        width = self.noise * np.sqrt(m * (np.log(m / 20.0) - 2.0 * np.log(self.level)))
        apart = self._lower(self.played) + self.region.bounds(rows)[0]
        open_plays = self.region.bounds(self.played - self.absorbed + rows)[0]
        best: Array = np.max([gained, apart, self.rewards - width + open_plays], axis=0)
        return best

    def charge(
        self, bank: float, executed: Array, baseline: Array, is_baseline: bool, mean: float | None
    ) -> None:
        """A decision was recorded: take its bank, enter its features, keep a checkpoint when due."""
        if self.gated:
            self.bank = bank
        self._enter(executed, baseline, is_baseline, mean, 1.0)
        self.rounds += 1
        price = self.price(is_baseline)
        self.slack += price
        self.kept = [(s, bank - price, prefix) for s, bank, prefix in self.kept]
        if self.room < 2 or self.rounds % self.stride:
            return
        if len(self.kept) == self.room:
            self.kept = self.kept[:1] + self.kept[2::2]
            self.stride *= 2
        if self.rounds % self.stride == 0:
            self.kept.append((self.rounds, self.bank, self.prefix.copy()))

    def amended(
        self,
        decided: tuple[Array, bool],
        executed: tuple[Array, bool],
        baseline: Array,
        mean: float | None,
        round_: int,
    ) -> float:
        """Something else was executed at ``round_``; returns the bank that this leaves."""
        difference = executed[0] - decided[0]
        cost = self._lower(difference) - 2.0 * self.tolerance
        more = self.price(executed[1]) - self.price(decided[1])
        self.slack += more
        self.kept = [
            (s, bank + cost, prefix + difference) if s > round_ else (s, bank - more, prefix)
            for s, bank, prefix in self.kept
        ]
        self._enter(decided[0], baseline, decided[1], mean, -1.0)
        self._enter(executed[0], baseline, executed[1], mean, 1.0)
        if self.known and self.ledger == "prefix":
            return self._told(0) + float(self._gained(None)[0])
        if self.ledger in PREFIX and self.certificate == "joint":
            return self.reserve + self._lower(self.prefix) - self.slack
        if self.ledger in PREFIX:  # as if a baseline of no features were played
            return self.revalued(self.fallback, 0) - self.price(True)
        best = float(self.bank + cost)
        if self.values_corrections and self.ledger != "round":
            claims = [bank + self._lower(self.prefix - prefix) for _, bank, prefix in self.kept]
            best = max(best, self.free_claims(baseline)[0], *claims)
        return best

    def _enter(
        self, executed: Array, baseline: Array, is_baseline: bool, mean: float | None, sign: float
    ) -> None:
        known = 0.0 if mean is None else sign * mean
        self.told += self.alpha * known if is_baseline else -(1.0 - self.alpha) * known
        self.fallbacks += int(sign) if is_baseline else 0
        self.prefix = self.prefix + sign * (executed - (1.0 - self.alpha) * baseline)
        self.executed_plays += 0 if is_baseline else int(sign)
        if self.first_baseline is None:
            self.first_baseline = baseline.copy()
        self.changed = self.changed or not np.array_equal(self.first_baseline, baseline)
        if is_baseline:
            self.fallback = self.fallback + sign * baseline
        else:
            self.played = self.played + sign * executed
            self.displaced = self.displaced + sign * baseline
