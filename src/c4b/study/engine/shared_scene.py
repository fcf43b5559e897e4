"""Settings that share a scene: one compiled call plays all their methods.

Threads share one interpreter. A thread that comes back from a call waits as long as another one runs
Python, so few long calls leave the cores less idle than many short ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.study.engine.compiled_episode import Lineup, RuleColumn, Runner, Workspace, workspace
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.prepared_setting import CompiledMethods, PreparedSetting


class CompiledGroup(NamedTuple):
    """The compiled methods of all members."""

    learned: tuple[tuple[PreparedSetting, CompiledMethods], ...]  # members whose evidences differ
    lineup: Lineup
    work: Workspace
    run: Runner

    def evidences(self, draws: EpisodeDraws) -> Array:
        """Flat evidences after history, one after the other, as ``lineup`` expects them."""
        return np.concatenate([draws.learned(one, compiled) for one, compiled in self.learned])


class SharedScene(NamedTuple):
    """Settings with the same scene."""

    members: tuple[tuple[int, PreparedSetting], ...]  # (index in the study, setting)
    compiled: CompiledGroup | None  # None: all methods are played by Python


def by_scene(prepared: list[PreparedSetting], methods: int) -> list[SharedScene]:
    """All settings of a study with so many methods, those of one scene together."""
    groups: dict[tuple[object, ...], list[tuple[int, PreparedSetting]]] = {}
    for s, one in enumerate(prepared):
        run = None if one.compiled is None else one.compiled.run
        groups.setdefault((run, *one.scene_key), []).append((s, one))
    return [SharedScene(tuple(group), _compiled(group, methods)) for group in groups.values()]


def _compiled(members: list[tuple[int, PreparedSetting]], methods: int) -> CompiledGroup | None:
    starts: dict[tuple[object, ...], int] = {}
    learned: list[tuple[PreparedSetting, CompiledMethods]] = []
    ledgers: list[Array] = []
    rules: list[Array] = []
    evidence_end = ledger_end = stack = 0
    for s, one in members:
        compiled = one.compiled
        if compiled is None:
            return None
        if compiled.learned_key not in starts:
            starts[compiled.learned_key] = evidence_end
            learned.append((one, compiled))
            evidence_end += sum(len(evidence) for evidence in compiled.empty_evidences)
        own = compiled.lineup.rules.copy()
        own[:, RuleColumn.EVIDENCE_START] += starts[compiled.learned_key]
        own[:, RuleColumn.LEDGER_START] += ledger_end
        own[:, RuleColumn.RESULT] += s * methods
        rules.append(own)
        ledgers.append(compiled.lineup.ledgers)
        ledger_end += len(compiled.lineup.ledgers)
        stack = max(stack, compiled.stack)
    lineup = Lineup(np.concatenate(ledgers), np.concatenate(rules))
    first, compiled = learned[0]
    work = workspace(lineup, stack, first.setting.dim, first.setting.count)
    return CompiledGroup(tuple(learned), lineup, work, compiled.run)
