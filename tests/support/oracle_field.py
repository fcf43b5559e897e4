"""The systems of the field as plain NumPy episodes, written from their papers' formulas alone.

One ellipsoid (the log-det radius), told baseline means, outcomes at once. ``benchmarks/field.py`` and the
tests compare the package with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Terms(NamedTuple):
    """What a learner is told before the first round."""

    dim: int
    sigma: float
    norm_bound: float = 1.5
    ridge: float = 0.1
    delta: float = 0.05
    alpha: float = 0.05
    reserve: float = 0.0
    floor: float = 0.0  # r_l
    phase: int = 20
    learns_plays_only: bool = False


class Ellipsoid:
    """V = lambda I + sum x x', centre V^-1 m, and the log-det radius."""

    def __init__(self, terms: Terms, delta: float) -> None:
        self.terms, self.delta = terms, delta
        self.shape, self.moment = terms.ridge * np.eye(terms.dim), np.zeros(terms.dim)
        self._renew()

    def add(self, rows: Array, rewards: Array) -> None:
        self.shape = self.shape + rows.T @ rows
        self.moment = self.moment + rows.T @ rewards
        self._renew()

    def _renew(self) -> None:
        terms = self.terms
        self.inverse = np.linalg.inv(self.shape)
        self.centre = self.inverse @ self.moment
        log_det = np.linalg.slogdet(self.shape)[1] - terms.dim * math.log(terms.ridge)
        noise = terms.sigma * math.sqrt(log_det + 2.0 * math.log(1.0 / self.delta))
        self.radius = noise + math.sqrt(terms.ridge) * terms.norm_bound

    def width(self, rows: Array) -> Array:
        norms: Array = np.sqrt(np.maximum(np.sum(rows @ self.inverse * rows, axis=-1), 0.0))
        return self.radius * norms

    def lower(self, rows: Array) -> Array:
        return rows @ self.centre - self.width(rows)

    def upper(self, rows: Array) -> Array:
        return rows @ self.centre + self.width(rows)


class Books:
    """What is remembered of the rounds so far."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.c = terms, 1.0 - terms.alpha
        self.told = 0.0  # alpha sum_F mu - c sum_S mu
        self.z = np.zeros(terms.dim)  # plays
        self.v = np.zeros(terms.dim)  # baselines they displaced
        self.w = np.zeros(terms.dim)  # baselines of fallback rounds
        self.g = np.zeros(terms.dim)  # absorbed plays
        self.plays = self.fallbacks = 0
        self.realised = 0.0  # rewards of absorbed plays
        self.bank = terms.reserve
        self.rounds = 0


Margins = Callable[[Ellipsoid, Books, Array, Array, float], Array]


def clucb(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    base = books.terms.reserve + books.told - books.c * mean
    return base + region.lower(books.z + pool)


def clucb_unknown(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    terms = books.terms
    earned = terms.alpha * max(float(region.lower(books.w)), books.fallbacks * terms.floor)
    owed = books.c * float(region.upper(books.v + baseline))
    return terms.reserve + region.lower(books.z + pool) + earned - owed


def clucb2(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    base = books.terms.reserve + books.told - books.c * mean
    m, delta = books.plays, books.terms.delta
    slack = (m + 20) * (math.log((m + 20) / 20) + 2.0 * math.log(2.0 / delta))
    realised = books.realised - books.terms.sigma * math.sqrt(slack)
    claims = [
        region.lower(books.z + pool),
        region.lower(books.z) + region.lower(pool),
        realised + region.lower(books.z - books.g + pool),
    ]
    best: Array = np.max(claims, axis=0)
    return base + best


def clucb2t(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    left = books.terms.phase - 1 - books.rounds % books.terms.phase
    ahead = books.terms.alpha * left * books.terms.floor
    return clucb2(region, books, pool, baseline, mean) + ahead


def lcbce(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    return books.bank + region.lower(pool) - books.c * mean


def maximin(region: Ellipsoid, books: Books, pool: Array, baseline: Array, mean: float) -> Array:
    return region.lower(pool - books.c * baseline)


class System(NamedTuple):
    """A gate by its margins and by how it chooses."""

    margins: Margins
    proposes: bool = True
    split: bool = False  # half of delta for the ellipsoid
    by_certificate: bool = False


SYSTEMS = {
    "clucb": System(clucb),
    "clucb-unknown": System(clucb_unknown),
    "clucb2": System(clucb2, proposes=False, split=True),
    "clucb2t": System(clucb2t, proposes=False, split=True),
    "lcbce": System(lcbce),
    "maximin": System(maximin, by_certificate=True),
}


class Story(NamedTuple):
    """One episode: the actions (-1: baseline), and how near each choice was to another one."""

    actions: Array  # (T,)
    closeness: Array  # (T,) smallest gap to a tie or to a margin of 0
    ratio: float
    fallback: float
    least: float  # smallest D at the rounds that the system promises


def play(
    name: str,
    terms: Terms,
    pools: Array,
    baselines: Array,
    theta: Array,
    noise: Array,
    history: tuple[Array, Array],
) -> Story:
    """An episode on pools (T, K, d), baselines (T, d), noise (T, K+1), the last column the baseline's."""
    system = SYSTEMS[name]
    region = Ellipsoid(terms, terms.delta / 2.0 if system.split else terms.delta)
    region.add(*history)
    books = Books(terms)
    rounds = len(pools)
    actions, closeness = np.empty(rounds, dtype=int), np.empty(rounds)
    reward = deficit = 0.0
    deficit, least = terms.reserve, math.inf
    for t in range(rounds):
        pool, baseline = pools[t], baselines[t]
        mean = float(baseline @ theta)
        margins = system.margins(region, books, pool, baseline, mean)
        scores = margins if system.by_certificate else region.upper(pool)
        fit = np.ones(len(pool), dtype=bool) if system.proposes else margins >= 0.0
        ranked = np.where(fit, scores, -np.inf)
        best = int(np.argmax(ranked))
        runner_up = np.partition(ranked, -2)[-2] if len(pool) > 1 else -np.inf
        closeness[t] = np.min(np.abs(margins[best] if system.proposes else margins))
        if fit.any():
            closeness[t] = min(closeness[t], ranked[best] - runner_up)
        plays = bool(fit.any() and margins[best] >= 0.0)
        actions[t] = best if plays else -1
        x = pool[best] if plays else baseline
        f = float(x @ theta)
        outcome = f + noise[t, best if plays else -1]
        reward += f
        deficit += f - books.c * mean
        books.rounds += 1
        if name != "clucb2t" or books.rounds % terms.phase == 0:
            least = min(least, deficit)
        if plays:
            books.bank = float(margins[best])
            books.told -= books.c * mean
            books.z, books.v, books.g = books.z + x, books.v + baseline, books.g + x
            books.plays += 1
            books.realised += outcome
        else:
            books.bank += terms.alpha * mean
            books.told += terms.alpha * mean
            books.w = books.w + baseline
            books.fallbacks += 1
        if plays or not terms.learns_plays_only:
            region.add(x[None, :], np.array([outcome]))
    total = float((baselines @ theta).sum())
    return Story(actions, closeness, reward / total, float(np.mean(actions < 0)), least)
