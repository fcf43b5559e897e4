"""Plans a deployment from a log, or from a few rates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.diagnostics.ridge_fit import estimated
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.evidence import LinearModel
from c4b.features import FeatureBuilder
from c4b.logs import Log, StreamedLog
from c4b.logs.fingerprint import fingerprint
from c4b.planning.forecast import Forecast, Progress, Simulator, Traffic, unseen
from c4b.planning.kept_steps import KeptSteps
from c4b.planning.proposal import ORIGINS, Proposal
from c4b.planning.truth import Truth, possible_truth
from c4b.policies import DEFAULT_POLICY
from c4b.replay import Terms
from c4b.replay.action_pool import ActionPool, executed_frame, fitted

WEEKS = (1, 4, 12)
NORM_MARGIN = 1.5
MOST_ROWS = 2000
"""Rows whose pools a simulation draws from, and rows of history."""
MOST_RESIDUALS = 100_000
FEWEST_ROUNDS, MOST_ROUNDS = 2_000, 10_000
"""Of a simulation whose length nobody chose."""
MOST_WORK = 4_000_000
"""Rounds of such a simulation, beyond the fewest, times d (d + K): rounds of many features take long."""
LOW_VARIANCE = 0.5
"""Share of the largest possible variance below which the set ``bounded-3`` is proposed."""
VERSION = 2
"""Of what a folder of finished steps holds."""
CLICKS = "clicks"
"""The policy for that set where no reward is negative."""


@dataclass(frozen=True)
class Plan:
    """The numbers to declare, the forecast and the verdict."""

    proposal: Proposal
    forecast: Forecast
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data for JSON."""
        shown = asdict(self)
        shown["proposal"]["risk"] = self.proposal.risk
        shown["forecast"]["uplift"] = {
            f"{weeks} week{'s' * (weeks > 1)}": value
            for weeks, value in zip(WEEKS, self.forecast.uplift.values(), strict=True)
        }
        return shown


