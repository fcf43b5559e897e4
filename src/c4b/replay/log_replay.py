"""Replays a log with the best method that it supports, or raises an error with a reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence import LinearModel
from c4b.features import FeatureBuilder
from c4b.logs import Log, StreamedLog
from c4b.logs.fingerprint import fingerprint
from c4b.policies import Policy
from c4b.replay.action_pool import ActionPool, executed_frame, fitted
from c4b.replay.full_feedback import FullRound, play_full
from c4b.replay.greedy_judgement import judge_greedy
from c4b.replay.interruptible_run import InterruptibleRun
from c4b.replay.judge import Judgement
from c4b.replay.matching import LoggedRound, play_matching, require_rounds
from c4b.replay.queues import Queues
from c4b.replay.randomisation import how_to_replay
from c4b.replay.result import ReplayResult

UNGATED = "linucb"
MOST_FEATURES = 400


@dataclass(frozen=True)
class Terms:
    """The numbers of a replay. Choose all of them before looking at the log."""

    baseline: str = ""
    """Label of the incumbent's action; empty if a column of the log names it in each row."""
    past: float = 0.2
    """Share of rows, from the beginning, that are used to fix the features and to train the policy before
    it starts."""
    policy: str = "reserve-c4b+"
    alpha: float = 0.05
    reserve: float = 0.0
    delta: float = 0.05
    reward_range: tuple[float, float] = (0.0, 1.0)
    norm_bound: float | None = None
    """Bound of the norm of theta; by default the largest possible reward in magnitude."""
    uniform: bool = False
    """Whether the actions are declared to be drawn uniformly although the log has no propensities."""
    max_weight: float = float("inf")


@dataclass(frozen=True)
class LogReplay:
    """The results of a replay."""

    method: str
    """"full feedback", "queues" (no context), "matching" or "weights" (one fixed policy only)."""
    past_rows: int
    actions: tuple[str, ...]
    logging_reward: float | None
    """Mean logged reward of the replayed rows."""
    baseline_reward: float | None
    """Mean logged reward of the replayed rows whose action was the incumbent's."""
    results: tuple[ReplayResult, ...]
    """Results of the gated policy, then of the ungated one."""
    judgement: Judgement | None
    """Evaluation of the greedy policy of the past rows on the other rows, if propensities are known."""

    def as_dict(self) -> dict[str, Any]:
        """The results as plain data for JSON."""
        return {
            "method": self.method,
            "past_rows": self.past_rows,
            "actions": len(self.actions),
            "logging_reward": self.logging_reward,
            "baseline_reward": self.baseline_reward,
            "results": [result.as_dict() for result in self.results],
            "judgement": None if self.judgement is None else self.judgement.as_dict(),
        }


Progress = Callable[[int, int], None]
"""Called with (rows read, rows to read in all); a replay reads the rows once for each policy."""
ROWS_BETWEEN = 10_000
"""Rows, and in a replay by queues a tenth of it in rounds, between two reports of progress."""


def replay_log(
    log: Log | StreamedLog,
    terms: Terms,
    builder: FeatureBuilder | None = None,
    *,
    resume: str | Path | None = None,
    progress: Progress = lambda done, total: None,
    executor: Executor | None = None,
) -> LogReplay:
    """Replay the rows after the past ones with the best method that the log supports.

    Parameters
    ----------
    builder: features of (action, context). Without it the log's vectors are used, if it has any;
        otherwise an intercept, one feature for each action, and their products with the context.
    resume: folder in which the state is saved from time to time. The same call continues from there.
    executor: replays the policies, one task each; it must be able to read the files.
    """
    if not 0.0 < terms.past < 1.0:
        raise InvalidInput("past", terms.past, "must be a share of the rows, between 0 and 1")
    past, rest = log.split(max(1, int(terms.past * len(log))))
    if not len(rest):
        raise InvalidInput("log", len(log), "must hold rows beyond the past ones")
    pool = ActionPool(log, terms.baseline)
    builder = fitted(builder, past, pool)
    if builder.dim > MOST_FEATURES:
        remedy = (
            f"makes {builder.dim} features; give a builder of at most {MOST_FEATURES}, e.g. with Hashed"
        )
        raise InvalidInput("features", builder.names[:3], remedy)
    folder, content = (None, "") if resume is None else (Path(resume), fingerprint(log))
    replay = _Replay(past, rest, pool, builder, terms, folder, content)
    method = "full feedback" if log.columns.rewards else how_to_replay(past, rest, pool, terms.uniform)
    judgement = None
    if log.columns.propensity is not None:
        judgement = judge_greedy(
            past, rest, pool, builder, terms.alpha, terms.delta, terms.reward_range, terms.max_weight
        )
    names = () if method == "weights" else (terms.policy, UNGATED)
    if executor is None:
        results = [
            replay.run(name, method, _shifted(progress, n * len(rest), len(names) * len(rest)))
            for n, name in enumerate(names)
        ]
    else:
        started = [executor.submit(replay.run, name, method) for name in names]
        results = [future.result() for future in started]
    logged, own = replay.means()
    return LogReplay(method, len(past), pool.labels, logged, own, tuple(results), judgement)


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


