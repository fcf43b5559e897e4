"""What the methods of a setting start from, made once for all episodes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.evidence.ellipsoids import empty
from c4b.ledger.ledger_kernels import opening
from c4b.study.engine.compiled_episode import Lineup, Runner, runner
from c4b.study.spec.plan import Method
from c4b.study.spec.setting import Setting


class PreparedSetting(NamedTuple):
    """A setting and the state of its methods before history; nothing here is written to."""

    setting: Setting
    scene_key: tuple[object, ...]  # settings of one key have the same scene
    history_key: tuple[object, ...]  # and of this one, the same history
    learned_key: tuple[object, ...]  # and of this one, the same evidences after history
    empty_evidences: tuple[Array, ...]  # flat, one for each confidence set that some method uses
    lineup: Lineup
    stack: int  # ellipsoids of the largest evidence
    run: Runner


@lru_cache(maxsize=1024)
def prepare(setting: Setting, methods: tuple[Method, ...]) -> PreparedSetting:
    """The result is shared by all chunks: settings and methods never change."""
    evidences: dict[str, Array] = {}
    starts: dict[str, int] = {}
    evidence_end = ledger_end = 0
    ledgers: list[Array] = []
    rules: list[tuple[float, ...]] = []
    for method in methods:
        confidence, composition = method.confidence_in(setting), method.composition
        if confidence not in evidences:
            evidences[confidence] = empty(setting.model(confidence))
            starts[confidence] = evidence_end
            evidence_end += len(evidences[confidence])
        account = composition.account(
            setting.alpha, setting.reserve, misspecification=setting.misspecification
        )
        ledger = opening(account, setting.dim, composition.checkpoints)
        forced_rounds = setting.forced_rounds if method.after_forced_phase else 0
        evidence_span = starts[confidence], len(evidences[confidence])
        rules.append((*composition.rule, forced_rounds, *evidence_span, ledger_end, len(ledger)))
        ledgers.append(ledger)
        ledger_end += len(ledger)
    stack = max(int(evidence[0]) for evidence in evidences.values())
    scene_key = _scene_key(setting)
    history_key = (*scene_key, setting.history, setting.history_size)
    return PreparedSetting(
        setting,
        scene_key,
        history_key,
        (*history_key, *(evidence.tobytes() for evidence in evidences.values())),
        tuple(evidences.values()),
        Lineup(np.concatenate(ledgers), np.array(rules, dtype=np.float64)),
        stack,
        runner(stack, setting.dim, setting.count),
    )


def pool_shape(setting: Setting) -> tuple[object, ...]:
    """What the candidates of two settings must have in common to come from the same draws."""
    return setting.generator, setting.source, setting.rounds, setting.count, setting.dim


def _scene_key(setting: Setting) -> tuple[object, ...]:
    truth = (setting.theta, setting.baseline, setting.noise, setting.sigma)
    return (*pool_shape(setting), setting.rho, *truth)
