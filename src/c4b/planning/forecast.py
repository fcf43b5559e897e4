"""Forecasts what a policy would do, by simulations that reflect the uncertainty of a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.evidence import LinearModel
from c4b.planning.kept_steps import KeptSteps
from c4b.policies import Decision, Policy
from c4b.policies.compiled.compiled_gate import CompiledGate

TAIL = 0.05
"""Probability beyond each end of a range."""
MEASURED = 1
"""Marks the stream of random numbers for errors of measuring; a simulation itself uses none of it."""
SMALLEST_SHARE = 0.25
"""Of the incumbent's estimated reward, which a simulated one is taken to earn at least when gains are
given as a share of it: nothing is a share of an incumbent that earns nothing."""
MOMENTS = 60
"""Rounds at which the course of a forecast is given, at most."""
FEATURES_OF_ONE = 32
"""From so many features on, outcomes are absorbed together: one costs as much as many, and up to d³."""
Progress = Callable[[str, int, int], None]
"""Called with ("rows" or "simulations", how many are done, how many there are)."""


def unseen(unit: str, done: int, total: int) -> None:
    """Default progress function, which does nothing."""


class Traffic(NamedTuple):
    """The rounds to draw from, and what is known of the true parameters."""

    pools: Sequence[Array]
    """Features of the actions that could be chosen in each row, each of shape (K, d)."""
    baselines: NDArray[np.int64]
    """Index of the incumbent's action in each row."""
    history: Array
    """Features of past rows that the policy learns from before it starts, shape (h, d)."""
    estimate: Array
    covariance: Array
    residuals: Array
    """Residuals of the log's rewards, which are drawn as noise; empty if rewards have only two values."""


class Range3(NamedTuple):
    """The median and the 5 % and 95 % ends of the simulations.

    A further simulation would lie below ``low``, and above ``high``, with a probability of 5 % each.
    """

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """Ranges over simulations.

    For numbers of rounds beyond the simulated ones, the later loss against the best actions is taken to
    be between zero and the loss in the last quarter of the simulation. The range then starts at the 5 %
    end for the larger loss and stops at the 95 % end for zero loss.
    """

    simulations: int
    rounds: int
    """Number of rounds of each simulation."""
    opens_at: Range3
    """The first round with another action than the incumbent's; infinite if there is none."""
    fallback: Range3
    """Share of rounds with the incumbent's action."""
    uplift: dict[int, Range3]
    """For each number of rounds, the mean reward above the incumbent's, as a share of the incumbent's. It
    is what a measurement would show: with the noise of both rewards in rounds in which the actions
    differ."""
    pays_from: Range3
    """From this round on, the total is above what the incumbent alone would have earned; infinite if
    never."""
    alarms: float
    """Share of simulations with an alarm."""
    course: dict[int, Range3]
    """The uplift up to a round, without noise, for at most MOMENTS rounds."""

    @property
    def ends_are_extremes(self) -> bool:
        """Whether, with so few simulations, ranges end at the lowest and the highest one."""
        return TAIL * (self.simulations + 1) < 1.0


class Episode(NamedTuple):
    """The true means of one simulation, round by round."""

    earned: Array
    incumbent: Array
    best: Array
    fell_back: NDArray[np.bool_]
    alarm: bool
    noise: float
    """Standard deviation of the measured gain of one round around its mean."""


