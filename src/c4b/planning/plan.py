"""From a log, or from a few rates, to numbers and expectations."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b import _validate
from c4b._validate import Array
from c4b.diagnostics.ridge_fit import fit
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.evidence import LinearModel
from c4b.features import FeatureBuilder
from c4b.logs import Log
from c4b.planning.forecast import Forecast, Simulator, Traffic
from c4b.planning.proposal import ORIGINS, Proposal
from c4b.policies import DEFAULT_POLICY
from c4b.replay.log_replay import Pool, Terms, default_features, executed_features

WEEKS = (1, 4, 12)
NORM_MARGIN = 1.5
MOST_ROWS = 2000
"""Rows whose pools a simulation draws from, and rows of history."""


@dataclass(frozen=True)
class Plan:
    """Numbers to declare, what to expect of them, and the verdict."""

    proposal: Proposal
    forecast: Forecast
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shown = asdict(self)
        shown["proposal"]["risk"] = self.proposal.risk
        shown["forecast"]["uplift"] = {
            f"{weeks} weeks": value
            for weeks, value in zip(WEEKS, self.forecast.uplift.values(), strict=True)
        }
        return shown


def plan_log(
    log: Log,
    terms: Terms,
    *,
    rounds_a_day: float,
    builder: FeatureBuilder | None = None,
    history: int | None = None,
    simulations: int = 20,
    rounds: int = 2000,
    seed: int = 0,
) -> Plan:
    """Plan a deployment from a log that took every action at random with positive probability.

    The first half of the rows chooses features and the norm bound. The second half says what to expect.
    Neither is evidence of the deployment, except as history that is given before its first decision.

    terms: as for a replay; ``past`` is not used. rounds_a_day: the traffic to expect.
    history: give the policy so many rows of the incumbent alone; without it, every row of the first half.
    """
    rounds_a_day = _validate.positive("rounds_a_day", rounds_a_day, "must be a positive number")
    first, second = log.split(len(log) // 2)
    pool = Pool(log, terms)
    if builder is None:
        builder = default_features(first.frame, pool.action_column, log.columns.context, pool.labels)
    elif not builder.fitted:
        builder = builder.fit(first.frame)
    chosen_on, _ = executed_features(first, builder)
    judged_on, _ = executed_features(second, builder)
    if len(first) <= 2 * builder.dim:
        raise LogCannotAnswer(
            f"{len(first)} rows are too few to choose {builder.dim} coefficients; give fewer features"
        )
    _require_all_actions(pool, second)
    guess = fit(chosen_on, first.numbers("reward"))
    rewards = second.numbers("reward")
    found = fit(judged_on, rewards)
    low, high = terms.reward_range
    two_values = bool(np.all((rewards == low) | (rewards == high)))
    norm = terms.norm_bound
    said = "declared"
    if norm is None:
        norm = NORM_MARGIN * float(np.linalg.norm(guess.estimate))
        said = f"{NORM_MARGIN:g} times the norm of the first half's estimate; not to be changed later"
    covariance = found.inverse @ found.meat @ found.inverse
    sample = second.split(min(MOST_ROWS, len(second)))[0]
    pools = np.array(list(pool.pools(sample, builder)))
    own = rewards[pool.taken(second) == pool.baseline]
    traffic = Traffic(
        pools=pools,
        baselines=np.full(len(pools), pool.baseline),
        history=_history(chosen_on, pool.taken(first) == pool.baseline, history),
        estimate=found.estimate,
        covariance=(covariance + covariance.T) / 2.0,
        residuals=np.empty(0) if two_values else rewards - judged_on @ found.estimate,
    )
    return _plan(traffic, terms, norm, said, float(own.mean()), rounds_a_day, simulations, rounds, seed)


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
    rounds: int = 2000,
    seed: int = 0,
) -> Plan:
    """Plan without a log, from guesses: the incumbent's success rate and those of other actions.

    >>> plan = plan_rates(0.3, [0.6], rounds_a_day=500, history=100, simulations=2, rounds=50)
    >>> plan.proposal.risk
    '5 % of 1,050 a week: at most 52 a week at risk, and 0 once'
    """
    rates = np.array([baseline_rate, *other_rates], dtype=float)
    if len(rates) < 2 or not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InvalidInput("rates", rates.tolist(), "must be at least two rates between 0 and 1")
    rounds_a_day = _validate.positive("rounds_a_day", rounds_a_day, "must be a positive number")
    features = np.column_stack([np.ones(len(rates)), np.eye(len(rates))[:, 1:]])
    truth = np.concatenate([rates[:1], rates[1:] - rates[0]])
    traffic = Traffic(
        pools=features[None],
        baselines=np.zeros(1, dtype=np.int64),
        history=np.tile(features[0], (history, 1)),
        estimate=truth,
        covariance=np.zeros((len(rates), len(rates))),
        residuals=np.empty(0),
    )
    terms = Terms("0", policy=policy, alpha=alpha, reserve=reserve, delta=delta)
    norm = max(1.0, NORM_MARGIN * float(np.linalg.norm(truth)))
    said = f"{NORM_MARGIN:g} times the norm of the guessed rates, at least 1"
    return _plan(traffic, terms, norm, said, float(rates[0]), rounds_a_day, simulations, rounds, seed)


def _history(features: Array, incumbent: NDArray[np.bool_], rows: int | None) -> Array:
    if rows is None:
        return features[:MOST_ROWS]
    own = features[incumbent]
    rows = _validate.count("history", rows, 0, "must be a number of rows")
    if rows > len(own):
        raise InvalidInput("history", rows, f"the first half holds {len(own)} rows of the incumbent")
    return own[:rows]


def _require_all_actions(pool: Pool, log: Log) -> None:
    counts = np.bincount(pool.taken(log), minlength=len(pool.labels))
    if counts.min() == 0:
        never = pool.labels[int(np.argmin(counts))]
        raise LogCannotAnswer(f"the second half of the log never took {never!r}: nothing is known of it")


def _plan(
    traffic: Traffic, terms: Terms, norm: float, norm_origin: str, baseline: float, rounds_a_day: float,
    simulations: int, rounds: int, seed: int,
) -> Plan:  # fmt: skip
    simulations = _validate.count("simulations", simulations, 2, "must be at least 2")
    rounds = _validate.count("rounds", rounds, 10, "must be at least 10")
    low, high = terms.reward_range
    dim = traffic.pools.shape[2]
    model = LinearModel(dim=dim, noise=(high - low) / 2.0, norm_bound=norm, delta=terms.delta)
    proposal = Proposal(
        noise=model.noise,
        norm_bound=norm,
        dim=dim,
        confidence=model.confidence or f"as {terms.policy} chooses",
        alpha=terms.alpha,
        reserve=terms.reserve,
        history=len(traffic.history),
        baseline_reward=baseline,
        rounds_a_week=7.0 * rounds_a_day,
        origins={**ORIGINS, "norm_bound": norm_origin},
    )
    horizons = [max(1, round(7 * weeks * rounds_a_day)) for weeks in WEEKS]
    simulator = Simulator(traffic, model, terms.policy, terms.alpha, terms.reserve, terms.reward_range)
    forecast = simulator.run(simulations, rounds, horizons, seed)
    return Plan(proposal, forecast, _verdict(forecast, horizons[-1]))


def _verdict(forecast: Forecast, last: int) -> str:
    days = 7 * WEEKS[-1]
    if math.isinf(forecast.pays_from.middle):
        return "Not worth it: in most simulations the gate never earns more than the incumbent."
    needed = forecast.pays_from.high
    if math.isinf(needed):
        return "Uncertain: in some simulations the gate never earns more than the incumbent."
    if needed > last:
        return (
            f"Not worth it below {needed / days:,.0f} rounds a day: it pays after {needed:,.0f} rounds."
        )
    gain = forecast.uplift[last]
    return (
        f"Worth it: it pays after at most {needed:,.0f} rounds, and after {WEEKS[-1]} weeks earns "
        f"{100 * gain.low:+.1f} to {100 * gain.high:+.1f} % beside the incumbent."
    )
