"""The compiled episode against the online policy, decision by decision, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.evidence import absorption
from c4b.ledger import books as ledgers
from c4b.policies import CandidateField, get
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.promise import Kind
from c4b.study.engine import compiled_episode as engine
from c4b.study.engine import prepared_setting
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import HISTORIES, Setting
from c4b.study.world import candidates, draws
from support.any_world import COMPILED

CONFIDENCES = (*c4b.evidence.CONFIDENCES,)
METHODS = tuple(COMPILED)

SEED = 11
SCENARIOS = 12


USUAL = SCENARIOS
"""Number of the scenario that has the shape for which the engine has machine code of its own."""


def random_setting(number: int) -> Setting:
    rng = np.random.default_rng([99, number])
    dim = engine.USUAL_DIM if number == USUAL else 1 + number % 8
    theta = rng.normal(size=dim)
    theta *= rng.uniform(0.5, 1.4) / np.linalg.norm(theta)
    baseline = rng.normal(size=dim)
    baseline *= rng.uniform(0.5, 1.2) / np.linalg.norm(baseline)
    if baseline @ theta < 0.0:
        baseline = -baseline
    mean = float(baseline @ theta)
    changing = dim > 1 and number % 3 == 2
    spread = 0.8 * mean / float(np.linalg.norm(theta[1:])) if changing else 0.0
    wrong_sigma = number % 5 == 4
    sigma = 0.4 if wrong_sigma else float(rng.choice([0.02, 0.1, 0.4]))
    return Setting(
        assumed_sigma=0.02 if wrong_sigma else None,  # refutes the model: alarms
        misspecification=0.01 if number % 4 == 3 else 0.0,
        history=HISTORIES[number % len(HISTORIES)],
        history_size=int(rng.integers(0, 40)),
        rho=float(rng.uniform(0.05, 1.0)),
        sigma=sigma,
        reserve=float(rng.choice([0.0, 0.5, 3.0])),
        alpha=float(rng.uniform(0.02, 0.4)),
        delta=float(rng.uniform(0.01, 0.3)),
        ridge=float(rng.choice([0.1, 1.0])),
        noise=draws.NOISES[number % len(draws.NOISES)],
        generator=("sphere", "gaussian")[number % 2],
        count=engine.USUAL_SIZE if number == USUAL else int(rng.integers(1, 12)),
        rounds=int(rng.integers(20, 60)),
        theta=tuple(theta.tolist()),
        baseline=tuple(baseline.tolist()),
        baseline_spread=spread,
        correlation=0.7 if number == 6 else 0.0,
        told_mean_error=(0.0, 0.05)[number % 7 == 1],
        baseline_floor=(0.0, 0.5 * (mean - 0.8 * mean * changing))[number % 2],
    )


class Scene:
    """The draws of one episode, made here from the streams by their roles."""

    def __init__(self, setting: Setting, episode: int) -> None:
        theta = np.array(setting.theta)
        raw = candidates.raw_pools(setting, SEED, episode)
        self.pools = candidates.pools(setting, raw)
        self.means = np.einsum("i,tik->tk", theta, self.pools)
        shape = (setting.rounds, setting.count + 1)
        self.noise = setting.sigma * draws.unit_noise(
            setting.noise, draws.stream(SEED, episode, draws.NOISE), shape
        )
        self.baselines = candidates.baselines(setting, SEED, episode)
        self.baseline_means = [_dot(row, theta) for row in self.baselines]
        self.features = candidates.history(setting, SEED, episode, self.pools)
        past = draws.stream(SEED, episode, draws.HISTORY_NOISE)
        noise = draws.unit_noise(setting.noise, past, (setting.history_size,))
        self.rewards = self.features @ theta + setting.sigma * noise


def _dot(x: np.ndarray, y: np.ndarray) -> float:
    return float(sum(a * b for a, b in zip(x, y, strict=True)))


def played_online(setting: Setting, method: Method, scene: Scene) -> tuple[c4b.Policy, dict, list]:
    """The same episode through ``c4b.Policy``: its final state, the metrics, fallback by round."""
    model = setting.model(method.confidence_in(setting))
    floor = setting.baseline_floor
    policy = c4b.Policy(method.policy, model, setting.alpha, setting.reserve, baseline_floor=floor)
    promise, told = policy.composition.promise, bool(policy.composition.needs)
    alone = promise.kind is Kind.ROUND_ALONE
    policy.learn(scene.features, scene.rewards)
    reward = regret = 0.0
    d, ds, slacks, falls = setting.reserve, [], [], []
    joint_path, separate_path, broken = [], [], False
    for t in range(setting.rounds):
        baseline, mean_b = scene.baselines[t], scene.baseline_means[t]
        known = mean_b + setting.told_mean_error if told else None
        decision = policy.decide(scene.pools[t].T, baseline, known)
        a = decision.action
        mean = mean_b if a is None else scene.means[t, a]
        policy.observe(decision.id, float(mean + scene.noise[t, -1 if a is None else a]))
        falls.append(a is None)
        reward += mean
        best_b = setting.baseline_mean if setting.fixed_baseline else mean_b
        regret += max(scene.means[t].max(), best_b) - mean
        contrast = mean - (1.0 - setting.alpha) * mean_b
        d += contrast
        if (t + 1) % promise.period == 0:
            ds.append(d)
            slacks.append(d - decision.bank)
        broken |= alone and contrast < 0.0
        bound = decision.certificate
        joint_path.append(bound if a is None else decision.details[CandidateField.JOINT, a])
        separate_path.append(bound if a is None else decision.details[CandidateField.SEPARATE, a])
    gated = policy.composition.gated
    means = scene.baseline_means
    total = setting.rounds * means[0] if setting.fixed_baseline else float(np.sum(means))
    need = [max(0.0, float(np.max(-np.cumsum(path)))) for path in (joint_path, separate_path)]
    expected = {
        "reward_ratio": reward / total,
        "fallback": sum(falls) / setting.rounds,
        "min_d": min(ds),
        "violation": float(min(ds) < 0.0 or broken),
        "min_slack": min(slacks) if gated else np.nan,
        "final_bank": policy.bank,
        "regret": regret,
        "rmin_joint": need[0] if gated else np.nan,
        "rmin_separate": need[1] if gated else np.nan,
        "sum_penalty": sum(joint_path) - sum(separate_path) if gated else np.nan,
    }
    return policy, expected, np.cumsum(falls).tolist()


EXACT = ("reward_ratio", "fallback", "min_d", "violation", "min_slack", "final_bank", "regret")
"""Metrics that both sides sum in the same order."""


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("number", range(SCENARIOS + 1))
def test_an_episode_equals_the_online_policy(number: int, confidence: str) -> None:
    setting = replace(random_setting(number), confidence=confidence)
    methods = tuple(Method(name, name) for name in METHODS)
    study = Study("duel", "duel", methods, (setting,), (), 3, SEED)
    for episode in range(2):
        chunk, scene = simulate(study, episode, episode + 1), Scene(setting, episode)
        for m, method in enumerate(methods):
            _, expected, falls = played_online(setting, method, scene)
            found = {metric.column: chunk.metrics[0, 0, m, metric].item() for metric in Metric}
            assert chunk.fallback_sum[0, m].tolist() == falls, method
            for name, value in expected.items():
                if name in EXACT:
                    assert found[name] == value or np.isnan([found[name], value]).all(), (method, name)
                else:
                    # expanded and direct squares allow differently for rounding
                    np.testing.assert_allclose(
                        found[name], value, rtol=1e-7, atol=1e-7, err_msg=f"{method.label} {name}"
                    )


def test_ties_are_those_of_the_online_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of scores that are certificates: every candidate is there twice."""
    made = c4b.Composition(
        "ties",
        "joint",
        "checkpoints",
        "hopeful-8",
        "for a test",
        score="certificate",
        confidence="several-ridges",
    )
    monkeypatch.setitem(registry._REGISTRY, made.name, made)
    arms = np.eye(4)
    np.savetxt(tmp_path / "pool.csv", np.concatenate([arms[0] + 0.2 * arms[1:]] * 2), delimiter=",")
    setting = Setting(
        generator="file",
        source=str(tmp_path / "pool.csv"),
        count=6,
        rounds=60,
        history="baseline",
        history_size=20,
        sigma=0.1,
        reserve=5.0,
        alpha=0.3,
        theta=(0.6, 0.5, 0.3, 0.2),
        baseline=(1.0, 0.0, 0.0, 0.0),
    )
    method = Method(made.name, made.name)
    chunk = simulate(Study("duel", "duel", (method,), (setting,), (), 3, SEED), 0, 1)
    _, expected, _ = played_online(setting, method, Scene(setting, 0))
    found = {metric.column: chunk.metrics[0, 0, 0, metric].item() for metric in Metric}
    assert expected["fallback"] < 1.0
    assert {name: found[name] for name in EXACT} == {name: expected[name] for name in EXACT}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("number", range(SCENARIOS + 1))