class Simulator:
    """Runs a policy on drawn rounds.

    The true parameters of each simulation are drawn around the estimate.
    """

    def __init__(
        self, traffic: Traffic, model: LinearModel, policy: str, alpha: float, reserve: float,
        reward_range: tuple[float, float],
    ) -> None:  # fmt: skip
        self.traffic, self.model, self.policy = traffic, model, policy
        self.alpha, self.reserve, self.range = alpha, reserve, reward_range
        values, vectors = np.linalg.eigh(traffic.covariance)
        self._spread = vectors * np.sqrt(np.maximum(values, 0.0))  # rounding may leave some below 0

    def run(
        self, simulations: int, rounds: int, horizons: list[int], seed: int = 0,
        executor: Executor | None = None, kept: KeptSteps | None = None, progress: Progress = unseen,
    ) -> Forecast:  # fmt: skip
        """Run the simulations, in this process or on an executor, with the same result.

        Stored simulations are not run again.
        """
        opened, fallback, pays, alarms = [], [], [], 0
        uplift: dict[int, tuple[list[float], list[float]]] = {each: ([], []) for each in horizons}
        moments = np.unique(np.linspace(1, rounds, min(MOMENTS, rounds)).astype(int))
        course: list[Array] = []
        least = SMALLEST_SHARE * self.expected_baseline()
        steps = kept if kept is not None else KeptSteps(None, {})
        episodes = self._episodes(simulations, rounds, seed, executor, steps)
        for n, episode in enumerate(episodes):
            progress("simulations", n + 1, simulations)
            alarms += episode.alarm
            fell_back, gains = episode.fell_back, episode.earned - episode.incumbent
            opened.append(float("inf") if fell_back.all() else float(np.argmin(fell_back)) + 1.0)
            fallback.append(float(fell_back.mean()))
            pays.append(_pays_from(gains))
            base = max(float(episode.incumbent.mean()), least)
            course.append(np.cumsum(gains)[moments - 1] / moments / (base if base > 0.0 else np.nan))
            error = episode.noise * float(np.random.default_rng([seed, n, MEASURED]).normal())
            hopeful = float((episode.best - episode.incumbent).mean())
            rates = hopeful - _late(episode.best - episode.earned), hopeful
            for horizon, both in uplift.items():
                for values, rate in zip(both, rates, strict=True):
                    mean = _mean_up_to(gains, horizon, rate) + error / math.sqrt(horizon)
                    values.append(mean / base if base > 0.0 else np.nan)
        return Forecast(
            simulations=simulations,
            rounds=rounds,
            opens_at=_range(opened),
            fallback=_range(fallback),
            uplift={horizon: _joined(*values) for horizon, values in uplift.items()},
            pays_from=_range(pays),
            alarms=alarms / simulations,
            course={
                int(n): _range(values)
                for n, values in zip(moments, np.transpose(course).tolist(), strict=True)
            },
        )

    def _episodes(
        self, simulations: int, rounds: int, seed: int, executor: Executor | None, kept: KeptSteps
    ) -> Iterator[Episode]:
        known = {n: kept.find(f"simulation-{n}", Episode) for n in range(simulations)}
        started = {}
        if executor is not None:
            started = {
                n: executor.submit(self.episode, rounds, [seed, n])
                for n in range(simulations)
                if known[n] is None
            }
        for n in range(simulations):
            episode = known.pop(n)
            if episode is None:
                episode = started[n].result() if n in started else self.episode(rounds, [seed, n])
                kept.keep(f"simulation-{n}", episode)
            yield episode

    def episode(self, rounds: int, seed: list[int]) -> Episode:
        """One simulated deployment."""
        draw = np.random.default_rng(seed)
        given = self.traffic
        truth = given.estimate + self._spread @ draw.normal(size=self._spread.shape[1])
        policy = Policy(
            self.policy, self.model, alpha=self.alpha, reserve=self.reserve,
            baseline_nonnegative=self.range[0] >= 0.0,
        )  # fmt: skip
        if isinstance(policy.gate, CompiledGate):
            policy.gate.leaves_out_margins = False  # faster where nobody asks for them later
        if len(given.history):
            policy.learn(given.history, self._rewards(self._means(given.history @ truth), draw))
        rows = draw.integers(0, len(given.pools), rounds)
        earned, incumbent, best = np.empty(rounds), np.empty(rounds), np.empty(rounds)
        fell_back = np.empty(rounds, dtype=bool)
        outcomes = _Outcomes(policy)
        for n, row in enumerate(rows):
            pool, base = given.pools[row], int(given.baselines[row])
            means = self._means(pool @ truth)
            decision = policy.decide(pool, pool[base])
            played = base if decision.action is None else decision.action
            earned[n], incumbent[n], best[n] = means[played], means[base], means.max()
            fell_back[n] = played == base
            outcomes.add(
                decision, pool[played], float(self._rewards(means[played : played + 1], draw)[0])
            )
        noise = self._variances(earned) + self._variances(incumbent)
        spread = math.sqrt(float(np.where(fell_back, 0.0, noise).mean()))
        return Episode(earned, incumbent, best, fell_back, policy.alarm is not None, spread)

    def expected_baseline(self) -> float:
        """The incumbent's mean reward according to the estimate."""
        given = self.traffic
        own = [pool[n] @ given.estimate for pool, n in zip(given.pools, given.baselines, strict=True)]
        return float(self._means(np.array(own)).mean())

    def _means(self, means: Array) -> Array:
        low, high = self.range
        clipped: Array = np.clip(means, low, high)
        return clipped

    def _variances(self, means: Array) -> Array:
        """Of rewards with these means."""
        low, high = self.range
        if not len(self.traffic.residuals):
            return (means - low) * (high - means)
        return np.full(len(means), float(self.traffic.residuals.var()))

    def _rewards(self, means: Array, draw: np.random.Generator) -> Array:
        low, high = self.range
        if not len(self.traffic.residuals):
            return np.where(draw.random(len(means)) < (means - low) / (high - low), high, low)
        return self._means(means + draw.choice(self.traffic.residuals, len(means)))


