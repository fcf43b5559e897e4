"""The systems of the field against their NumPy versions: the same action in every round without ties."""

import numpy as np
import pytest

import c4b
from c4b.evidence.sums.regret import regret
from c4b.policies.catalogue.promise import Kind, Promise
from support.field_scenes import SETTINGS, oracle_story, scene

CLOSE = 1e-7
"""Two scores or margins that differ by less may be ordered either way by rounding."""
SYSTEMS = {
    "clucb": ("clucb", {}),
    "clucb-plays": ("clucb", {"learns_plays_only": True}),
    "clucb-unknown": ("clucb-unknown", {"floor": 0.5}),
    "clucb2": ("clucb2", {}),
    "clucb2t": ("clucb2t", {"floor": 0.5}),
    "lcbce": ("lcbce", {}),
    "maximin": ("maximin", {}),
}


@pytest.mark.parametrize("column", SETTINGS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_action_equals_the_oracles(name: str, column: str) -> None:
    setting, (system, options) = SETTINGS[column], SYSTEMS[name]
    compared = 0
    for episode in range(4):
        made = scene(setting, 23, episode)
        story = oracle_story(system, setting, made, **options)
        floor = options.get("floor")
        policy = c4b.Policy(name, setting.model(None), setting.alpha, baseline_floor=floor)
        policy.learn(*made.history)
        for t, (pool, baseline) in enumerate(zip(made.pools, made.baselines, strict=True)):
            mean = float(baseline @ made.theta)
            decision = policy.decide(pool, baseline, mean if policy.composition.needs else None)
            action = -1 if decision.action is None else decision.action
            if story.closeness[t] < CLOSE and action != story.actions[t]:
                break  # from here on the two have seen different data
            assert action == story.actions[t], t
            x = baseline if action < 0 else pool[action]
            policy.observe(decision.id, float(x @ made.theta + made.noise[t, action]))
            compared += 1
    assert compared >= 100


def test_promises_are_data() -> None:
    promises = {name: c4b.policies.get(name).promise for name in SYSTEMS}
    assert promises.pop("clucb2t") == Promise(Kind.END_OF_PHASE, 20)
    assert promises.pop("maximin") == Promise(Kind.ROUND_ALONE)
    assert set(promises.values()) == {Promise(Kind.EVERY_ROUND)}
    assert c4b.policies.get("linucb").promise == Promise(Kind.NONE)
    assert str(c4b.policies.get("clucb2t").promise) == "the end of every phase of 20 rounds"


def test_needs_are_data() -> None:
    needs = {name: set(c4b.policies.get(name).needs) for name in c4b.policies.names()}
    assert needs["clucb"] == {"baseline_mean"}
    assert needs["clucb-unknown"] == needs["refresh"] == set()
    assert needs["budget-first"] == {"baseline_mean", "horizon"}
    assert needs["c-squarecb"] == {"baseline_mean", "seed"}
    assert needs["cucb-unknown"] == {"one-hot features"}


# -- arms, budgets, random choices -----------------------------------------------------------------


MEANS = np.array([0.5, 0.6, 0.5, 0.4, 0.2])
ARMS = c4b.LinearModel(5, 0.3, 1.2)


def lived(name: str, rounds: int, alpha: float = 0.1, **terms: int) -> tuple[c4b.Policy, float, int]:
    """(the policy, its smallest true budget, fallbacks) after so many rounds with arms."""
    rng = np.random.default_rng(1)
    policy = c4b.Policy(name, ARMS, alpha=alpha, **terms)  # type: ignore[arg-type]
    told = 0.5 if "baseline_mean" in policy.spec.needs else None
    budget, least, fallbacks = 0.0, np.inf, 0
    for _ in range(rounds):
        decision = policy.decide(np.eye(5)[1:], np.eye(5)[0], told)
        arm = 0 if decision.action is None else decision.action + 1
        fallbacks += arm == 0
        budget += MEANS[arm] - (1.0 - alpha) * MEANS[0]
        least = min(least, budget)
        assert decision.bank <= budget + 1e-9
        policy.observe(decision.id, float(MEANS[arm] + 0.3 * rng.normal()))
    return policy, least, fallbacks


@pytest.mark.parametrize("name", ["cucb", "cucb-unknown"])
def test_arms_are_played_and_the_budget_is_kept(name: str) -> None:
    _, least, fallbacks = lived(name, 1000)
    assert least >= -1e-9
    assert 50 < fallbacks < 900


@pytest.mark.parametrize("row", [[1.0, 1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0], [0.0] * 5])
def test_a_row_that_is_no_arm_is_named(row: list[float]) -> None:
    policy = c4b.Policy("cucb", ARMS)
    with pytest.raises(c4b.errors.InvalidInput, match=r"candidates\[1\]"):
        policy.decide([np.eye(5)[1], row], np.eye(5)[0], 0.5)
    with pytest.raises(c4b.errors.InvalidInput, match="baseline"):
        policy.decide([], row, 0.5)
    with pytest.raises(c4b.errors.InvalidInput, match=r"features\[0\]"):
        policy.learn([row], [0.5])


def test_a_told_arm_stays_the_baseline() -> None:
    policy = c4b.Policy("cucb", ARMS)
    policy.decide([], np.eye(5)[0], 0.5)
    with pytest.raises(c4b.errors.InvalidInput, match="must be arm 0"):
        policy.decide([], np.eye(5)[1], 0.5)


def test_budget_first_saves_the_whole_regret_bound() -> None:
    """4 sigma sqrt(psi(T) d T) = 7591.47 for T = 1e5: 75,915 rounds at .1 each, alpha = .2."""
    policy = c4b.Policy("budget-first-arms", ARMS, alpha=0.2, horizon=100_000)
    assert isinstance(policy.gate, c4b.policies.CompiledGate)
    assert np.ceil(regret(policy.gate.earned, 1.0) / (0.2 * 0.5)) == 75_915
    short, least, fallbacks = lived("budget-first-arms", 60, alpha=0.9, horizon=60)
    assert (fallbacks, short.rounds) == (60, 60)
    assert least > 0.0


def test_budget_first_plays_once_it_has_saved_enough_and_waits_for_outcomes() -> None:
    model = c4b.LinearModel(2, 0.01, 1.0)
    policy = c4b.Policy("budget-first", model, alpha=0.5, reserve=1000.0, horizon=200)
    pool, baseline = [[1.0, 0.5]], [1.0, 0.0]
    first = policy.decide(pool, baseline, 0.5)
    assert first.action == 0
    assert policy.decide(pool, baseline, 0.5).is_baseline  # the first outcome is open
    policy.observe(first.id, 0.7)
    assert policy.decide(pool, baseline, 0.5).is_baseline  # so is the second's


def test_one_draw_for_each_seed_and_round() -> None:
    model = c4b.LinearModel(3, 0.1, 1.0)
    pool = np.eye(3) + 0.5
    stories = []
    for seed in (1, 1, 2):
        policy = c4b.Policy("c-squarecb", model, reserve=50.0, seed=seed)
        made = [policy.decide(pool, pool[0], 0.6) for _ in range(20)]
        assert all(0.0 < (d.propensity or 0.0) <= 1.0 for d in made)
        stories.append([(d.action, d.propensity) for d in made])
    assert stories[0] == stories[1] != stories[2]


@pytest.mark.parametrize("name", ["c-squarecb", "c-fastcb"])
def test_probabilities_follow_the_gaps(name: str) -> None:
    policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0), reserve=9.0, seed=0)
    policy.learn(np.eye(2).repeat(20, axis=0), [0.7] * 20 + [0.2] * 20)
    decision = policy.decide(np.eye(2), [1.0, 0.0], 0.7)
    weights = decision.details[c4b.policies.CandidateField.SCORE]
    estimate = policy.estimate
    assert estimate is not None
    rate = np.sqrt(8 * 2 / (0.1**2 * 2))
    other = 1.0 / (2.0 + rate * (estimate[0] - estimate[1]))
    if name == "c-fastcb":
        least, cost = 1.0 - estimate[0], 1.0 - estimate[1]
        other = least / (2.0 * least + rate * (cost - least))
    assert weights == pytest.approx([1.0 - other, other])


@pytest.mark.parametrize("name", ["c-squarecb", "c-fastcb"])
def test_features_beside_which_a_ridge_is_lost(name: str) -> None:
    """The regression's matrix is then singular in float64."""
    policy = c4b.Policy(
        name, c4b.LinearModel(2, noise=0.1, norm_bound=1.0), alpha=0.5, reserve=1e12, seed=1
    )
    for _ in range(5):
        decision = policy.decide([[1e9, 1e9]], [1.0, 0.0], baseline_mean=0.5)
        policy.observe(decision.id, 1.0)
    assert policy.rounds == 5
