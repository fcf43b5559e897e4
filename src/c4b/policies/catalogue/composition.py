"""A policy by its parts: a certificate, a ledger, a selection rule, a score and a confidence set.

A composition works both online and in simulations, because both run the same compiled round with these
parts. The package's own compositions are in ``c4b.policies.catalogue.built_in``.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.model import DEFAULT_CONFIDENCE, LinearModel
from c4b.evidence.sets import box
from c4b.evidence.sets.table import checked_name
from c4b.evidence.sums import earned, regret
from c4b.ledger.books import Account, Certificate, LedgerKind
from c4b.policies.catalogue.choice_rule import Rule
from c4b.policies.catalogue.promise import HORIZON, ONE_HOT, Kind, Promise
from c4b.policies.catalogue.scores import CERTIFICATE, SCORES
from c4b.policies.catalogue.selections import SELECTIONS
from c4b.policies.rounds.round import BASELINE_MEAN

CERTIFICATES = ("joint", "separate", "known")
"""How a contrast is bounded: by one set for the whole of it, by two intervals, or by the candidate's
interval and the baseline's mean, which every round then tells."""
LEDGERS = {
    "carry": 0,
    "refresh": 1,
    "checkpoints": 32,
    "nonnegative": 32,
    "prefix": 0,
    "round": 0,
    "budget": 0,
    "none": 0,
}
"""Ledger name -> room for checkpoints, earlier rounds remembered besides the last one. ``prefix`` values
the sums of all rounds anew in each round; ``round`` admits only what is certified without the bank.
``budget`` admits nothing until the credit covers the regret of an optimistic learner, then all it plays.
``nonnegative`` is ``checkpoints``; under a model of the set ``bounded`` whose lowest reward is 0 it also
has the claims that need every mean to be >= 0 (``c4b.ledger.free_ledger``)."""
_FORMER_LEDGERS = {"revalue": "prefix"}
"""Names in files of earlier versions, and what they are called now."""
_LATER_FIELDS = ("learns", "earned", "phase")
"""Fields that earlier versions did not have; recorded only where they say something."""
LEARNS = ("all", "plays")
"""Which outcomes enter the confidence set: all, or those of played candidates only."""
EARNED = ("none", "martingale")
"""Whether the rewards of absorbed plays make a claim of their own: see ``evidence.sums.earned``. Then
half of delta is for it and half for the confidence set."""
RELUCTANCE = 0.25
"""Of a choice that hopes or is optimistic, in 5 features; for d it is sqrt(d/5) times as much: there is
more to learn before it pays."""
LARGEST_DELTA = 0.999
"""A share of delta that a model can have."""
_KINDS = {
    ("joint", "carry"): (Certificate.JOINT, LedgerKind.BANK),
    ("joint", "refresh"): (Certificate.JOINT, LedgerKind.BANK),
    ("joint", "checkpoints"): (Certificate.JOINT, LedgerKind.BANK),
    ("joint", "nonnegative"): (Certificate.JOINT, LedgerKind.FREE),
    ("separate", "carry"): (Certificate.SEPARATE, LedgerKind.BANK),
    ("joint", "prefix"): (Certificate.JOINT, LedgerKind.PREFIX),
    ("separate", "prefix"): (Certificate.SEPARATE, LedgerKind.PREFIX),
    ("known", "carry"): (Certificate.KNOWN, LedgerKind.BANK),
    ("known", "prefix"): (Certificate.KNOWN, LedgerKind.PREFIX),
    ("joint", "round"): (Certificate.JOINT, LedgerKind.ROUND),
    ("separate", "round"): (Certificate.SEPARATE, LedgerKind.ROUND),
    ("known", "round"): (Certificate.KNOWN, LedgerKind.ROUND),
    ("known", "budget"): (Certificate.KNOWN, LedgerKind.BUDGET),
    ("joint", "none"): (Certificate.JOINT, LedgerKind.NONE),
}
"""Which parts go together, and the kind of ledger that each pair is."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A policy made of named parts.

    >>> Composition("cautious", "joint", "refresh", "propose", "refresh, but only the top proposal")
    Composition(name='cautious', certificate='joint', ledger='refresh', selection='propose', \
summary='refresh, but only the top proposal', score='ucb', confidence=None, \
latches=False, learns='all', earned='none', phase=1)
    """

    name: str
    certificate: str
    ledger: str
    selection: str
    summary: str
    score: str = "ucb"
    confidence: str | None = None
    """The confidence set used when the model does not name one."""
    latches: bool = False
    """Whether the policy plays only the baseline after an alarm against the model."""
    learns: str = "all"
    """Which outcomes enter the confidence set: ``"all"``, or ``"plays"`` for played candidates only."""
    earned: str = "none"
    """Whether the absorbed rewards of plays give a bound of their own: ``"none"`` or ``"martingale"``."""
    phase: int = 1
    """Rounds in a phase. The budget may be negative within a phase, but not at its end."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("name", self.name, "must be a non-empty text")
        _validate.name("certificate", self.certificate, CERTIFICATES)
        if self.ledger in _FORMER_LEDGERS and self.certificate != "joint":
            object.__setattr__(self, "ledger", _FORMER_LEDGERS[self.ledger])
        _validate.name("ledger", self.ledger, (*LEDGERS, *_FORMER_LEDGERS))
        _validate.name("learns", self.learns, LEARNS)
        _validate.name("earned", self.earned, EARNED)
        _validate.count("phase", self.phase, 1, "must be a whole number of at least 1")
        _validate.name("selection", self.selection, SELECTIONS)
        _validate.name("score", self.score, SCORES)
        if self.confidence is not None:
            checked_name("confidence", self.confidence)
        if (self.certificate, self.ledger) not in _KINDS:
            known = ", ".join(f"{c} with {ledger}" for c, ledger in _KINDS)
            raise InvalidInput(
                "ledger", self.ledger, f"does not go with certificate {self.certificate!r}: {known}"
            )
        told = (self.certificate, self.ledger) == ("known", "prefix")
        if self.earned != "none" and not told:
            raise InvalidInput("earned", self.earned, "needs certificate 'known' with ledger 'prefix'")
        if self.phase > 1 and not told:
            raise InvalidInput("phase", self.phase, "needs certificate 'known' with ledger 'prefix'")
        learner = (self.selection, self.score, self.learns)
        if self.ledger == "budget" and learner != ("pooled", "ucb", "all"):
            remedy = "is for selection 'pooled' with score 'ucb', learning from all outcomes"
            raise InvalidInput("ledger", self.ledger, remedy)

    @property
    def gated(self) -> bool:
        """Whether the policy certifies what it plays."""
        return self.ledger != "none"

    @property
    def needs(self) -> frozenset[str]:
        """Required inputs of every round, and terms that are required when the policy is opened."""
        parts = {
            BASELINE_MEAN: self.certificate == "known",
            HORIZON: self.ledger == "budget",
            ONE_HOT: self.confidence == box.SET.name,
        }
        return frozenset(need for need, needed in parts.items() if needed)

    @property
    def promise(self) -> Promise:
        """What the policy promises, and after which rounds."""
        if not self.gated:
            return Promise(Kind.NONE)
        if self.ledger == "round":
            return Promise(Kind.ROUND_ALONE)
        return Promise(Kind.END_OF_PHASE if self.phase > 1 else Kind.EVERY_ROUND, self.phase)

    @property
    def keeps_told_arm(self) -> bool:
        """Whether the policy relies on the baseline of known mean being the same arm in all rounds.

        See ``evidence_model``.
        """
        return (self.certificate, self.ledger) == ("known", "prefix")

    def evidence_model(self, model: LinearModel) -> LinearModel:
        """The model of the confidence set.

        It is ``model``, with half of delta if the earnings bound uses the other half. With the box set
        and d arms, an arm whose mean is given needs no interval: the other arms share all of delta. How
        another set divides delta is not known here.
        """
        chosen = model.resolved(self.confidence)
        delta, dim = chosen.delta, chosen.dim
        if self.earned != "none":
            delta /= 2.0
        if chosen.confidence == box.SET.name and self.keeps_told_arm and dim > 1:
            delta = min(delta * dim / (dim - 1.0), LARGEST_DELTA)
        return chosen if delta == chosen.delta else dataclasses.replace(chosen, delta=delta)

    def check_terms(self, model: LinearModel, floor: float) -> None:
        """Raise ``InvalidInput`` for terms that the parts do not support.

        Baseline means are at least ``floor``.
        """
        chosen, learns = model.resolved(self.confidence), self.ledger == "budget"
        if floor < 0.0 and (learns or chosen.confidence_set.one_hot):
            remedy = f"{self.name} needs baseline means that are known to be nonnegative"
            raise InvalidInput("baseline_nonnegative", False, remedy)
        if learns and chosen.misspecification > 0.0:
            remedy = f"{self.name} has no allowance for it; use 0 or a policy that has"
            raise InvalidInput("misspecification", chosen.misspecification, remedy)
        if learns and chosen.confidence not in (DEFAULT_CONFIDENCE, box.SET.name):
            remedy = f"ledger 'budget' has regret bounds for {DEFAULT_CONFIDENCE!r} and {box.SET.name!r}"
            raise InvalidInput("confidence", chosen.confidence, remedy)

    def outcomes(self, model: LinearModel, horizon: int | None) -> Array:
        """Initial statistics of outcomes that are kept in addition to the confidence set.

        These are the earnings of plays, the state of the learner, or nothing.
        """
        if self.ledger == "budget":
            assert horizon is not None
            chosen = self.evidence_model(model)
            terms = (chosen.noise, chosen.terms.log_term, chosen.ridge, chosen.norm_bound, chosen.dim)
            return regret.learner(chosen.confidence_set.one_hot, *terms, horizon)
        if self.earned == "none":
            return np.empty(0)
        return earned.empty(model.dim, model.noise, model.delta / 2.0)

    @property
    def checkpoints(self) -> int:
        """Number of earlier rounds that the ledger can keep as checkpoints."""
        return LEDGERS[self.ledger]

    def rule(self, dim: int, noise: float) -> Rule:
        """The selection rule for ``dim`` features and the declared ``noise``."""
        selection, score = SELECTIONS[self.selection], SCORES[self.score]
        few = math.sqrt(5.0 / min(dim, 5))
        bold = min(1.0, score.boldness * math.sqrt(5.0 / dim)) if score.period else score.boldness
        reluctant = score.optimism > 0.0 or selection.hope > 0.0
        return Rule(
            propose=selection.propose,
            boldness=bold,
            thrift=selection.thrift,
            latches=self.latches,
            period=1 if selection.always_optimistic else score.period,
            competes=selection.competes,
            trust=selection.trust,
            by_certificate=self.score == CERTIFICATE,
            optimism=score.optimism,
            hope=selection.hope,
            hopes_trust=min(1.0, selection.hopes_trust * (few if selection.endures else 1.0)),
            reluctance=RELUCTANCE * math.sqrt(dim / 5.0) if reluctant else 0.0,
            restraint=score.restraint,
            boldest=score.boldest,
            saving=selection.saving,
            noise=noise,
            persists=selection.ambition > 0.0,
            ambition=selection.ambition,
            endures=selection.endures,
            believes=score.believes * few,
            unfunded=selection.unfunded,
            shuffles=selection.shuffles,
            careful=selection.careful,
            lessons=selection.lessons,
            patience=selection.patience,
        )

    def account(
        self,
        alpha: float,
        reserve: float,
        baseline_floor: float = 0.0,
        misspecification: float = 0.0,
        sums_rewards: bool = False,
    ) -> Account:
        """The terms of the ledger. For ``sums_rewards`` see ``LinearModel.sums_rewards``."""
        certificate, kind = _KINDS[self.certificate, self.ledger]
        if kind == LedgerKind.FREE and not (sums_rewards and baseline_floor >= 0.0):
            kind = LedgerKind.BANK
        return Account(alpha, reserve, baseline_floor, certificate, kind, misspecification, self.phase)


def fields(composition: Composition) -> dict[str, Any]:
    """The keyword arguments that rebuild the composition, as plain data.

    The names and fields of earlier versions are used where they suffice, because snapshots are compared
    byte by byte.
    """
    plain = dataclasses.asdict(composition)
    if (composition.certificate, composition.ledger) == ("separate", "prefix"):
        plain["ledger"] = "revalue"
    for field in dataclasses.fields(composition):
        if field.name in _LATER_FIELDS and plain[field.name] == field.default:
            del plain[field.name]
    return plain