class _Outcomes:
    """What a simulated policy is told: each outcome at once, or d / 4 of them together, a little late."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.features, self.rewards = policy, list[Array](), list[float]()
        gate, dim = policy.gate, policy.model.dim
        self.together = 1
        if isinstance(gate, CompiledGate) and dim >= FEATURES_OF_ONE:
            plain = gate.composition.learns == "all" and gate.composition.earned == "none"
            self.together = dim // 4 if plain else 1

    def add(self, decision: Decision, features: Array, reward: float) -> None:
        if self.together == 1:
            self.policy.observe(decision, reward)
            return
        self.features.append(features)
        self.rewards.append(reward)
        if len(self.rewards) == self.together:
            self.policy.gate.learn(np.array(self.features), np.array(self.rewards))
            self.features, self.rewards = [], []


def _late(gains: Array) -> float:
    return float(gains[-max(1, len(gains) // 4) :].mean())


def _mean_up_to(gains: Array, horizon: int, beyond: float) -> float:
    """Mean gain of the first ``horizon`` rounds, with the rate ``beyond`` after the simulated ones."""
    if horizon <= len(gains):
        return float(gains[:horizon].mean())
    return (float(gains.sum()) + (horizon - len(gains)) * beyond) / horizon


def _pays_from(gains: Array) -> float:
    """The round after which the sum of gains stays positive, if the last quarter's rate goes on."""
    total = np.cumsum(gains)
    late = _late(gains)
    if total[-1] > 0.0:
        losing = np.flatnonzero(total <= 0.0)
        return float(losing[-1] + 2 if len(losing) else 1)
    return len(gains) - total[-1] / late if late > 0.0 else float("inf")


def _range(values: list[float]) -> Range3:
    """As many simulations are beyond each end as make a further one lie there with probability TAIL; with
    few simulations the ends are the smallest and the largest."""
    ordered, count = sorted(values), len(values)
    tail = max(math.floor(TAIL * (count + 1)), 1)
    return Range3(ordered[tail - 1], ordered[(count - 1) // 2], ordered[count - tail])


def _joined(cautious: list[float], hopeful: list[float]) -> Range3:
    low, high = _range(cautious), _range(hopeful)
    return Range3(low.low, (low.middle + high.middle) / 2.0, high.high)
