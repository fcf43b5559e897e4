"""Replay a log: choose what the log can answer, and refuse with a reason what it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import chisquare

from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.evidence import LinearModel
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot, Part
from c4b.logs import Log
from c4b.policies import Policy
from c4b.replay.full_feedback import FullRound, replay_full
from c4b.replay.judge import Judgement, judge
from c4b.replay.matching import LoggedRound, replay_matching
from c4b.replay.queues import replay_queues
from c4b.replay.result import ReplayResult

UNGATED = "linucb"
CHUNK = 20_000  # candidate rows whose features are in memory at once
MOST_FEATURES = 400
NOT_UNIFORM = 1e-6


@dataclass(frozen=True)
class Terms:
    """The numbers of a replay; all are chosen before the log is looked at."""

    baseline: str
    """Label of the incumbent's action."""
    past: float = 0.2
    """Share of rows, the first ones, from which features are fixed and the policy learns before it
    starts."""
    policy: str = "reserve-c4b+"
    alpha: float = 0.05
    reserve: float = 0.0
    delta: float = 0.05
    reward_range: tuple[float, float] = (0.0, 1.0)
    norm_bound: float | None = None
    """Default: the largest possible reward in magnitude."""
    uniform: bool = False
    """The actions were drawn uniformly, though the log has no propensities."""
    max_weight: float = float("inf")


