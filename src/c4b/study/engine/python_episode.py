"""One simulated episode in plain Python, for gates that are not compiled.

It plays any ``Gate`` on the same scene as the compiled episode and measures the same numbers, a few
hundred times slower. What a gate does not say (whether its set covers theta, joint and separate
certificates) is NaN in its metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from c4b._validate import Array, Counts
from c4b.errors import GateFailed
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.promise import HORIZON, SEED, Kind
from c4b.policies.catalogue.registry import PolicySpec
from c4b.policies.gate import Gate, GateTerms, Played
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.gate_answer import checked_answer
from c4b.policies.rounds.round import BASELINE_MEAN, Round
from c4b.study.engine.compiled_episode import Scene
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, PythonGate
from c4b.study.spec.setting import Setting


class PlayedEpisode(NamedTuple):
    """What an episode of one method gives."""

    metrics: Array  # (len(Metric),)
    fallbacks: Counts  # (T,) cumulative count of rounds in which the baseline was played


def play_method(
    method: Method, setting: Setting, scene: Scene, history: tuple[Array, Array], episode: int
) -> PlayedEpisode:
    """One episode of a method, from historical features (n, d) and rewards (n,)."""
    assert method.parts is not None
    spec = method.parts.factory() if isinstance(method.parts, PythonGate) else method.parts
    model = setting.model(method.confidence_in(setting))
    with _named(f"method {method.label!r}, episode {episode}"):
        terms = GateTerms(model, setting.alpha, setting.reserve, True, setting.baseline_floor)
        needs = registry.needs(spec)
        gate = registry.build(
            spec,
            terms._replace(
                horizon=setting.rounds if HORIZON in needs else None,
                seed=episode if SEED in needs else None,
            ),
        )
        gate.learn(*(rows.copy() for rows in history))
        return play(gate, spec, scene, method.forced_rounds_in(setting))


def play(gate: Gate, spec: PolicySpec, scene: Scene, forced_rounds: int) -> PlayedEpisode:
    """Play every round of the scene with ``gate``, a gate of ``spec`` that has learned its history.

    In the first ``forced_rounds`` no candidate is offered, so that the baseline is played.
    """
    alpha, reserve = gate.terms.alpha, gate.terms.reserve
    theta, rounds = scene.theta, len(scene.best)
    promise = registry.promise(spec)
    linear = gate.terms.model.misspecification == 0.0
    says_mean = BASELINE_MEAN in registry.needs(spec)
    reward = regret = 0.0
    true_credit, least, least_slack, broken = reserve, math.inf, math.inf, False
    covered: bool | None = True
    joint, separate = _MinimumReserve(), _MinimumReserve()
    fell_back = np.empty(rounds, dtype=np.int64)
    for t in range(rounds):
        baseline, mean_of_baseline = scene.baselines[t], scene.baseline_means[t].item()
        covered = _both(covered, gate.covers(theta.copy()))
        pool = np.ascontiguousarray(scene.pools[t].T)
        offered = pool[:0] if t < forced_rounds else pool
        known_mean = scene.told_means[t].item() if says_mean else None
        decision = gate.decide(Round(offered.copy(), baseline.copy(), known_mean), f"round-{t}")
        action = checked_answer(decision, len(offered)).action
        if action is not None and linear and np.array_equal(pool[action], baseline):
            action = None  # equal features are one action, whose mean is linear in them
        mean = mean_of_baseline if action is None else scene.means[t, action].item()
        noise = scene.noise[t, -1 if action is None else action].item()

        fell_back[t] = action is None
        reward += mean
        regret += scene.best[t].item() - mean
        contrast = mean - (1.0 - alpha) * mean_of_baseline
        true_credit += contrast
        if promise.kind is Kind.NONE or promise.holds_at(t + 1):
            least = min(least, true_credit)
            least_slack = float(np.minimum(least_slack, true_credit - decision.bank))  # NaN stays NaN
        broken |= promise.kind is Kind.ROUND_ALONE and contrast < 0.0
        joint.add(_bound(decision, action, CandidateField.JOINT))
        separate.add(_bound(decision, action, CandidateField.SEPARATE))
        features = (baseline if action is None else pool[action]).copy()
        played = Played(features, baseline.copy(), action is None, known_mean)
        gate.absorb_outcome(played, mean + noise)
    fallbacks = np.cumsum(fell_back)
    metrics = np.full(len(Metric), np.nan)
    metrics[Metric.REWARD_RATIO] = reward / scene.baseline_reward
    metrics[Metric.FALLBACK] = fallbacks[-1] / rounds
    metrics[Metric.MIN_D] = least
    metrics[Metric.VIOLATION] = least < 0.0 or broken
    metrics[Metric.COVERED] = math.nan if covered is None else covered
    metrics[Metric.FINAL_BANK] = gate.bank
    metrics[Metric.REGRET] = regret
    if spec.gated:
        metrics[Metric.MIN_SLACK] = least_slack
        metrics[Metric.RMIN_JOINT] = joint.needed
        metrics[Metric.RMIN_SEPARATE] = separate.needed
        metrics[Metric.SUM_PENALTY] = separate.spent - joint.spent
    return PlayedEpisode(metrics, fallbacks)


class _MinimumReserve:
    """(14) along a path of certificates; NaN once one of them is not known."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.needed = 0.0

    def add(self, certificate: float) -> None:
        self.spent -= certificate
        self.needed = float(np.maximum(self.needed, self.spent))  # NaN stays NaN


def _both(before: bool | None, now: bool | None) -> bool | None:
    """Whether both hold; None if one of them is not known and neither fails."""
    if before is False or now is False:
        return False
    return None if before is None or now is None else True


def _bound(decision: Decision, action: int | None, field: CandidateField) -> float:
    """The certificate of the executed action; NaN if the gate does not say it."""
    return float(decision.certificate if action is None else decision.details[field, action])


@contextmanager
def _named(what: str) -> Iterator[None]:
    """An error of the gate's own code says whose it is."""
    try:
        yield
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise GateFailed(f"{what}: the gate raised {type(error).__name__}: {lines[0]}") from error
