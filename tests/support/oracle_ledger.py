"""Slow, obvious ledgers, written from the paper and the theory sheet alone; sets: ``oracle_sets``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from support.oracle_sets import Array, OracleSet

KEEPING = ("checkpoints", "reserve-c4b+")  # whose ledgers keep many rounds


@dataclass
class Pending:
    """A decided round whose outcome is not absorbed yet; features None means the baseline."""

    features: Array | None
    baseline: Array
    reward: float | None = None

    @property
    def played(self) -> Array:
        return self.baseline if self.features is None else self.features


class OracleLedger:
    """What the six methods of the theory sheet's table, ``checkpoints`` and ``reserve-c4b+`` charge, and
    the margins that follow: (8)-(13). ``checkpoints`` tests a candidate from every kept round."""

    def __init__(self, name: str, set: OracleSet, alpha: float, reserve: float,
                 baseline_nonnegative: bool = True, absorb: str = "in-order") -> None:  # fmt: skip
        names = ("separate", "contrast", "refresh", "revalue", "revalue-f", "linucb", *KEEPING)
        if name not in names or absorb not in ("in-order", "on-arrival"):
            raise ValueError(f"unknown method {name!r} or absorption {absorb!r}")
        self.name, self.set, self.alpha, self.reserve = name, set, alpha, reserve
        self.baseline_nonnegative, self.absorb = baseline_nonnegative, absorb
        self.c = 1.0 - alpha
        self.bank = float("nan") if name == "linucb" else reserve  # B
        self.prefix = np.zeros(set.dim)  # Z
        self.z = np.zeros(set.dim)  # revalue: features of the candidates played
        self.v = np.zeros(set.dim)  # revalue: baselines of those rounds
        self.w = np.zeros(set.dim)  # revalue: baselines of the fallback rounds
        self.rounds = 0
        self.past = [(reserve, np.zeros(set.dim))]  # (B_s, Z_s) after s rounds, all of them
        self.alarmed = False
        self.pending: dict[int, Pending] = {}

    def learn(self, X: Array, y: Array) -> None:
        """Historical data: they change the set, never the ledger."""
        for row, value in zip(np.asarray(X, dtype=float), np.asarray(y, dtype=float), strict=True):
            self.set.add(row, float(value))
        self._watch()

    def _watch(self) -> None:
        self.alarmed = self.alarmed or (self.name == "reserve-c4b+" and self.set.refuted())

    def _checkpoints(self) -> list[tuple[float, Array]]:
        """Multiples of the smallest power of two that leaves at most 32 of them, 0 included."""
        if self.name == "refresh":
            return self.past[:1]
        stride = 1
        while self.rounds // stride > 31:
            stride *= 2
        return self.past[::stride]

    def _credit(self, x: Array) -> float:
        """(11); the plain bound alpha L(x) when nonnegativity is not known."""
        low = self.set.lower(x)
        return self.alpha * (max(low, 0.0) if self.baseline_nonnegative else low)

    def _revalued(self, z: Array, v: Array, w: Array) -> float:
        """R0 + L(z) + alpha max{L(w), 0} - c U(v) under the current set."""
        return self.reserve + self.set.lower(z) + self._credit(w) - self.c * self.set.upper(v)

    def _candidate_margin(self, x: Array, baseline: Array) -> float:
        """G(a) of a candidate: the table's second column, (12)-(13) for refresh."""
        if self.name == "linucb":
            return float("inf")
        if self.name in ("revalue", "revalue-f"):
            return self._revalued(self.z + x, self.v + baseline, self.w)
        if self.name == "separate":
            return self.bank + self.set.lower(x) - self.c * self.set.upper(baseline)
        contrast = x - self.c * baseline
        carry = self.bank + self.set.lower(contrast)
        if self.name == "contrast":
            return carry
        sums = [(bank, self.prefix - prefix + contrast) for bank, prefix in self._checkpoints()]
        return max(carry, *(bank + self.set.lower(v) for bank, v in sums))

    def _baseline_margin(self, baseline: Array) -> float:
        """G(b): the table's third column; for revalue the value its ledger would then have."""
        if self.name == "linucb":
            return float("nan")
        if self.name in ("revalue", "revalue-f"):
            return self._revalued(self.z, self.v, self.w + baseline)
        carry = self.bank + self._credit(baseline)
        if self.name in ("separate", "contrast"):
            return carry
        own = self.alpha * baseline
        sums = [(bank, self.prefix - prefix + own) for bank, prefix in self._checkpoints()]
        return max(carry, *(bank + self.set.lower(v) for bank, v in sums))

    def _book(self, entry: Pending, sign: float) -> None:
        """Write (+1) or take back (-1) one round's share of Z and of the three revalue sums."""
        self.prefix = self.prefix + sign * (entry.played - self.c * entry.baseline)
        if entry.features is None:
            self.w = self.w + sign * entry.baseline
        else:
            self.z = self.z + sign * entry.features
            self.v = self.v + sign * entry.baseline

    def executed(self, round: int, features: Array | None) -> None:
        """Another action than decided was executed (None: the baseline): charge that one. What is on
        record already changes nothing."""
        old = self.pending[round]
        played = None if features is None else np.array(features, dtype=float)
        new = Pending(played, old.baseline, old.reward)
        if (old.features is None) == (played is None) and np.array_equal(old.played, new.played):
            return
        self._book(old, -1.0)
        self._book(new, +1.0)
        if self.name in ("revalue", "revalue-f"):
            self.bank = self._revalued(self.z, self.v, self.w)
        elif self.name != "linucb":
            difference = new.played - old.played
            cost = self.set.lower(difference)
            self.bank = self.bank + cost
            for s in range(round + 1, len(self.past)):
                bank, prefix = self.past[s]
                self.past[s] = (bank + cost, prefix + difference)
            for bank, prefix in self._checkpoints() if self.name not in ("separate", "contrast") else ():
                self.bank = max(self.bank, bank + self.set.lower(self.prefix - prefix))
        self.pending[round] = new

    def observe(self, round: int, reward: float) -> None:
        """Record an outcome, then absorb it on arrival or as part of the contiguous prefix."""
        entry = self.pending[round]
        if entry.reward is not None or not np.isfinite(reward):
            raise ValueError(f"round {round}: outcome already seen, or not finite")
        entry.reward = float(reward)
        if self.absorb == "on-arrival":
            self.set.add(entry.played, entry.reward)
            self._watch()
            del self.pending[round]
        else:
            self._absorb_prefix()

    def forget(self, round: int) -> None:
        """Declare an outcome lost, whatever its value was; the ledger keeps the round."""
        if self.pending[round].reward is not None:
            raise ValueError(f"round {round}: its outcome has been seen")
        del self.pending[round]
        self._absorb_prefix()

    def _absorb_prefix(self) -> None:
        """Absorb in decision order up to the first outcome still missing."""
        for handle in sorted(self.pending):
            entry = self.pending[handle]
            if entry.reward is None:
                return
            self.set.add(entry.played, entry.reward)
            self._watch()
            del self.pending[handle]


def minimum_reserve_by_search(certificates: Sequence[float]) -> float:
    """Smallest R with R + every prefix sum >= 0, by bisection: what (14) must equal."""

    def enough(reserve: float) -> bool:
        return all(reserve + sum(certificates[: t + 1]) >= 0.0 for t in range(len(certificates)))

    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0 + sum(abs(value) for value in certificates)
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