@dataclass(frozen=True)
class LogReplay:
    """What the log answered."""

    method: str
    """"full feedback", "queues" (no context), "matching" or "weights" (one fixed policy only)."""
    past_rows: int
    actions: tuple[str, ...]
    logging_reward: float | None
    """Mean logged reward of the replayed rows."""
    baseline_reward: float | None
    """Mean logged reward of those rows whose action was the incumbent's."""
    results: tuple[ReplayResult, ...]
    """The gated policy, then the ungated one."""
    judgement: Judgement | None
    """The greedy policy that the past rows suggest, judged on the others, where propensities are
    known."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.method,
            "past_rows": self.past_rows,
            "actions": len(self.actions),
            "logging_reward": self.logging_reward,
            "baseline_reward": self.baseline_reward,
            "results": [result.as_dict() for result in self.results],
            "judgement": None if self.judgement is None else self.judgement.as_dict(),
        }


def replay_log(log: Log, terms: Terms, builder: FeatureBuilder | None = None) -> LogReplay:
    """Replay the rows after the past ones in the best way that the log permits.

    builder: features of (action, context); without it an intercept, one feature for each action, and
    their products with the context.
    """
    if not 0.0 < terms.past < 1.0:
        raise InvalidInput("past", terms.past, "must be a share of the rows, between 0 and 1")
    past, rest = log.split(max(1, int(terms.past * len(log))))
    if not len(rest):
        raise InvalidInput("log", len(log), "must hold rows beyond the past ones")
    pool = Pool(log, terms)
    if builder is None:
        builder = default_features(past.frame, pool.action_column, log.columns.context, pool.labels)
    elif not builder.fitted:
        builder = builder.fit(past.frame)
    if builder.dim > MOST_FEATURES:
        remedy = (
            f"makes {builder.dim} features; give a builder of at most {MOST_FEATURES}, e.g. with Hashed"
        )
        raise InvalidInput("features", builder.names[:3], remedy)
    if log.columns.rewards:
        return _full(pool, past, rest, builder, terms)
    return _logged(pool, past, rest, builder, terms)


class Pool:
    """The actions of a log: one column of rewards each, or the labels of its column of actions."""

    def __init__(self, log: Log, terms: Terms) -> None:
        columns = log.columns
        self.action_column = columns.action or "action"
        if columns.rewards:
            self.labels: tuple[str, ...] = columns.rewards
        elif columns.action is None:
            raise InvalidInput("action", None, "name the column of the executed action")
        else:
            self.labels = tuple(sorted(set(map(str, log.frame[columns.action].unique().to_list()))))
        if len(self.labels) < 2:
            raise LogCannotAnswer(
                f"the log always took {self.labels[0]!r} and knows nothing about another action. Log a "
                "small share of random actions first"
            )
        if terms.baseline not in self.labels:
            raise InvalidInput("baseline", terms.baseline, f"must be one of {list(self.labels)[:20]}")
        self.place = {label: n for n, label in enumerate(self.labels)}
        self.baseline = self.place[terms.baseline]

    def taken(self, log: Log) -> NDArray[np.int64]:
        """The index of each row's action."""
        assert log.columns.action is not None
        return np.array([self.place[str(label)] for label in log.frame[log.columns.action].to_list()])

    def pools(self, log: Log, builder: FeatureBuilder) -> Iterator[Array]:
        """The features of all actions, row by row: shape (K, d) each."""
        k = len(self.labels)
        every = pl.Series(self.action_column, self.labels)
        context = log.frame.select(log.columns.context) if log.columns.context else None
        step = max(1, CHUNK // k)
        for start in range(0, len(log), step):
            n = min(step, len(log) - start)
            rows = pl.DataFrame({self.action_column: pl.concat([every] * n)})
            if context is not None:
                repeated = np.repeat(np.arange(start, start + n), k)
                rows = rows.hstack(context[repeated])
            yield from builder.transform(rows).reshape(n, k, -1)


def default_features(
    past: pl.DataFrame, action: str, context: Sequence[str], labels: Sequence[str]
) -> FeatureBuilder:
    """An intercept, one feature for each action, and their products with each column of the context."""
    each_action = OneHot(action, labels=tuple(labels))
    parts: list[Part] = [Intercept(), each_action]
    for column in context:
        number = past[column].dtype.is_numeric()
        parts.append(Interaction(each_action, Number(column) if number else OneHot(column, at_most=20)))
    return FeatureBuilder(parts).fit(past)


def executed_features(log: Log, builder: FeatureBuilder | None = None) -> tuple[Array, list[str]]:
    """The features of what was executed in each row, shape (rows, d), and their names."""
    if log.columns.action is None:
        raise InvalidInput("action", None, "name the column of the executed action")
    if builder is None:
        labels = sorted(set(map(str, log.frame[log.columns.action].unique().to_list())))
        builder = default_features(log.frame, log.columns.action, log.columns.context, labels)
    elif not builder.fitted:
        builder = builder.fit(log.frame)
    return builder.transform(log.frame), builder.names


def _policy(name: str, dim: int, terms: Terms) -> Policy:
    low, high = terms.reward_range
    norm = terms.norm_bound if terms.norm_bound is not None else max(abs(low), abs(high))
    model = LinearModel(dim=dim, noise=(high - low) / 2.0, norm_bound=norm, delta=terms.delta)
    return Policy(name, model, alpha=terms.alpha, reserve=terms.reserve, baseline_nonnegative=low >= 0.0)


def _full(pool: Pool, past: Log, rest: Log, builder: FeatureBuilder, terms: Terms) -> LogReplay:
    """History is what the incumbent would have earned in the past rows."""
    rewards = rest.full_rewards()
    history = np.array([x[pool.baseline] for x in pool.pools(past, builder)])
    results = []
    for name in (terms.policy, UNGATED):
        policy = _policy(name, builder.dim, terms)
        policy.learn(history, past.full_rewards()[:, pool.baseline])
        rounds = zip(pool.pools(rest, builder), rewards, strict=True)
        results.append(replay_full(policy, (FullRound(x, pool.baseline, r) for x, r in rounds)))
    incumbent = float(rewards[:, pool.baseline].mean())
    return LogReplay("full feedback", len(past), pool.labels, None, incumbent, tuple(results), None)


def _logged(pool: Pool, past: Log, rest: Log, builder: FeatureBuilder, terms: Terms) -> LogReplay:
    taken, rewards = pool.taken(rest), rest.numbers("reward")
    earlier = pool.taken(past)
    uniform = _is_uniform(np.concatenate([earlier, taken]), past, rest, pool, terms)
    history = np.array([x[a] for x, a in zip(pool.pools(past, builder), earlier, strict=True)])
    judgement = None
    if rest.columns.propensity is not None:
        judgement = _judged(pool, rest, builder, terms, history, past.numbers("reward"))
    results = []
    method = "weights" if not uniform else "matching" if rest.columns.context else "queues"
    for name in (terms.policy, UNGATED) if uniform else ():
        policy = _policy(name, builder.dim, terms)
        policy.learn(history, past.numbers("reward"))
        if method == "queues":
            table = next(pool.pools(rest, builder))
            results.append(replay_queues(policy, table, pool.baseline, taken, rewards))
        else:
            rows = zip(pool.pools(rest, builder), taken.tolist(), rewards.tolist(), strict=True)
            rounds = (LoggedRound(x, pool.baseline, a, r) for x, a, r in rows)
            results.append(replay_matching(policy, rounds))
    own = rewards[taken == pool.baseline]
    incumbent = float(own.mean()) if len(own) else None
    mean = float(rewards.mean())
    return LogReplay(method, len(past), pool.labels, mean, incumbent, tuple(results), judgement)


def _is_uniform(taken: NDArray[np.int64], past: Log, rest: Log, pool: Pool, terms: Terms) -> bool:
    """Whether rows may be matched; raises where the log cannot answer at all."""
    k = len(pool.labels)
    if rest.columns.propensity is not None:
        given = np.concatenate([past.numbers("propensity"), rest.numbers("propensity")])
        return bool(np.allclose(given, 1.0 / k, rtol=1e-6))
    if not terms.uniform:
        raise LogCannotAnswer(
            "the log does not say how actions were drawn: name a column of propensities, or say that all "
            "actions were equally likely (uniform)"
        )
    counts = np.bincount(taken, minlength=k)
    if chisquare(counts).pvalue < NOT_UNIFORM:
        shown = dict(zip(pool.labels, counts.tolist(), strict=True))
        raise LogCannotAnswer(f"actions were declared equally likely, but were taken so often: {shown}")
    return True


def _judged(
    pool: Pool, rest: Log, builder: FeatureBuilder, terms: Terms, history: Array, outcomes: Array
) -> Judgement:
    """The greedy policy of a ridge estimate from the past rows, judged on the others."""
    estimate = np.linalg.solve(history.T @ history + np.eye(builder.dim), history.T @ outcomes)
    taken = pool.taken(rest)
    chosen, own, best = np.empty(len(rest), dtype=bool), np.empty(len(rest)), np.empty(len(rest))
    for n, x in enumerate(pool.pools(rest, builder)):
        means = x @ estimate
        greedy = int(np.argmax(means))
        chosen[n], own[n], best[n] = greedy == taken[n], means[taken[n]], means[greedy]
    low, high = terms.reward_range
    return judge(
        chosen.astype(float),
        rest.numbers("propensity"),
        rest.numbers("reward"),
        predicted=np.clip(own, low, high),
        predicted_value=np.clip(best, low, high),
        fraction=1.0 - terms.alpha,
        delta=terms.delta,
        reward_range=terms.reward_range,
        max_weight=terms.max_weight,
    )
