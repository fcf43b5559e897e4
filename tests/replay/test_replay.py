"""A replay shows the policy only what it would have seen, and counts only what it would have done."""

import numpy as np
import polars as pl
import pytest

from c4b import LinearModel, Policy
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.logs import Columns, read_log
from c4b.replay import (
    FullRound,
    LoggedRound,
    Terms,
    judge,
    replay_full,
    replay_log,
    replay_matching,
    replay_queues,
)

MEANS = np.array([0.4, 0.8, 0.2])  # the first is the incumbent
TABLE = np.hstack([np.ones((3, 1)), np.eye(3)])


def policy(name: str = "reserve-c4b+") -> Policy:
    made = Policy(name, LinearModel(dim=4, noise=0.5, norm_bound=1.0), alpha=0.1, reserve=5.0)
    draw = np.random.default_rng(0)
    made.learn(np.tile(TABLE[0], (50, 1)), (draw.random(50) < MEANS[0]).astype(float))
    return made


def trial(rows: int = 3000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    actions = draw.integers(0, 3, rows)
    return actions, (draw.random(rows) < MEANS[actions]).astype(float)


def test_a_preview_changes_nothing() -> None:
    one, other = policy(), policy()
    for _ in range(3):
        shown = one.preview(TABLE, TABLE[0])
    assert (one.rounds, one.bank, one.pending) == (0, other.bank, ())
    for each in (one, other):
        decision = each.decide(TABLE, TABLE[0])
        assert (decision.action, decision.bank) == (shown.action, shown.bank)
        each.observe(decision.id, 1.0)
    assert one.bank == other.bank


def test_full_feedback() -> None:
    draw = np.random.default_rng(2)
    rewards = (draw.random((1500, 3)) < MEANS).astype(float)
    found = replay_full(policy(), (FullRound(TABLE, 0, row) for row in rewards))
    assert found.rounds == found.rows == 1500
    assert found.baseline_rewards is not None
    assert np.array_equal(found.baseline_rewards, rewards[:, 0])
    assert np.array_equal(found.rewards[found.fell_back], rewards[found.fell_back, 0])
    assert found.reward > 0.7  # the second action, most of the time
    assert found.opened_at is not None
    assert found.realised_credit is not None
    assert found.realised_credit[-1] == pytest.approx(found.rewards.sum() - 0.9 * rewards[:, 0].sum())


def test_matching_is_the_policy_fed_with_the_kept_rows_alone() -> None:
    actions, rewards = trial()
    found = replay_matching(
        policy(), (LoggedRound(TABLE, 0, int(a), r) for a, r in zip(actions, rewards, strict=True))
    )
    assert found.rows == 3000
    assert 800 < found.rounds < 1200  # about one in three
    again = policy()
    for reward, bank in zip(found.rewards, found.banks, strict=True):
        decision = again.decide(TABLE, TABLE[0])
        assert decision.bank == bank
        again.observe(decision.id, float(reward))
    assert found.reward > 0.65


def test_queues_use_each_outcome_once_and_in_order() -> None:
    actions, rewards = trial()
    found = replay_queues(policy(), TABLE, 0, actions, rewards)
    queues = {n: list(rewards[actions == n]) for n in range(3)}
    incumbent = found.rewards[found.fell_back]
    assert incumbent.tolist() == queues[0][: len(incumbent)]
    assert found.rounds > 900  # until the better action's outcomes are used up
    assert found.reward > 0.65


def test_queues_that_cannot_answer() -> None:
    rewards = np.ones(10)
    with pytest.raises(LogCannotAnswer, match="always taken"):
        replay_queues(policy(), TABLE, 0, np.zeros(10, dtype=int), rewards)
    with pytest.raises(LogCannotAnswer, match="never taken"):
        replay_queues(policy(), TABLE, 0, np.ones(10, dtype=int), rewards)
    with pytest.raises(InvalidInput, match="indices from 0 to 2"):
        replay_queues(policy(), TABLE, 0, np.full(10, 3), rewards)


def test_matching_without_overlap() -> None:
    with pytest.raises(LogCannotAnswer, match="none of the 20 rows"):
        replay_matching(policy("refresh"), [LoggedRound(TABLE, 0, 2, 0.0)] * 20)


def test_a_judgement() -> None:
    actions, rewards = trial(rows=4000)
    predicted = MEANS[actions]
    found = judge(
        (actions == 1).astype(float), np.full(4000, 1 / 3), rewards, predicted=predicted,
        predicted_value=np.full(4000, 0.8), fraction=0.9, max_weight=3.0,
    )  # fmt: skip
    truth = 0.8 - 0.9 * MEANS.mean()
    assert found.doubly_robust is not None
    for report in (found.weighted, found.doubly_robust):
        assert report.deploy
        assert report.lower <= truth <= report.upper
        assert report.estimate == pytest.approx(truth, abs=0.06)
        assert report.effective_rows == pytest.approx((actions == 1).sum())


def test_judgements_that_cannot_be_made() -> None:
    rewards = np.full(100, 0.5)
    with pytest.raises(LogCannotAnswer, match="every propensity is 1"):
        judge(np.ones(100), np.ones(100), rewards)
    with pytest.raises(LogCannotAnswer, match="no overlap"):
        judge(np.zeros(100), np.full(100, 0.5), rewards)
    with pytest.raises(InvalidInput, match=r"propensities\[3\] = 0.0"):
        judge(np.ones(5), [0.5, 0.5, 0.5, 0.0, 0.5], rewards[:5])


def logged(**more: object) -> pl.DataFrame:
    actions, rewards = trial()
    frame = pl.DataFrame({"page": np.array(["home", "new", "old"])[actions], "click": rewards})
    return frame.with_columns(**{name: pl.lit(value) for name, value in more.items()})


def test_a_log_without_context_is_replayed_by_queues() -> None:
    log = read_log(logged(), Columns(reward="click", action="page"))
    found = replay_log(log, Terms("home", uniform=True))
    assert found.method == "queues"
    assert found.past_rows == 600
    assert found.actions == ("home", "new", "old")
    assert found.results[0].reward > 0.6
    assert found.judgement is None


def test_a_log_with_context_and_propensities() -> None:
    draw = np.random.default_rng(5)
    n = 2500
    x = draw.uniform(-1, 1, n)
    actions = draw.integers(0, 2, n)
    means = np.where(actions == 0, 0.5, 0.5 + 0.4 * x)  # the second is better where x > 0
    frame = pl.DataFrame({"a": actions, "x": x, "y": draw.random(n) < means, "p": 0.5})
    log = read_log(frame, Columns(reward="y", action="a", propensity="p", context=("x",)))
    found = replay_log(log, Terms("0", alpha=0.1, max_weight=2.0, norm_bound=1.5))
    assert found.method == "matching"
    assert [each.policy for each in found.results] == ["reserve-c4b+", "linucb"]
    assert found.judgement is not None
    assert found.judgement.doubly_robust is not None
    assert found.judgement.weighted.lower <= 0.6 - 0.9 * 0.5 <= found.judgement.weighted.upper
    skewed = log.frame.with_columns(p=pl.when(pl.col("a") == 0).then(0.6).otherwise(0.4))
    only_judged = replay_log(read_log(skewed, log.columns), Terms("0"))
    assert only_judged.method == "weights"
    assert only_judged.results == ()


def test_a_log_with_every_reward() -> None:
    draw = np.random.default_rng(6)
    frame = pl.DataFrame((draw.random((800, 3)) < MEANS).astype(float), schema=["home", "new", "old"])
    found = replay_log(read_log(frame, Columns(rewards=("home", "new", "old"))), Terms("home"))
    assert found.method == "full feedback"
    assert found.baseline_reward == pytest.approx(frame["home"][160:].mean())
    assert found.results[0].baseline_rewards is not None


def test_logs_that_cannot_answer() -> None:
    columns = Columns(reward="click", action="page")
    log = read_log(logged(), columns)
    with pytest.raises(LogCannotAnswer, match="does not say how actions were drawn"):
        replay_log(log, Terms("home"))
    with pytest.raises(InvalidInput, match="baseline = 'house'"):
        replay_log(log, Terms("house", uniform=True))
    always = read_log(logged(page="home"), columns)
    with pytest.raises(LogCannotAnswer, match="always took 'home'"):
        replay_log(always, Terms("home", uniform=True))
    mostly = pl.concat([logged(), logged(page="home")])
    with pytest.raises(LogCannotAnswer, match="equally likely, but"):
        replay_log(read_log(mostly, columns), Terms("home", uniform=True))
    certain = read_log(logged(p=1.0), Columns(reward="click", action="page", propensity="p"))
    with pytest.raises(LogCannotAnswer, match="every propensity is 1"):
        replay_log(certain, Terms("home"))