def test_evidence_and_ledger_end_in_the_same_bits(number: int, name: str) -> None:
    """Sums over everything executed: one different action in any round would show."""
    setting, method = random_setting(number), Method(name, name)
    scene = Scene(setting, 0)
    policy, _, _ = played_online(setting, method, scene)
    composition = get(name)
    declared = setting.model(method.confidence_in(setting))
    model, outcomes = composition.evidence_model(declared), composition.outcomes(declared, setting.rounds)
    evidence = absorption.empty(model)
    absorption.absorb_many(evidence, scene.features, scene.rewards)
    account = composition.account(
        setting.alpha, setting.reserve, setting.baseline_floor, setting.misspecification
    )
    ledger = ledgers.opening(account, setting.dim, composition.checkpoints)
    theta, means = np.array(setting.theta), np.array(scene.baseline_means)
    best = np.maximum(scene.means.max(axis=1), means)
    told, total = means + setting.told_mean_error, means.sum().item()
    made = engine.Scene(
        scene.pools, scene.means, best, scene.noise, scene.baselines, theta, means, total, told
    )
    earned = len(policy.gate.earned)
    own = (composition.learns == "plays", earned, composition.phase, composition.ledger == "round")
    rule = (
        *composition.rule(setting.dim, policy.model.noise),
        *own,
        0,
        0,
        len(evidence),
        0,
        len(ledger),
        0,
    )
    assert len(rule) == engine.RuleColumn.RESULT + 1
    lineup = engine.Lineup(np.concatenate([ledger, outcomes]), np.array([rule], dtype=np.float64))
    work = engine.workspace(lineup, int(evidence[0]), setting.dim, setting.count)
    metrics, falls = np.empty((1, len(Metric))), np.zeros((2, 1, setting.rounds), dtype=np.int64)
    run = engine.runner([evidence], lineup, setting.count)
    run(evidence, lineup, made, work, metrics, falls)
    assert work.evidence.tobytes() == policy.evidence.flat.tobytes()
    if (
        run is engine.run_usual_setting and not composition.checkpoints
    ):  # it keeps no sum that is not read
        ledgers.views(work.ledger)[0].prefix[:] = ledgers.views(policy.gate.ledger)[0].prefix
        ledgers.views(work.ledger)[0].low[0] = ledgers.views(policy.gate.ledger)[0].low[0]
    assert work.ledger.tobytes() == policy.gate.ledger.tobytes()
    assert work.earned[:earned].tobytes() == policy.gate.earned.tobytes()