def plan_log(
    log: Log | StreamedLog,
    terms: Terms,
    *,
    rounds_a_day: float,
    builder: FeatureBuilder | None = None,
    history: int | None = None,
    simulations: int = 20,
    rounds: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    resume: str | Path | None = None,
    progress: Progress = unseen,
) -> Plan:
    """Plan a deployment from a log that took every action at random with positive probability.

    Each row may have its own candidates and its own incumbent: see ``Columns``.

    The first half of the rows is used to choose features, the norm bound and the set; it must not be used
    as evidence. The second half is used for the forecast, and its rows may be given as history before the
    first decision.

    Parameters
    ----------
    terms: as for a replay; ``past`` is not used.
    rounds_a_day: the expected traffic.
    builder: features of (action, context); the default is that of :func:`c4b.replay.replay_log`.
    history: number of rows of the incumbent alone that the policy learns from; their features come from
        the second half. By default the policy learns from MOST_ROWS rows of the second half as they were
        executed.
    rounds: rounds of each simulation; by default twelve weeks, but at least 2,000 and at most 10,000, and
        fewer if there are many features and actions.
    executor: runs the simulations, for example in the processes of a cluster; by default they run in this
        process.
    resume: folder that stores finished passes over the rows and finished simulations. The same call, or
        one with more simulations, continues from there.
    """
    rounds_a_day = _checked_traffic(rounds_a_day)
    for role in ("action", "reward"):
        if getattr(log.columns, role) is None:
            raise InvalidInput(role, None, "name its column in Columns: a plan needs what was executed")
    first, second = log.split(len(log) // 2)
    pool = ActionPool(log, terms.baseline)
    builder = fitted(builder, first, pool)
    if len(first) <= 2 * builder.dim:
        raise LogCannotAnswer(
            f"{len(first)} rows are too few to choose {builder.dim} coefficients; give fewer features"
        )
    if rounds is None:
        rounds = _length(rounds_a_day, builder.dim, pool.most_choices(second))
    identity = _identity(log, terms, builder, history=history, rounds=rounds, seed=seed)
    if resume is not None:
        identity["content"] = fingerprint(log)
    kept = KeptSteps(None if resume is None else Path(resume), identity)
    reading = _Reading(progress, passes=4 if terms.norm_bound is not None else 5, rows=len(second))
    past = kept.step("first-half", _Seen, lambda: _Seen.of(pool, reading(first, 0), terms.reward_range))
    seen = kept.step("second-half", _Seen, lambda: _Seen.of(pool, reading(second, 1), terms.reward_range))
    truth = kept.step("truth", Truth, lambda: _truth(second, builder, reading, seen, terms.reward_range))
    norm, said = terms.norm_bound, "declared"
    if norm is None:
        guess = kept.step("norm", _Guess, lambda: _Guess.of(reading(first, 4), builder))
        norm = NORM_MARGIN * float(np.linalg.norm(guess.estimate))
        if norm == 0.0:
            raise LogCannotAnswer(
                "every reward in half of the log is 0, which suggests no norm bound: give a longer log, "
                "or norm_bound"
            )
        said = f"{NORM_MARGIN:g} times the norm of the first half's estimate; not to be changed later"
    offered = list(pool.rounds(second.head(MOST_ROWS), builder))
    traffic = Traffic(
        pools=[each.features for each in offered],
        baselines=np.array([each.baseline for each in offered]),
        history=_history(second, builder, pool, history),
        estimate=truth.estimate,
        covariance=truth.covariance,
        residuals=np.empty(0) if seen.two_values else _residuals(second, builder, truth.estimate),
    )
    declared = _declared(terms, builder.dim, norm, said, past.mean)
    return _plan(
        traffic, terms, declared, rounds_a_day, simulations, rounds, seed, executor, kept,
        progress,
    )  # fmt: skip


def _checked_traffic(rounds_a_day: object) -> float:
    """So many rounds a day that the numbers of WEEKS differ in rounds, too."""
    rounds = _validate.positive("rounds_a_day", rounds_a_day, "must be a positive number")
    if len(set(_horizons(rounds))) < len(WEEKS):
        remedy = f"is too few for a forecast of {', '.join(map(str, WEEKS))} weeks; give at least 0.2"
        raise InvalidInput("rounds_a_day", rounds, remedy)
    return rounds


def _horizons(rounds_a_day: float) -> list[int]:
    """Rounds in each number of WEEKS."""
    return [max(1, round(7 * weeks * rounds_a_day)) for weeks in WEEKS]


def _length(rounds_a_day: float, dim: int, actions: int) -> int:
    """Rounds of a simulation: twelve weeks, but not too few and not too many."""
    most = min(MOST_ROUNDS, MOST_WORK // (dim * (dim + actions)))
    return max(min(_horizons(rounds_a_day)[-1], most), FEWEST_ROUNDS)


def _identity(
    log: Log | StreamedLog, terms: Terms, builder: FeatureBuilder, **numbers: int | None
) -> dict[str, Any]:
    """Which plan this is, as plain data. More simulations, or other traffic of the same length, are no
    other plan."""
    return {
        "version": VERSION,
        "log": log.name,
        "rows": len(log),
        "columns": repr(log.columns),
        "terms": {key: repr(value) for key, value in asdict(terms).items()},
        "features": builder.names,
        "numbers": numbers,
    }


class _Reading:
    """Passes over halves of the log that report their progress."""

    def __init__(self, progress: Progress, passes: int, rows: int) -> None:
        self.progress, self.rows, self.total = progress, rows, passes * rows

    def __call__(self, log: Log | StreamedLog, passes_before: int) -> Iterator[Log]:
        done = passes_before * self.rows
        for batch in log.batches():
            yield batch
            done += len(batch)
            self.progress("rows", done, self.total)


def _truth(
    log: Log | StreamedLog, builder: FeatureBuilder, reading: _Reading, seen: _Seen,
    reward_range: tuple[float, float],
) -> Truth:  # fmt: skip
    passes, (low, high) = count(2), reward_range

    def variances(rewards: Array, means: Array) -> Array:
        if not seen.two_values:
            return np.square(rewards - means)
        inside = np.clip(means, low, high)
        return (inside - low) * (high - inside)

    return possible_truth(lambda: _executed(reading(log, next(passes)), builder), builder.dim, variances)


class _Guess(NamedTuple):
    """Coefficients that the norm bound is chosen by."""

    estimate: Array

    @classmethod
    def of(cls, batches: Iterator[Log], builder: FeatureBuilder) -> _Guess:
        return cls(estimated(lambda: _executed(batches, builder), builder.dim)[0])


class _Seen(NamedTuple):
    """What a part of the log says without features."""

    mean: float
    """Mean reward of all rows."""
    two_values: bool
    """Whether every reward was the smallest or the largest possible one."""

    @classmethod
    def of(cls, pool: ActionPool, batches: Iterator[Log], reward_range: tuple[float, float]) -> _Seen:
        low, high = reward_range
        counts, total, others, two_values = np.zeros(len(pool.labels)), 0.0, 0, True
        for batch in batches:
            rewards, taken = batch.numbers("reward"), pool.taken(batch)
            counts += np.bincount(taken, minlength=len(counts))
            total += float(rewards.sum())
            others += int((taken != pool.incumbents(batch)).sum())
            two_values &= bool(np.all((rewards == low) | (rewards == high)))
        if counts.min() == 0 and not pool.listed_by_row:
            never = pool.labels[int(np.argmin(counts))]
            raise LogCannotAnswer(f"half of the log never took {never!r}: too little is known of it")
        if others in (0, int(counts.sum())):
            said = "always" if others == 0 else "never"
            raise LogCannotAnswer(f"half of the log {said} took the incumbent's action: it was not drawn")
        return cls(total / float(counts.sum()), two_values)


def _executed(batches: Iterator[Log], builder: FeatureBuilder) -> Iterator[tuple[Array, Array]]:
    """Features and rewards of what was executed, some rows at a time."""
    for batch in batches:
        yield builder.transform(executed_frame(batch)), batch.numbers("reward")


def _residuals(log: Log | StreamedLog, builder: FeatureBuilder, estimate: Array) -> Array:
    """Of every row, or of rows at equal distances in a log of more than MOST_RESIDUALS."""
    step, offset, kept = -(-len(log) // MOST_RESIDUALS), 0, []
    for x, y in _executed(log.batches(), builder):
        kept.append((y - x @ estimate)[offset::step])
        offset = (offset - len(y)) % step
    return np.concatenate(kept)


def plan_rates(
    baseline_rate: float,
    other_rates: list[float],
    *,
    rounds_a_day: float,
    alpha: float = 0.05,
    reserve: float = 0.0,
    history: int = 0,
    policy: str = DEFAULT_POLICY,
    delta: float = 0.05,
    simulations: int = 20,
    rounds: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = unseen,
) -> Plan:
    """Plan a deployment without a log, from guessed success rates of the incumbent and of other actions.

    >>> plan = plan_rates(0.3, [0.6], rounds_a_day=500, history=100, simulations=2, rounds=50)
    >>> plan.proposal.risk
    '5 % of 1,050 a week: at most 52 a week at risk, and 0 once'
    """
    rates = np.array([baseline_rate, *other_rates], dtype=float)
    if len(rates) < 2 or not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InvalidInput("rates", rates.tolist(), "must be at least two rates between 0 and 1")
    rounds_a_day = _checked_traffic(rounds_a_day)
    history = _validate.count("history", history, 0, "must be a number of rows")
    features = np.column_stack([np.ones(len(rates)), np.eye(len(rates))[:, 1:]])
    truth = np.concatenate([rates[:1], rates[1:] - rates[0]])
    traffic = Traffic(
        pools=[features],
        baselines=np.zeros(1, dtype=np.int64),
        history=np.tile(features[0], (history, 1)),
        estimate=truth,
        covariance=np.zeros((len(rates), len(rates))),
        residuals=np.empty(0),
    )
    terms = Terms("0", policy=policy, alpha=alpha, reserve=reserve, delta=delta)
    norm = max(1.0, NORM_MARGIN * float(np.linalg.norm(truth)))
    said = f"{NORM_MARGIN:g} times the norm of the guessed rates, at least 1"
    declared = _declared(terms, len(rates), norm, said, float(rates.mean()))
    return _plan(
        traffic, terms, declared, rounds_a_day, simulations, rounds, seed, executor,
        progress=progress,
    )  # fmt: skip


def _history(
    log: Log | StreamedLog, builder: FeatureBuilder, pool: ActionPool, rows: int | None
) -> Array:
    """Features of the first rows as executed, or of the incumbent's action in so many rows."""
    if rows is None:
        return builder.transform(executed_frame(log.head(MOST_ROWS)))
    rows = _validate.count("history", rows, 0, "must be a number of rows")
    some = pool.incumbent_features(log.head(MOST_ROWS), builder)
    return some[np.arange(rows) % len(some)]


class _Declared(NamedTuple):
    """The model and the policy to declare, and where their numbers come from."""

    model: LinearModel
    policy: str
    origins: dict[str, str]


def _declared(terms: Terms, dim: int, norm: float, norm_origin: str, mean: float) -> _Declared:
    """The set that learns the noise where rewards vary much less than their range says; ``mean`` is that
    of rows that are no evidence."""
    low, high = terms.reward_range
    origins = {**ORIGINS, "norm_bound": norm_origin}
    worst = ((high - low) / 2.0) ** 2
    if (mean - low) * (high - mean) >= LOW_VARIANCE * worst:
        model = LinearModel(dim=dim, noise=(high - low) / 2.0, norm_bound=norm, delta=terms.delta)
        return _Declared(model, terms.policy, origins)
    model = LinearModel.bounded(dim, norm, terms.reward_range, delta=terms.delta)
    policy = CLICKS if terms.policy == DEFAULT_POLICY and low == 0.0 else terms.policy
    origins["confidence"] = (
        f"LinearModel.bounded learns the noise: rewards of mean {mean:.2g} vary less than they could"
    )
    origins["noise"] = "the declared range; nothing to choose"
    return _Declared(model, policy, origins)


def _plan(
    traffic: Traffic, terms: Terms, declared: _Declared, rounds_a_day: float,
    simulations: int, rounds: int | None, seed: int, executor: Executor | None,
    kept: KeptSteps | None = None, progress: Progress = unseen,
) -> Plan:  # fmt: skip
    simulations = _validate.count("simulations", simulations, 2, "must be at least 2")
    horizons = _horizons(rounds_a_day)
    if rounds is None:
        rounds = _length(rounds_a_day, declared.model.dim, len(traffic.pools[0]))
    rounds = _validate.count("rounds", rounds, 10, "must be at least 10")
    model, policy = declared.model, declared.policy
    simulator = Simulator(traffic, model, policy, terms.alpha, terms.reserve, terms.reward_range)
    proposal = Proposal(
        policy=policy,
        noise=model.noise,
        norm_bound=model.norm_bound,
        dim=model.dim,
        confidence=model.confidence or f"as {policy} chooses",
        alpha=terms.alpha,
        reserve=terms.reserve,
        history=len(traffic.history),
        baseline_reward=simulator.expected_baseline(),
        rounds_a_week=7.0 * rounds_a_day,
        origins=declared.origins,
    )
    forecast = simulator.run(simulations, rounds, horizons, seed, executor, kept, progress)
    return Plan(proposal, forecast, _verdict(forecast, horizons[-1]))


def _verdict(forecast: Forecast, last: int) -> str:
    days = 7 * WEEKS[-1]
    if math.isinf(forecast.pays_from.middle):
        return "Not worth it: in most simulations the gate never earns more than the incumbent."
    needed, gain = forecast.pays_from.high, forecast.uplift[last]
    earns = f"{100 * gain.low:+.1f} to {100 * gain.high:+.1f} % beside the incumbent"
    if needed > last and not math.isinf(needed):
        return (
            f"Not worth it below {needed / days:,.0f} rounds a day: it pays after {needed:,.0f} rounds."
        )
    if math.isinf(needed) or gain.low < 0.0:
        return f"Uncertain: after {WEEKS[-1]} weeks it earns {earns}; more rows would tell."
    worth = f"Worth it: it pays after at most {needed:,.0f} rounds"
    return worth + ("." if math.isnan(gain.low) else f", and after {WEEKS[-1]} weeks earns {earns}.")
