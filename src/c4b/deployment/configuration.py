"""What a deployment is, fixed at its creation and kept in the journal's first entry."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.deployment.audit.recomputed.recompute import SETS
from c4b.deployment.transactions import recording
from c4b.errors import InvalidInput, SchemaVersion, UnknownName
from c4b.evidence import alarms
from c4b.evidence.model import LinearModel
from c4b.ledger.free_ledger import KEPT_BACK
from c4b.policies import state_file
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.registry import GateFactory, PolicySpec
from c4b.policies.compiled.compiled_choice import CUSHION
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import GateTerms
from c4b.policies.gate_run import GateRun
from c4b.policies.policy import Policy

FORMAT = 1
MODES = ("live", "shadow")
SNAPSHOT_EVERY = 2500
"""Entries between two snapshots: at most so many are replayed on opening, some 50 us each. A snapshot has
up to 300 KB with ten features, and the call that writes it takes some milliseconds longer."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A policy's configuration and the deployment's own."""

    name: str
    spec: PolicySpec
    model: LinearModel
    alpha: float
    reserve: float
    baseline_nonnegative: bool
    absorb: str
    outcome_timeout: float | None
    timeout_reward: float | None
    asserts_independence: bool = False
    """Whether the journal records who asserted independence, as ``GateRun.check_order`` asks for. Those
    of the first versions do not."""
    attests_snapshots: bool = False
    """Whether the entry after a snapshot holds its digest; see ``snapshot.newest``."""
    ids_hold_hashes: bool = False
    """Whether a decision's id holds part of its entry's hash; see ``decision_entry.decision_id``."""
    key: str | None = None
    """Public id of the key that seals every entry, see ``c4b.journal.seal``; None: none does."""
    baseline_floor: float | None = None
    horizon: int | None = None
    seed: int | None = None
    mode: str = "live"
    """``"shadow"``: it begins by executing the incumbent only, see ``rollout``."""
    records: str = recording.EVERYTHING
    """How much of a decision is kept, see ``recording``."""
    compress: bool = False
    """Whether payloads are compressed, see ``c4b.journal.envelope``."""
    erases_contexts: bool = False
    """Whether contexts lie beside what is hashed, so that they can be erased."""
    values_corrections: bool = False
    """Whether the bank is valued anew when something else was executed; else at the next decision."""
    predecessor: str | None = None
    """Name, number and hash of the entry that closed the predecessor; see ``succession``."""

    @classmethod
    def of(
        cls,
        name: str,
        policy: Policy,
        outcome_timeout: object,
        timeout_reward: object,
        key: str | None = None,
        mode: str = "live",
        records: str = recording.EVERYTHING,
        compress: bool = False,
    ) -> Configuration:
        """Check what is the deployment's own; a policy has checked the rest already."""
        timeout, reward = None, None
        if outcome_timeout is not None:
            remedy = "must be a positive number of seconds, or None to wait for ever"
            timeout = _validate.positive("outcome_timeout", outcome_timeout, remedy)
        if timeout_reward is not None:
            if timeout is None:
                remedy = "needs outcome_timeout, the seconds after which silence means that"
                raise InvalidInput("timeout_reward", timeout_reward, remedy)
            reward = _validate.reward("timeout_reward", timeout_reward)
            reward = policy.model.check_reward("timeout_reward", reward)
        if isinstance(policy.spec, GateFactory) and policy.spec.name not in registry.names():
            remedy = "must be registered: a deployment is opened again by the name of its policy"
            raise InvalidInput("policy", policy.spec.name, remedy)
        return cls(
            name,
            policy.spec,
            policy.model,
            policy.alpha,
            policy.reserve,
            policy.baseline_nonnegative,
            policy.absorb,
            timeout,
            reward,
            asserts_independence=True,
            attests_snapshots=True,
            ids_hold_hashes=True,
            key=key,
            baseline_floor=policy.gate.terms.baseline_floor,
            horizon=policy.gate.terms.horizon,
            seed=policy.gate.terms.seed,
            mode=_validate.name("mode", mode, MODES),
            records=_checked_level(records, policy),
            compress=_validate.boolean("compress", compress),
            erases_contexts=True,
            values_corrections=True,
        )

    @property
    def is_recomputable(self) -> bool:
        """Whether an audit has independent arithmetic for its decisions; else it decides them again."""
        return _recomputable(self.spec, self.model)

    def run(self) -> GateRun:
        """A fresh gate, which computes no more than its choices depend on."""
        terms = GateTerms(
            self.model,
            self.alpha,
            self.reserve,
            self.baseline_nonnegative,
            self.baseline_floor,
            self.horizon,
            self.seed,
        )
        gate = registry.build(self.spec, terms)
        if isinstance(gate, CompiledGate):
            gate.leaves_out_margins = gate.ellipsoids > 1
            gate.values_corrections = self.values_corrections
        return GateRun(gate, self.absorb == "in-order", self.spec.gated)

    def constants(self) -> dict[str, Array]:
        """What the journal's numbers depend on besides the configuration, to be recorded with it."""
        if not isinstance(self.spec, Composition):
            return {}
        rule = self.spec.rule(self.model.dim, self.model.noise)
        first = (rule.propose, rule.boldness, rule.thrift, rule.latches)
        numbers = [*first, self.spec.checkpoints, CUSHION, rule.period, rule.competes, rule.trust]
        numbers.append(KEPT_BACK if self.spec.ledger == "nonnegative" else 0.0)
        numbers += [rule.by_certificate, rule.optimism, rule.hope, rule.hopes_trust]
        numbers += [rule.reluctance, rule.restraint, rule.boldest, rule.saving]
        numbers += [rule.persists, rule.ambition, rule.endures, rule.believes, rule.unfunded]
        numbers += [rule.shuffles, rule.careful, rule.lessons, rule.patience]
        return {
            "ridges": self.model.ridges,
            "rule": np.array(numbers, dtype=np.float64),
            "alarms": np.array([alarms.ALARM_LEVEL, *(s for s, _ in alarms.BETS)]),
        }

    def fields(self) -> dict[str, Any]:
        """For the journal: plain JSON that ``recorded`` takes back."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("spec", "model")}
        model = state_file.fields(self.model)
        return {"format": FORMAT, **own, **registry.recorded(self.spec), "model": model}

    @classmethod
    def recorded(cls, fields: dict[str, Any], arrays: dict[str, Array]) -> Configuration:
        """The configuration in a journal's first entry."""
        if fields.get("format") != FORMAT:
            raise SchemaVersion(
                f"the journal has format {fields.get('format')}, this package reads {FORMAT}"
            )
        own = {k: v for k, v in fields.items() if k not in ("format", "composition", "gate", "model")}
        try:
            configuration = cls(
                spec=registry.from_record(fields), model=LinearModel(**fields["model"]), **own
            )
        except UnknownName as error:
            raise SchemaVersion(
                f"the deployment's policy is not installed here ({error}); install the package that "
                "offers it, or import the module that registers it"
            ) from error
        except (KeyError, TypeError, InvalidInput) as error:
            raise SchemaVersion(
                f"the deployment's configuration is not of this version of reserve-c4b ({error})"
            ) from error
        constants = configuration.constants()
        if any(
            not np.array_equal(_padded(arrays[key], value), value) for key, value in constants.items()
        ):
            raise SchemaVersion(
                f"{configuration.name!r} was created by a version of reserve-c4b in which "
                f"{configuration.spec.name!r} has other constants; open it with that version"
            )
        return configuration


def _checked_level(records: str, policy: Policy) -> str:
    level = _validate.name("records", records, recording.LEVELS)
    if level != recording.EVERYTHING and not _recomputable(policy.spec, policy.model):
        remedy = f"must be everything: an audit of {policy.spec.name!r} decides every round again"
        raise InvalidInput("records", records, remedy)
    return level


def _recomputable(spec: PolicySpec, model: LinearModel) -> bool:
    known = isinstance(spec, Composition) and spec.ledger != "budget"
    return known and model.confidence in SETS


def _padded(recorded: Array, current: Array) -> Array:
    """Recorded numbers of a version that knew fewer of them, with 0 for the others."""
    return np.pad(recorded, (0, max(len(current) - len(recorded), 0)))
