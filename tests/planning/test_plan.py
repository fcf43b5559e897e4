"""A plan's numbers come from where it says, and its forecast is what then happens."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import c4b
from c4b import LinearModel, Policy
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.features import Embedding, FeatureBuilder, Intercept
from c4b.logs import Columns, Log, read_log
from c4b.planning import Simulator, Traffic, plan_log, plan_rates
from c4b.planning.forecast import _mean_up_to, _pays_from
from c4b.planning.in_words import columns_to_expect
from c4b.planning.page import write_page
from c4b.replay import Terms, replay_queues


def trial(rows: int, seed: int, means: tuple[float, ...] = (0.35, 0.7)) -> Log:
    draw = np.random.default_rng(seed)
    action = draw.integers(0, len(means), rows)
    frame = pl.DataFrame({"a": action, "y": draw.random(rows) < np.array(means)[action]})
    return read_log(frame, Columns(reward="y", action="a"))


def test_a_forecast_contains_what_happens() -> None:
    terms = Terms("0", alpha=0.1)
    plan = plan_log(trial(1200, 1), terms, rounds_a_day=100, simulations=8, rounds=400)
    assert not math.isinf(plan.forecast.opens_at.high)
    live = trial(3000, 2)
    features = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    policy = Policy(
        "reserve-c4b+", LinearModel(dim=3, noise=0.5, norm_bound=plan.proposal.norm_bound), alpha=0.1
    )
    past = trial(600, 3)
    policy.learn(features[past.frame["a"].to_numpy()], past.numbers("reward"))
    found = replay_queues(policy, features, 0, live.frame["a"].to_numpy(), live.numbers("reward"))
    assert found.opened_at is not None
    assert plan.forecast.opens_at.low / 2 <= found.opened_at <= 2 * plan.forecast.opens_at.high
    uplift = found.rewards[:400].mean() / 0.35 - 1
    low, _, high = plan.forecast.uplift[700]
    assert low - 0.2 <= uplift <= high + 0.2
    assert plan.verdict.startswith("Worth it")


def test_the_proposal_says_where_numbers_come_from() -> None:
    plan = plan_log(trial(600, 4), Terms("0"), rounds_a_day=1000, simulations=2, rounds=20)
    proposal = plan.proposal
    assert proposal.noise == 0.5
    assert set(proposal.origins) == {"noise", "norm_bound", "confidence", "alpha", "reserve"}
    assert proposal.at_risk_a_week == pytest.approx(0.05 * proposal.baseline_reward * 7000)
    assert proposal.history == 300
    shown = json.loads(json.dumps(plan.as_dict()))
    assert set(shown["forecast"]["uplift"]) == {"1 week", "4 weeks", "12 weeks"}
    declared = plan_log(
        trial(600, 4), Terms("0", norm_bound=3.0), rounds_a_day=1, simulations=2, rounds=20
    )
    assert (declared.proposal.norm_bound, declared.proposal.origins["norm_bound"]) == (3.0, "declared")


def test_history_of_the_incumbent_alone() -> None:
    given = {"rounds_a_day": 10, "simulations": 2, "rounds": 20}
    plan = plan_log(trial(600, 4), Terms("0"), history=50, **given)  # type: ignore[arg-type]
    assert plan.proposal.history == 50
    more = plan_log(trial(600, 4), Terms("0"), history=500, **given)  # type: ignore[arg-type]
    assert more.proposal.history == 500


def test_the_same_plan_again() -> None:
    log = trial(400, 5)
    one, other = (
        plan_log(log, Terms("0"), rounds_a_day=10, simulations=2, rounds=50, seed=3) for _ in range(2)
    )
    assert one == other


def test_rates_alone() -> None:
    better = plan_rates(0.3, [0.6], rounds_a_day=500, history=200, simulations=3, rounds=600)
    assert better.verdict.startswith("Worth it")
    worse = plan_rates(0.6, [0.3], rounds_a_day=500, history=200, simulations=3, rounds=300)
    assert worse.verdict.startswith(("Not worth it", "Uncertain"))


def test_gains_beyond_the_simulated_rounds() -> None:
    gains = np.array([-1.0, -1.0, -1.0, 0.5])
    assert _mean_up_to(gains, 2, 0.5) == -1.0
    assert _mean_up_to(gains, 8, 0.5) == pytest.approx((-2.5 + 4 * 0.5) / 8)
    assert _pays_from(gains) == 9.0  # 4 rounds, and 2.5/.5 more
    assert _pays_from(np.array([-1.0, 2.0, 1.0])) == 2.0
    assert math.isinf(_pays_from(np.array([-1.0, -1.0])))


def test_what_cannot_be_planned() -> None:
    with pytest.raises(InvalidInput, match="rounds_a_day"):
        plan_log(trial(100, 1), Terms("0"), rounds_a_day=0)
    with pytest.raises(InvalidInput, match="rates"):
        plan_rates(0.5, [1.5], rounds_a_day=10)
    with pytest.raises(LogCannotAnswer, match="too few"):
        plan_log(trial(10, 1), Terms("0"), rounds_a_day=10)
    with pytest.raises(InvalidInput, match="history"):
        plan_rates(0.3, [0.4], rounds_a_day=10, history=-5)
    for few in (1e-9, 0.05):
        with pytest.raises(InvalidInput, match="too few for a forecast"):
            plan_rates(0.3, [0.4], rounds_a_day=few)
    seldom = plan_rates(0.3, [0.4], rounds_a_day=0.2, simulations=2, rounds=10)
    assert list(seldom.forecast.uplift) == [1, 6, 17]
    with pytest.raises(LogCannotAnswer, match="every reward in half of the log is 0"):
        plan_log(trial(100, 1, (0.0, 0.0)), Terms("0"), rounds_a_day=10)
    rows = pl.DataFrame({"a": ["x", "y"] * 50 + ["x"] * 100, "y": [0.0, 1.0] * 100})
    with pytest.raises(LogCannotAnswer, match="never took 'y'"):
        plan_log(read_log(rows, Columns(reward="y", action="a")), Terms("x"), rounds_a_day=10)


def test_rare_clicks_get_the_set_that_learns_their_noise() -> None:
    rare = c4b.plan(rates=[0.03, 0.05], rounds_a_day=100, simulations=2, rounds=20)
    assert (rare.proposal.confidence, rare.proposal.policy) == ("bounded-3", "clicks")
    common = c4b.plan(rates=[0.4, 0.5], rounds_a_day=100, simulations=2, rounds=20)
    assert common.proposal.policy == "reserve-c4b+"
    assert "bounded" not in common.proposal.confidence


def test_a_plan_needs_a_log_or_rates() -> None:
    frame = pl.DataFrame({"a": [0.0, 1.0] * 20, "b": [1.0, 0.0] * 20})
    with pytest.raises(InvalidInput, match="a plan needs what was executed"):
        c4b.plan(frame, Columns(rewards=("a", "b")), baseline="a", rounds_a_day=10)
    with pytest.raises(InvalidInput, match="give either a log with its columns, or rates"):
        c4b.plan(rounds_a_day=10)
    with pytest.raises(InvalidInput, match="the label of its incumbent"):
        c4b.plan(pl.DataFrame({"reward": [1.0]}), Columns(reward="reward"), rounds_a_day=10)


def test_an_uplift_is_foretold_as_it_would_be_measured() -> None:
    """Two actions of the same mean: nothing is gained, and what is measured is noise."""
    features = np.array([[1.0, 0.0], [1.0, 1.0]])
    traffic = Traffic(
        pools=[features], baselines=np.zeros(1, dtype=np.int64), history=np.repeat(features, 200, 0),
        estimate=np.array([0.5, 0.0]), covariance=np.zeros((2, 2)), residuals=np.empty(0),
    )  # fmt: skip
    model = LinearModel(dim=2, noise=0.5, norm_bound=1.0)
    simulator = Simulator(traffic, model, "linucb", 0.05, 0.0, (0.0, 1.0))
    found = simulator.run(20, 50, [100, 10_000])
    near, far = found.uplift[100], found.uplift[10_000]
    assert near.low < 0.0 < near.high
    assert near.high - near.low == pytest.approx(10.0 * (far.high - far.low))
    play = simulator.episode(50, [0, 0])
    share = 1.0 - play.fell_back.mean()
    assert 0.0 < play.noise == pytest.approx(math.sqrt(2 * 0.25 * share))


def shown_films(rows: int, seed: int) -> pl.DataFrame:
    """One of three films is shown at random; the popular one of them is not the one that is liked."""
    draw = np.random.default_rng(seed)
    liked, popular = draw.random(20), draw.random(20)
    films = np.array([draw.choice(20, 3, replace=False) for _ in range(rows)])
    shown, usual = films[:, 0], films[np.arange(rows), popular[films].argmax(axis=1)]
    return pl.DataFrame(
        {
            "films": films, "x": np.stack([np.ones(films.shape), liked[films]], axis=-1), "shown": shown,
            "usual": usual, "liked": (draw.random(rows) < 0.2 + 0.6 * liked[shown]).astype(float),
        }
    )  # fmt: skip


def test_rows_with_candidates_vectors_and_incumbents_of_their_own() -> None:
    frame = shown_films(1000, 7)
    columns = Columns(reward="liked", action="shown", candidates="films", vectors="x", baseline="usual")
    made = c4b.plan(frame, columns, rounds_a_day=100, history=500, simulations=5, rounds=300)
    means = 0.2 + 0.6 * np.array(frame["x"].to_list())[:, :, 1]
    own = np.array(frame["films"].to_list()) == frame["usual"].to_numpy()[:, None]
    assert made.proposal.dim == 2
    assert made.proposal.baseline_reward == pytest.approx(float(means[own].mean()), abs=0.04)
    best = float(means.max(axis=1).mean() / means[own].mean() - 1.0)
    low, _, high = made.forecast.uplift[8400]
    assert low <= best <= high + 0.1
    one = FeatureBuilder([Intercept(), Embedding("shown", {str(n): (n / 20,) for n in range(20)})])
    plain = Columns(reward="liked", action="shown", candidates="films", baseline="usual")
    other = c4b.plan(frame, plain, rounds_a_day=100, builder=one, simulations=2, rounds=20)
    assert other.proposal.dim == 2
    always = frame.with_columns(shown=pl.col("usual"))
    with pytest.raises(LogCannotAnswer, match="always took the incumbent's action"):
        c4b.plan(always, columns, rounds_a_day=100)


def test_outcomes_of_many_features_come_a_little_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are absorbed 8 at once: the gate opens at about the same time."""
    features = np.zeros((2, 32))
    features[:, 0], features[1, 1] = 0.6, 0.6
    traffic = Traffic(
        pools=[features], baselines=np.zeros(1, dtype=np.int64), history=np.repeat(features[:1], 60, 0),
        estimate=np.concatenate([[0.5, 0.8], np.zeros(30)]), covariance=np.zeros((32, 32)),
        residuals=np.empty(0),
    )  # fmt: skip
    simulator = Simulator(
        traffic, LinearModel(dim=32, noise=0.5, norm_bound=1.0), "refresh", 0.05, 0.5, (0.0, 1.0)
    )
    together = [simulator.episode(320, [0, n]) for n in range(3)]
    monkeypatch.setattr("c4b.planning.forecast.FEATURES_OF_ONE", 33)
    alone = [simulator.episode(320, [0, n]) for n in range(3)]
    for late, prompt in zip(together, alone, strict=True):
        assert np.argmin(prompt.fell_back) > 200
        assert abs(int(np.argmin(late.fell_back)) - int(np.argmin(prompt.fell_back))) <= 16


@pytest.mark.parametrize(
    ("simulations", "low"), [(3, "lowest"), (18, "lowest"), (19, "5 %"), (20, "5 %")]
)
def test_few_simulations_are_not_called_percentiles(simulations: int, low: str, tmp_path: Path) -> None:
    made = c4b.plan(rates=[0.3, 0.4], rounds_a_day=100, simulations=2, rounds=10)
    made = replace(made, forecast=replace(made.forecast, simulations=simulations))
    assert columns_to_expect(made.forecast)[1] == low
    write_page(made, tmp_path / "plan.html")
    assert f">{low}<" in (tmp_path / "plan.html").read_text(encoding="utf-8")
