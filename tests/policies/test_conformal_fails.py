"""docs/conformal.md: split conformal intervals (Lei et al. 2018) keep their promise and fail this job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import c4b
from c4b._validate import Array

PAGE = (Path(__file__).parents[2] / "docs" / "conformal.md").read_text(encoding="utf-8")
THETA = np.array([1.0, 0.6, 0.0, 0.0, 0.0])
BASELINE = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
EPISODES, ROUNDS, ALPHA, DELTA = 32, 100, 0.05, 0.05


class Conformal(NamedTuple):
    """A ridge regression on the first rows and the quantile of the residuals of the others."""

    centre: Array
    half_width: float

    @classmethod
    def fitted(cls, x: Array, y: Array, half: int) -> Conformal:
        shape = x[:half].T @ x[:half] + 0.1 * np.eye(x.shape[1])
        centre = np.linalg.solve(shape, x[:half].T @ y[:half])
        residuals = np.sort(np.abs(y[half:] - x[half:] @ centre))
        rank = int(np.ceil((1.0 - DELTA) * (len(residuals) + 1)))
        return cls(centre, float(residuals[rank - 1]))


def rows(rng: np.random.Generator, count: int, rho: float) -> Array:
    """Candidates (1, rho u) with u uniform on the sphere."""
    raw = rng.normal(size=(count, 4))
    raw *= rho / np.linalg.norm(raw, axis=1)[:, None]
    return np.concatenate([np.ones((count, 1)), raw], axis=1)


def broken_promises(worse: bool, sigma: float = 0.1) -> tuple[int, int]:
    """Episodes in which D fell below 0: of a gate that trusts conformal intervals, and of refresh.

    Both have 200 rows of the baseline, and candidates in other directions, all of them ``worse`` than the
    baseline or not. The first is even told the baseline's mean and banks the lower end of what it plays.
    """
    broken = np.zeros(2, dtype=int)
    for episode in range(EPISODES):
        rng = np.random.default_rng(episode)
        past = np.tile(BASELINE, (200, 1))
        outcomes = past @ THETA + sigma * rng.normal(size=200)
        set_ = Conformal.fitted(past, outcomes, half=100)
        policy = c4b.Policy("refresh", c4b.LinearModel(5, sigma, 1.5), alpha=ALPHA)
        policy.learn(past, outcomes)
        truth, bank, failed = np.zeros(2), 0.0, np.zeros(2, dtype=bool)
        for _ in range(ROUNDS):
            pool, noise = rows(rng, 8, 0.8), sigma * rng.normal()
            if worse:
                pool[:, 1] = -np.abs(pool[:, 1])
            low = pool @ set_.centre - set_.half_width
            best = int(np.argmax(low))
            after = bank + low[best] - (1.0 - ALPHA)
            plays = after >= 0.0
            bank = after if plays else bank + ALPHA
            decision = policy.decide(pool, BASELINE)
            played = BASELINE if decision.action is None else pool[decision.action]
            policy.observe(decision.id, float(played @ THETA + noise))
            truth += [(pool[best] if plays else BASELINE) @ THETA, played @ THETA] - np.full(2, 1 - ALPHA)
            failed |= truth < 0.0
        broken += failed
    return int(broken[0]), int(broken[1])


def coverage(sigma: float = 1.0) -> tuple[float, float]:
    """Share of new outcomes inside: of a random candidate, and of the one with the best prediction."""
    inside = np.zeros(2)
    for episode in range(2000):
        rng = np.random.default_rng(episode)
        past = rows(rng, 108, 0.8)
        set_ = Conformal.fitted(past, past @ THETA + sigma * rng.normal(size=108), half=8)
        pool = rows(rng, 64, 0.8)
        for n, x in enumerate((pool[0], pool[int(np.argmax(pool @ set_.centre))])):
            outcome = x @ THETA + sigma * rng.normal()
            inside[n] += abs(outcome - x @ set_.centre) <= set_.half_width
    return float(inside[0] / 2000), float(inside[1] / 2000)


def half_width(sigma: float, count: int) -> float:
    rng = np.random.default_rng(0)
    past = rows(rng, count, 0.8)
    return Conformal.fitted(past, past @ THETA + sigma * rng.normal(size=count), count // 2).half_width


@pytest.fixture(scope="module")
def said() -> list[float]:
    """The numbers of the page's table, by row."""
    cells = [line.split("|")[2] for line in PAGE.splitlines() if line.startswith("| ")][1:]
    return [float(found) for cell in cells for found in re.findall(r"\d+\.?\d*", cell)]


def test_a_gate_that_trusts_them_breaks_its_promise(said: list[float]) -> None:
    random, worse = broken_promises(worse=False), broken_promises(worse=True)
    assert random[0] > 3 * DELTA * EPISODES
    assert worse[0] > EPISODES / 2
    assert random[1] == worse[1] == 0
    assert said[:4] == [worse[0], EPISODES, random[0], EPISODES]


def test_they_keep_their_own_promise_but_not_for_what_is_chosen(said: list[float]) -> None:
    of_any, of_the_best = coverage()
    assert of_any >= 1.0 - DELTA - 0.015
    assert of_the_best < 1.0 - DELTA - 0.05
    assert said[4:6] == [round(100.0 * of_any, 1), round(100.0 * of_the_best, 1)]


def test_they_do_not_shrink(said: list[float]) -> None:
    """After 20,000 rows an interval is as wide as the noise, for ever."""
    width = half_width(0.3, 20_000)
    assert width == pytest.approx(1.96 * 0.3, rel=0.05)
    evidence, rng = c4b.Evidence(c4b.LinearModel(5, 0.3, 1.5)), np.random.default_rng(0)
    past = rows(rng, 20_000, 0.8)
    evidence.learn(past, past @ THETA + 0.3 * rng.normal(size=20_000))
    ours = evidence.upper(BASELINE) - evidence.lower(BASELINE)
    assert said[6:] == [round(width, 2), round(ours / 2.0, 3)]
