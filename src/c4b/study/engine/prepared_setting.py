"""What the methods of a setting start from, made once for all episodes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.evidence.absorption import empty
from c4b.evidence.ellipsoids import stack_and_dim
from c4b.evidence.model import LinearModel
from c4b.evidence.sets import table as sets
from c4b.ledger.books import opening
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.promise import Kind
from c4b.study.engine.compiled_episode import Lineup, Runner, runner
from c4b.study.spec.plan import Method
from c4b.study.spec.setting import Setting


class CompiledMethods(NamedTuple):
    """Methods that one compiled call plays, before history; nothing here is written to."""

    empty_evidences: tuple[Array, ...]  # flat, one for each confidence set that some method uses
    learned_key: tuple[object, ...]  # settings of one key have the same evidences after history
    lineup: Lineup
    knows_arms: bool  # whether some method takes unit vectors only
    keeps_told_arm: bool  # whether some of those are told the mean of one arm for good
    stack: int  # ellipsoids of the largest evidence
    run: Runner


class PreparedSetting(NamedTuple):
    """A setting, and its methods by the way they are played."""

    setting: Setting
    scene_key: tuple[object, ...]  # settings of one key have the same scene
    history_key: tuple[object, ...]  # settings of one key have the same history
    compiled: CompiledMethods | None
    python: tuple[tuple[int, Method], ...]  # (index in the study, method)


@lru_cache(maxsize=1024)
def prepare(setting: Setting, methods: tuple[Method, ...]) -> PreparedSetting:
    """The result is shared by all chunks: settings and methods never change."""
    scene_key = _scene_key(setting)
    history_key = (*scene_key, setting.history, setting.history_size)
    python: list[tuple[int, Method]] = []
    compiled: list[tuple[int, Method]] = []
    for position, method in enumerate(methods):
        if setting.methods and method.label not in setting.methods:
            continue
        (compiled if _is_compiled(method, setting) else python).append((position, method))
    return PreparedSetting(
        setting,
        scene_key,
        history_key,
        _compiled_methods(setting, compiled, history_key) if compiled else None,
        tuple(python),
    )


def _is_compiled(method: Method, setting: Setting) -> bool:
    """Whether the compiled episode plays the method: a composition with a compiled confidence set."""
    confidence = method.confidence_in(setting)
    return isinstance(method.parts, Composition) and (confidence is None or sets.is_compiled(confidence))


def _compiled_methods(
    setting: Setting, methods: list[tuple[int, Method]], history_key: tuple[object, ...]
) -> CompiledMethods:
    evidences: dict[LinearModel, Array] = {}
    starts: dict[LinearModel, int] = {}
    evidence_end = ledger_end = 0
    knows_arms = keeps_told_arm = False
    ledgers: list[Array] = []
    rules: list[tuple[float, ...]] = []
    for position, method in methods:
        assert isinstance(method.parts, Composition)
        composition, promise = method.parts, method.parts.promise
        declared = setting.model(method.confidence_in(setting))
        composition.check_terms(declared, setting.baseline_floor)
        model = composition.evidence_model(declared)
        knows_arms |= model.confidence_set.one_hot
        keeps_told_arm |= model.confidence_set.one_hot and composition.keeps_told_arm
        if model not in evidences:
            evidences[model] = empty(model)
            starts[model] = evidence_end
            evidence_end += len(evidences[model])
        account = composition.account(
            setting.alpha,
            setting.reserve,
            setting.baseline_floor,
            setting.misspecification,
            model.sums_rewards,
        )
        ledger = opening(account, setting.dim, composition.checkpoints)
        outcomes = composition.outcomes(declared, setting.rounds)
        rules.append(
            (
                *composition.rule(setting.dim, declared.noise),
                composition.learns == "plays",
                len(outcomes),
                promise.period,
                promise.kind is Kind.ROUND_ALONE,
                method.forced_rounds_in(setting),
                starts[model],
                len(evidences[model]),
                ledger_end,
                len(ledger),
                position,
            )
        )
        ledgers += [ledger, outcomes]
        ledger_end += len(ledger) + len(outcomes)
    lineup = Lineup(np.concatenate(ledgers), np.array(rules, dtype=np.float64))
    return CompiledMethods(
        tuple(evidences.values()),
        (*history_key, *(evidence.tobytes() for evidence in evidences.values())),
        lineup,
        knows_arms,
        keeps_told_arm,
        max(stack_and_dim(evidence)[0] for evidence in evidences.values()),
        runner(evidences.values(), lineup, setting.count),
    )


def pool_shape(setting: Setting) -> tuple[object, ...]:
    """What the candidates of two settings must have in common to come from the same draws."""
    shape = (setting.rounds, setting.count, setting.dim)
    return (setting.generator, setting.source, *shape, setting.correlation, setting.listing)


def _scene_key(setting: Setting) -> tuple[object, ...]:
    truth = (setting.theta, *baseline_key(setting), setting.noise, setting.sigma)
    truth = (*truth, setting.told_mean_error)
    return (*pool_shape(setting), setting.rho, *truth)


def baseline_key(setting: Setting) -> tuple[object, ...]:
    """What the baselines of two settings must have in common to be the same."""
    return setting.baseline, setting.baseline_spread, setting.baselines
