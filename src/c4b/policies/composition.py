"""A policy by its parts: a certificate, a ledger, a selection rule, a score and a confidence set.

A composition works at once online and in every simulation, because both run the same compiled round over
these choices. Adding one of the package's own is adding an entry at the end of this file.
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
from c4b.evidence import earned, regret
from c4b.evidence.model import DEFAULT_CONFIDENCE, LinearModel
from c4b.evidence.sets import box
from c4b.evidence.sets.table import checked_name
from c4b.ledger.books import Account, Certificate, LedgerKind
from c4b.policies.choice_rule import (
    BANK_COMPETES,
    BASELINE_COMPETES,
    COUNTERWEIGHTS,
    SAVES_UP,
    Rule,
)
from c4b.policies.promise import HORIZON, ONE_HOT, Kind, Promise
from c4b.policies.round import BASELINE_MEAN

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
"""Whether the rewards of absorbed plays make a claim of their own: see ``c4b.evidence.earned``. Then half
of delta is for it and half for the confidence set."""
SELECTIONS = {
    "filter": 0.0,
    "thrifty": 0.9,
    "propose": 0.0,
    "competitive": 0.9,
    "curious": 0.9,
    "balanced": 0.0,
    "pooled": 0.0,
    "hopeful": 0.9,
    "hopeful-2": 0.9,
    "hopeful-3": 0.9,
    "hopeful-4": 0.9,
    "hopeful-5": 0.0,
}
"""Selection name -> thrift. ``filter``: the best-scored admissible candidate. ``thrifty``: the same, but,
where there are such, among those that leave 0.9 of the bank or six rounds of baseline credit: what is
not spent on one bold play keeps the gate open for the next. ``propose``: only the best-scored
candidate is tested. ``competitive``: thrifty, and a candidate is not played if its contrast with the
baseline itself, x(a) - x(b), has a score of 0 or less, so that the baseline promises as much, and if
playing it leaves no more in the bank than playing the baseline. ``curious``: competitive, but such a
candidate is played, too, if it leaves more than there is in the bank and could be better than the
baseline: what it teaches costs nothing that is certified. ``balanced``: curious without thrift; and where
the best-scored candidate is not admissible though it promises more than the baseline, the lowest-scored
one is played of those that leave more in the bank than playing the baseline. ``hopeful``: competitive,
but where nobody promises more than the baseline, the best-scored candidate that could be better is
played while little seems lost, or gained, so far: see ``HOPE``. ``hopeful-2``: hopeful, and one about
which learning is cheap is tried at once: see ``SAVING``. ``hopeful-3``: and as few plays count as there
are features in which it differs from the baseline; what was cheap stays so; and what is saved for a
trial is not spent on what could gain little: see ``AMBITION``. ``hopeful-4``: and what is cheap grows
with time: see ``ENDURING``; and with few features more could be better. ``hopeful-5``: and a smaller
fund, see ``UNFUNDED``, and no thrift; but where the best-scored candidate is not admissible though it
promises more than the baseline, the best-scored one is played of those that leave more in the bank than
playing the baseline. ``pooled``: propose, with the baseline in the pool: it is played if no candidate has
a higher UCB."""
SCORES = {
    "ucb": 1.0,
    "blend": 0.5,
    "mean": 0.0,
    "patient": 0.4,
    "certificate": 1.0,
    "keen": 0.2,
    "measured": 0.4,
    "measured-2": 0.4,
    "believed": 0.4,
}
"""Score name -> boldness b: the score is the middle of the reward's interval plus b half-widths. That of
``patient``, ``keen`` and both ``measured`` is for 5 features; for d it is b sqrt(5/d), at most 1: a
half-width has about sqrt(d) standard errors. The score ``certificate`` is the contrast's lower bound
instead. ``believed`` is ``measured-2`` in optimistic rounds; in others see ``BELIEF``."""
BELIEF = {"believed": 2.0}
"""Score name -> standard deviations that are added to what ``c4b.evidence.belief`` expects of one.
And where the baseline competes, a candidate of which no more is expected than of the baseline promises no
more, whatever the set says. For 5 features or more; for d it is sqrt(5/d) times as much: with few
features it pays to look further. With a set that keeps no eigenbasis of A, nothing is believed."""
COMPETES = {
    "competitive": BASELINE_COMPETES,
    "curious": BANK_COMPETES,
    "balanced": COUNTERWEIGHTS,
    "pooled": BASELINE_COMPETES,
    "hopeful": BASELINE_COMPETES,
    "hopeful-2": BASELINE_COMPETES,
    "hopeful-3": BASELINE_COMPETES,
    "hopeful-4": BASELINE_COMPETES,
    "hopeful-5": SAVES_UP,
}
"""Selection name -> what a candidate must beat that promises no more than the baseline."""
HOPEFUL = ("hopeful", "hopeful-2", "hopeful-3", "hopeful-4", "hopeful-5")
HOPE, HOPES_TRUST = dict.fromkeys(HOPEFUL, 4.0), dict.fromkeys(HOPEFUL, 0.5)
"""Selection name -> c and q: what could be better, x(a) - x(b) scored with q half-widths, is tried while
the t rounds so far seem to have lost or gained less than c units of ``c4b.policies.choice_rule.leeway``
in rewards of the baseline. q of those that endure is for 5 features or more; for d it is
q sqrt(5/d), at most 1: a half-width has about sqrt(d) standard errors."""
SAVING = {"hopeful-2": 0.5, "hopeful-3": 0.5, "hopeful-4": 0.75, "hopeful-5": 0.75}
"""Selection name -> share of all that alpha has granted in t rounds, alpha t rewards of the baseline,
less what seems lost or gained so far, that learning about one candidate may cost by
``c4b.policies.choice_rule.cost_of_learning``; then it is tried before there is any leeway."""
AMBITION = {"hopeful-3": 0.2, "hopeful-4": 0.2, "hopeful-5": 0.2}
"""Selection name -> share of what the best-scored candidate could gain: one that takes from the bank and
is not surely better must be able to gain as much, so that nothing is spent that is saved for a trial."""
ENDURING = ("hopeful-4", "hopeful-5")
"""Selections for which what learning may cost goes on to grow once there is leeway, with t^(3/4)."""
UNFUNDED = {"hopeful-5": 0.75}
"""Selection name -> share of the leeway that ``c4b.policies.choice_rule.fund`` goes without."""
RELUCTANCE = 0.25
"""In 5 features; for d it is sqrt(d/5) times as much: there is more to learn before it pays."""
TRUST = dict.fromkeys(("competitive", "curious", "balanced", *HOPEFUL), 0.02)
"""Selection name -> half-widths added to the middle of x(a) - x(b) where the baseline competes. Not 0:
after a baseline-only history the middle of an unknown candidate is 0, and it should be tried."""
OPTIMISTIC_PERIOD = {
    "ucb": 0,
    "blend": 0,
    "mean": 0,
    "patient": 32,
    "certificate": 0,
    "keen": 32,
    "measured": 1024,
    "measured-2": 1024,
    "believed": 1024,
}
"""Score name -> m: one round of m takes b = 1 and keeps no cushion, so that no candidate is ignored for
ever; 0: no round does."""
OPTIMISM = {"measured": 8.0, "measured-2": 8.0, "believed": 8.0}
"""Score name -> a: so do a more of the first rounds for each unit of their leeway: who may lose more
tries more, and most of it early."""
RESTRAINT = {"measured-2": 0.5, "believed": 0.5}
BOLDEST = {"measured-2": 2, "believed": 2}
"""Score name -> r and n: of n such rounds the first takes b = 1, the others b = 1 - r. A half-width is
several standard errors: it takes a whole one to try what is unknown, too much for what was tried."""

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
    """A policy by its parts.

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
    """The set it is made for, used when the model leaves its own choice open."""
    latches: bool = False
    """Whether an alarm against the model latches the baseline."""
    learns: str = "all"
    """Which outcomes enter the confidence set."""
    earned: str = "none"
    """Whether rewards of absorbed plays make a claim of their own."""
    phase: int = 1
    """Rounds between two promises: the budget may be negative within a phase, not at its end."""

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
        """What it cannot do without: inputs of every round, or terms given when it is opened."""
        parts = {
            BASELINE_MEAN: self.certificate == "known",
            HORIZON: self.ledger == "budget",
            ONE_HOT: self.confidence == box.SET.name,
        }
        return frozenset(need for need, needed in parts.items() if needed)

    @property
    def promise(self) -> Promise:
        """What it promises, and when."""
        if not self.gated:
            return Promise(Kind.NONE)
        if self.ledger == "round":
            return Promise(Kind.ROUND_ALONE)
        return Promise(Kind.END_OF_PHASE if self.phase > 1 else Kind.EVERY_ROUND, self.phase)

    @property
    def keeps_told_arm(self) -> bool:
        """Whether it relies on the arm of the told baseline to stay the same; see ``evidence_model``."""
        return (self.certificate, self.ledger) == ("known", "prefix")

    def evidence_model(self, model: LinearModel) -> LinearModel:
        """What its confidence set assumes: the model, with half of delta if earnings need the other.

        Of d arms, one whose mean is told needs no interval: the others share all of delta.
        """
        chosen = model.resolved(self.confidence)
        delta, dim = chosen.delta, chosen.dim
        if self.earned != "none":
            delta /= 2.0
        if chosen.confidence_set.one_hot and self.keeps_told_arm and dim > 1:
            delta = min(delta * dim / (dim - 1.0), LARGEST_DELTA)
        return chosen if delta == chosen.delta else dataclasses.replace(chosen, delta=delta)

    def check_terms(self, model: LinearModel, floor: float) -> None:
        """Refuse what its parts do not allow for; baseline means are at least ``floor``."""
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
        """What it keeps of outcomes beside the set, before any: what plays have earned, how far its
        learner is, or nothing."""
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
        """Earlier rounds that the ledger can remember."""
        return LEDGERS[self.ledger]

    def rule(self, dim: int, noise: float) -> Rule:
        """How it chooses in ``dim`` dimensions where the model declares ``noise``."""
        boldness, period = SCORES[self.score], OPTIMISTIC_PERIOD[self.score]
        if self.selection == "pooled":  # every round is optimistic
            period = 1
        if OPTIMISTIC_PERIOD[self.score]:
            boldness = min(1.0, boldness * math.sqrt(5.0 / dim))
        hopes_trust, endures = HOPES_TRUST.get(self.selection, 0.0), self.selection in ENDURING
        if endures:
            hopes_trust = min(1.0, hopes_trust * math.sqrt(5.0 / min(dim, 5)))
        return Rule(
            self.selection in ("propose", "pooled"),
            boldness,
            SELECTIONS[self.selection],
            self.latches,
            period,
            COMPETES.get(self.selection, 0),
            TRUST.get(self.selection, 0.0),
            self.score == "certificate",
            OPTIMISM.get(self.score, 0.0),
            HOPE.get(self.selection, 0.0),
            hopes_trust,
            RELUCTANCE * math.sqrt(dim / 5.0)
            if self.score in OPTIMISM or self.selection in HOPE
            else 0.0,
            RESTRAINT.get(self.score, 0.0),
            BOLDEST.get(self.score, 0),
            SAVING.get(self.selection, 0.0),
            noise,
            self.selection in AMBITION,
            AMBITION.get(self.selection, 0.0),
            endures,
            BELIEF.get(self.score, 0.0) * math.sqrt(5.0 / min(dim, 5)),
            UNFUNDED.get(self.selection, 0.0),
        )

    def account(
        self,
        alpha: float,
        reserve: float,
        baseline_floor: float = 0.0,
        misspecification: float = 0.0,
        sums_rewards: bool = False,
    ) -> Account:
        """The ledger's terms; ``sums_rewards``: see ``LinearModel.sums_rewards``."""
        certificate, kind = _KINDS[self.certificate, self.ledger]
        if kind == LedgerKind.FREE and not (sums_rewards and baseline_floor >= 0.0):
            kind = LedgerKind.BANK
        return Account(alpha, reserve, baseline_floor, certificate, kind, misspecification, self.phase)