def test_shapes_known_when_compiling_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's study through its own machine code and through the general one: the same bytes."""
    study = files.load("paper")
    compiled = prepared_setting.prepare(study.settings[0], study.methods).compiled
    assert compiled is not None
    assert compiled.run is engine.run_usual_setting
    usual = simulate(study, 5, 7)
    monkeypatch.setattr(prepared_setting, "runner", lambda *shape: engine.run_setting)
    prepared_setting.prepare.cache_clear()
    general = simulate(study, 5, 7)
    prepared_setting.prepare.cache_clear()
    assert usual.metrics.tobytes() == general.metrics.tobytes()
    assert usual.fallback_sum.tobytes() == general.fallback_sum.tobytes()
    assert usual.fallback_square_sum.tobytes() == general.fallback_square_sum.tobytes()


def test_the_scenarios_exercise_play_and_fallback() -> None:
    """Agreement on episodes that always fall back, or never do, would say little."""
    shares = {name: [] for name in METHODS}
    for number in range(SCENARIOS):
        setting = random_setting(number)
        methods = tuple(Method(name, name) for name in METHODS)
        chunk = simulate(Study("duel", "duel", methods, (setting,), (), 2, SEED), 0, 1)
        for m, name in enumerate(METHODS):
            shares[name].append(chunk.metrics[0, 0, m, Metric.FALLBACK])
    assert not any(shares.pop("linucb"))
    for name, found in shares.items():
        assert sum(0.0 < share < 1.0 for share in found) >= 3, name


def test_the_scenarios_raise_alarms() -> None:
    settings = [random_setting(number) for number in range(SCENARIOS)]
    wrong_sigma = [setting for setting in settings if setting.assumed_sigma is not None]
    method = Method("mixture", "reserve-c4b+", "mixture")
    assert any(played_online(s, method, Scene(s, 0))[0].alarm for s in wrong_sigma)


def test_who_plays_beside_it_changes_nothing() -> None:
    """Methods of a setting share memory one after the other. Their sets have different lengths; arms
    (``cucb``) and clicks keep some of theirs at its end."""
    arms = Setting(
        history_size=0, sigma=0.3, alpha=0.2, generator="one-hot", count=4, rounds=60,
        theta=(0.5, 0.6, 0.5, 0.4, 0.2), baseline=(1.0, 0.0, 0.0, 0.0, 0.0),
    )  # fmt: skip
    names = ("linucb", "reserve-c4b+", "clucb", "cucb", "cucb-unknown", "refresh")
    methods = [Method(name, name) for name in names]
    _same_alone_and_together(methods, arms)
    sets = ("self-normalized", "bounded", "bounded-3", "several-ridges", "bounded-2")
    _same_alone_and_together(
        [Method(name, "clicks", name) for name in sets], replace(arms, noise="clicks")
    )


def _same_alone_and_together(methods: list[Method], setting: Setting) -> None:
    together = simulate(Study("x", "x", tuple(methods), (setting,), (), 8, SEED), 0, 8).metrics
    for n, method in enumerate(methods):
        alone = simulate(Study("x", "x", (method,), (setting,), (), 8, SEED), 0, 8).metrics
        np.testing.assert_array_equal(together[:, 0, n], alone[:, 0, 0], err_msg=method.label)