class _Replay(NamedTuple):
    """What the policies of one replay share."""

    past: Log | StreamedLog
    rest: Log | StreamedLog
    pool: ActionPool
    builder: FeatureBuilder
    terms: Terms
    folder: Path | None
    content: str
    """Fingerprint of the log."""

    def run(self, name: str, method: str, progress: Progress = lambda done, total: None) -> ReplayResult:
        """One policy, from its first row or from where it was interrupted."""
        run = InterruptibleRun(name, self._identity(name), self.folder)
        if not run.resume():
            run.start(self._taught(name))
        if method == "queues":
            self._play_queues(run, progress)
        else:
            self._play_rows(run, method, progress)
        if self.folder is not None:
            run.save()
        if method == "matching":
            require_rounds(run.recorder, len(self.rest))
        return run.recorder.result(len(self.rest))

    def _identity(self, name: str) -> dict[str, Any]:
        """Which replay this is, as plain data."""
        terms = {**dataclasses.asdict(self.terms), "reward_range": list(self.terms.reward_range)}
        return {
            "policy": name,
            "terms": {key: str(value) for key, value in terms.items()},
            "columns": repr(self.rest.columns),
            "log": self.rest.name,
            "rows": len(self.past) + len(self.rest),
            "actions": list(self.pool.labels),
            "features": self.builder.names,
            "content": self.content,
        }

    def _taught(self, name: str) -> Policy:
        """A policy that has learned the past rows: the incumbent's if all are known, else the logged."""
        low, high = self.terms.reward_range
        norm = self.terms.norm_bound if self.terms.norm_bound is not None else max(abs(low), abs(high))
        model = LinearModel(
            dim=self.builder.dim, noise=(high - low) / 2.0, norm_bound=norm, delta=self.terms.delta
        )
        policy = Policy(
            name,
            model,
            alpha=self.terms.alpha,
            reserve=self.terms.reserve,
            baseline_nonnegative=low >= 0.0,
        )
        for batch in self.past.batches():
            policy.learn(*self._history(batch))
        return policy

    def _history(self, batch: Log) -> tuple[Array, Array]:
        """Features and rewards that the past rows teach."""
        if not batch.columns.rewards:
            return self.builder.transform(executed_frame(batch)), batch.numbers("reward")
        own, start, parts = self.pool.incumbents(batch), 0, []
        for block in self.pool.blocks(batch, self.builder):
            parts.append(block[np.arange(len(block)), own[start : start + len(block)]])
            start += len(block)
        return np.concatenate(parts), batch.full_rewards()[np.arange(len(batch)), own]

    def _play_rows(self, run: InterruptibleRun, method: str, progress: Progress) -> None:
        total = len(self.rest)
        for batch in self.rest.split(run.rows)[1].batches(ROWS_BETWEEN):
            rounds = self.pool.rounds(batch, self.builder)
            if method == "full feedback":
                for n, (row, rewards) in enumerate(zip(rounds, batch.full_rewards(), strict=True)):
                    play_full(run.recorder, FullRound(row.features, row.baseline, rewards), run.rows + n)
            else:
                for n, (row, reward) in enumerate(zip(rounds, batch.numbers("reward"), strict=True)):
                    given = LoggedRound(row.features, row.baseline, row.taken, float(reward))
                    play_matching(run.recorder, given, run.rows + n)
            run.advance(len(batch))
            progress(run.rows, total)

    def _play_queues(self, run: InterruptibleRun, progress: Progress) -> None:
        parts = [(self.pool.taken(batch), batch.numbers("reward")) for batch in self.rest.batches()]
        taken, rewards = (np.concatenate(each) for each in zip(*parts, strict=True))
        first = next(self.pool.rounds(self.rest.head(1), self.builder))
        queues = Queues(first.features, first.baseline, taken, rewards)
        if run.used:
            queues.used[:] = run.used
        while queues.play(run.recorder):
            if len(run.recorder.rewards) % (ROWS_BETWEEN // 10) == 0:
                run.used = queues.used.tolist()
                run.advance(ROWS_BETWEEN // 10)
                progress(run.rows, len(self.rest))
        run.used = queues.used.tolist()

    def means(self) -> tuple[float | None, float | None]:
        """Mean logged reward of all replayed rows, and of those with the incumbent's action."""
        total, own, rows = 0.0, 0.0, 0
        if self.rest.columns.rewards:
            for batch in self.rest.batches():
                every = np.arange(len(batch))
                own += float(batch.full_rewards()[every, self.pool.incumbents(batch)].sum())
            return None, own / len(self.rest)
        for batch in self.rest.batches():
            rewards, incumbent = batch.numbers("reward"), self.pool.plays_incumbent(batch)
            total += float(rewards.sum())
            own += float(rewards[incumbent].sum())
            rows += int(incumbent.sum())
        return total / len(self.rest), own / rows if rows else None