def fields(composition: Composition) -> dict[str, Any]:
    """The keyword arguments that rebuild it, as plain data.

    What earlier versions could say is said as they said it: snapshots are compared byte by byte.
    """
    plain = dataclasses.asdict(composition)
    if (composition.certificate, composition.ledger) == ("separate", "prefix"):
        plain["ledger"] = "revalue"
    for field in dataclasses.fields(composition):
        if field.name in _LATER_FIELDS and plain[field.name] == field.default:
            del plain[field.name]
    return plain


BUILT_IN = (
    Composition("separate", "separate", "carry", "filter", "two intervals per round, frozen bank"),
    Composition("contrast", "joint", "carry", "filter", "one set per contrast, frozen bank"),
    Composition("refresh", "joint", "refresh", "filter", "contrast, and the prefix recertified"),
    Composition("revalue", "separate", "prefix", "propose", "cumulative intervals, top proposal"),
    Composition("revalue-f", "separate", "prefix", "filter", "cumulative intervals, filtered"),
    Composition("linucb", "joint", "none", "filter", "no gate: highest UCB, certifies nothing"),
    Composition("checkpoints", "joint", "checkpoints", "filter", "refresh from any of 32 rounds"),
    Composition(
        "reserve-c4b+",
        "joint",
        "checkpoints",
        "hopeful-5",
        "recommended: several ridges, checkpoints, hopeful choice",
        score="believed",
        confidence="several-ridges",
        latches=True,
    ),
    Composition(
        "clicks",
        "joint",
        "nonnegative",
        "balanced",
        "for LinearModel.bounded: also what rewards >= 0 allow, such as free exploration",
        score="keen",
        confidence="several-ridges",
        latches=True,
    ),
    Composition(
        "clucb",
        "known",
        "prefix",
        "propose",
        "Kazerouni 2017, told mean; top proposal. Differs: log-det radius, learns from all outcomes",
    ),
    Composition(
        "clucb-plays",
        "known",
        "prefix",
        "propose",
        "Kazerouni 2017 (CLUCB), told mean, learning from plays only as there. Differs: log-det radius",
        learns="plays",
    ),
    Composition(
        "clucb-source",
        "known",
        "prefix",
        "propose",
        "Kazerouni 2017, told mean, plays only, its radius, nested sets. Differs: 15 earlier sets kept",
        confidence="kazerouni",
        learns="plays",
    ),
    Composition(
        "clucb-unknown",
        "separate",
        "prefix",
        "propose",
        "Kazerouni 2017 (CLUCB2 there), unknown mean, r_l = baseline_floor. Differs: one set, not nested",
    ),
    Composition(
        "clucb-unknown-nested",
        "separate",
        "prefix",
        "propose",
        "the same with nested sets. Differs: log-det radius, 15 earlier sets, learns from all outcomes",
        confidence="nested",
    ),
    Composition(
        "clucb2",
        "known",
        "prefix",
        "filter",
        "Garcelon 2020 (CLUCB2), told mean; counts realised rewards of plays. Differs: log-det radius",
        earned="martingale",
    ),
    Composition(
        "clucb2t",
        "known",
        "prefix",
        "filter",
        "Garcelon 2020, told mean, r_l = baseline_floor; promises the ends of phases of 20 rounds",
        earned="martingale",
        phase=20,
    ),
    Composition(
        "lcbce",
        "known",
        "carry",
        "propose",
        "Yang 2021 (LCBCE), told mean; frozen bank, top proposal. Differs: log-det radius",
    ),
    Composition(
        "maximin",
        "joint",
        "round",
        "filter",
        "Petrik 2016, highest certificate; every round safe by itself. Differs: linear, online",
        score="certificate",
    ),
    Composition(
        "cucb",
        "known",
        "prefix",
        "propose",
        "Wu 2016 (CUCB), arms, told mean; top proposal. Differs: intervals hold at all times together",
        confidence="box",
    ),
    Composition(
        "cucb-unknown",
        "joint",
        "prefix",
        "propose",
        "Wu 2016, arms, unknown mean; top proposal. Differs: intervals hold at all times together",
        confidence="box",
    ),
    Composition(
        "budget-first",
        "known",
        "budget",
        "pooled",
        "Wu 2016 (BudgetFirst) for LinUCB, told mean; saves its regret bound, then plays it for good",
    ),
    Composition(
        "budget-first-arms",
        "known",
        "budget",
        "pooled",
        "Wu 2016 (BudgetFirst), arms, told mean; saves Reg_T = 4 sigma sqrt(psi(T) d T), then plays UCB",
        confidence="box",
    ),
)
"""The paper's six policies, what goes beyond them, and the systems they are compared with."""
