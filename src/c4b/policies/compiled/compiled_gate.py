"""The gate of every ``Composition``: ellipsoids, claims and a ledger, decided by one compiled round."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from c4b._compilation.cache_lines import new_space
from c4b._validate import LARGEST, Array
from c4b.certificates.contrast_kernels import both
from c4b.errors import InvalidInput, NoSafeAction
from c4b.evidence import earlier_layout, ellipsoids
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.evidence import Evidence
from c4b.evidence.sets.box import check_arm, check_arms
from c4b.evidence.sums import earned, regret
from c4b.ledger import books, ledger_kernels
from c4b.ledger.books import LedgerKind, SumsOf, Tally, Term
from c4b.policies.catalogue.choice_rule import completed, rule_numbers
from c4b.policies.catalogue.composition import Composition
from c4b.policies.compiled import sliced_scores
from c4b.policies.compiled.compiled_choice import BASELINE
from c4b.policies.compiled.compiled_round import NO_SAFE_ACTION, NOT_FINITE
from c4b.policies.compiled.decide_kernels import decider
from c4b.policies.compiled.round_space import space_size
from c4b.policies.gate import Arrays, Gate, GateTerms, Played
from c4b.policies.rounds.candidate_fields import ROWS, CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.round import Round
from c4b.policies.rounds.slates import Outcome, total

ESTIMATE, UPPER = "estimate", "upper"
"""Arrays of ``explanation``: the set's centre (d,), and upper bounds of the contrasts (K,)."""
WRONG_MEAN = "a baseline mean that was told lies outside of the interval that the data give it"
"""An alarm; false with probability at most delta."""
CONNECTED = ("_absorb", "_decide", "_known", "_count_of")
"""Attributes that ``CompiledGate._connect`` makes."""


_new = tuple.__new__
"""Makes a ``Decision`` of all its fields, without the detour through defaults that names take."""


class StateOfDecision(NamedTuple):
    """What a decision was made from; candidates (K, d) are the caller's. What changes is kept as bytes,
    which are copied in half the time of arrays, and so is the baseline (d,): no score would show that the
    caller overwrote it."""

    region: bytes
    """The front of the evidence; see ``c4b.evidence.ellipsoids.region_size``."""
    ledger: bytes
    earned: bytes
    observed: int
    """Numbers in the whole evidence."""
    rule: Array
    candidates: Array
    baseline: bytes
    mean: float
    totals: bytes = b""
    """The end of the evidence, of sets that have ``Region.totals``."""

    def details(self, known: Array) -> Array:
        """Decide again with every margin; the decision's own scores show whether all is as it was."""
        region, ledger, earned = (np.frombuffer(part).copy() for part in self[:3])
        evidence = np.full(self.observed, np.nan)
        evidence[: len(region)] = region
        totals = np.frombuffer(self.totals)
        evidence[len(evidence) - len(totals) :] = totals
        size = len(self.candidates)
        found, space = np.empty((ROWS, size)), new_space(space_size(evidence, ledger, size))
        baseline = np.frombuffer(self.baseline).copy()
        given = (self.candidates, baseline, self.mean, False, 0, 0)
        decider(evidence, ledger, self.rule)(evidence, ledger, self.rule, earned, *given, found, space)
        was, now = known[CandidateField.UCB], found[CandidateField.UCB]
        if not np.array_equal(was, now, equal_nan=True):
            k = int(np.argmax(was != now))
            remedy = "was overwritten after decide; explain a decision before, or hand over a copy"
            raise InvalidInput(f"candidates[{k}]", self.candidates[k], remedy)
        return found


class CompiledGate(Gate):
    """A composition under terms. Its evidence and its ledger are one flat vector each."""

    array_prefix = ""
    takes_slates = True
    leaves_out_margins = False
    """Whether decisions leave out the numbers of candidates that could not have been chosen."""
    values_corrections = True
    """Whether the bank is valued anew when something else was executed; not in early journals."""

    def __init__(self, composition: Composition, terms: GateTerms) -> None:
        composition.check_terms(terms.model, terms.floor)
        self.composition = composition
        self.evidence = Evidence(composition.evidence_model(terms.model))
        self.terms = terms._replace(model=terms.model.resolved(composition.confidence))
        account = composition.account(
            terms.alpha,
            terms.reserve,
            terms.floor,
            terms.model.misspecification,
            self.evidence.model.sums_rewards,
        )
        self.earned = composition.outcomes(terms.model, terms.horizon)
        """What absorbed plays have earned, or how far a learner is, if the composition asks."""
        self._earns, self._has_learner = composition.earned != "none", composition.ledger == "budget"
        self.knows_instead = self._has_learner
        self.checks_rows = self._knows_arms = self.evidence.model.confidence_set.one_hot
        self.takes_slates = not (self._knows_arms or self._has_learner)
        self.ledger = books.opening(account, terms.model.dim, composition.checkpoints)
        """The ledger's flat vector; writing to it writes the gate's books."""
        self._has_terms = len(books.views(self.ledger)[0].terms) > 0
        self._told_alarm_at = len(self.ledger) - len(Term) + Term.ALARM
        self._flat = self.evidence.flat
        self._rule = rule_numbers(composition.rule(terms.model.dim, terms.model.noise))
        self._room, self._space = -1, np.empty(0)  # for so many candidates
        self._before = self._region = self._totals = self._space
        """The part of it in which the last decision left the ledger as it was before."""
        self._name = composition.name
        self.revalues = composition.ledger in ("prefix", "budget")
        self._learns_plays_only = composition.learns == "plays"
        self.learns_alike = not (self._learns_plays_only or self._has_learner or self._earns)
        self._observed, self._keeps_earned = len(self._flat), len(self.earned) > 0
        region = ellipsoids.views(self._flat)[0]
        self._keeps_totals = region.spectral and len(region.totals) > 0
        self.ellipsoids = len(region.radius)
        self._radius_at = ellipsoids.radius_index(self._flat)
        self._connect()

    def _connect(self) -> None:
        """The kernels, and views of the flat vectors: what a copy cannot take over."""
        self._absorb = self.evidence.absorber
        self._decide = decider(self._flat, self.ledger, self._rule)
        region, data, _ = ellipsoids.views(self._flat)
        known = (
            region.basis,
            region.estimate,
            region.radius,
            region.reach,
            data.moment,
            data.tally,
        )
        self._known = [*_pieces(self._flat, known), self.earned]
        self._count_of = data.tally

    def decide(self, round_: Round, decision_id: str) -> Decision:
        if self._knows_arms:
            self._check_arms(round_)
        mean = round_.baseline_mean
        return self.decide_ready(
            round_.candidates, round_.baseline, math.nan if mean is None else mean, decision_id, round_
        )

    def decide_ready(
        self,
        candidates: Array,
        baseline: Array,
        mean: float,
        decision_id: str,
        round_: Round | None = None,
    ) -> Decision:
        """``decide`` on arrays that were checked, with a mean that is NaN if it is not told; errors are
        about ``round_``."""
        ledger, flat, rule, earned = self.ledger, self._flat, self._rule, self.earned
        lazy, size = self.leaves_out_margins, len(candidates)
        if size > self._room:
            space = new_space(space_size(flat, ledger, size))
            self._room, self._space, self._before = size, space, space[: len(ledger)]
            self._region = flat[: ellipsoids.region_size(flat)]
            self._totals = ellipsoids.views(flat)[0].totals
        space, details, scored = self._space, np.empty((ROWS, size)), 0
        if lazy and size >= sliced_scores.LEAST:
            scored = self._score_slices(candidates, baseline, mean, details, round_)
        action, row, bank, certificate, ucb, radius, before, complete, alarm = self._decide(
            flat, ledger, rule, earned, candidates, baseline, mean, lazy, scored, scored, details, space
        )
        if action < BASELINE:
            self._refuse(action, row, bank, round_ or Round(candidates, baseline))
        left_out = None
        if not complete:
            left_out = _new(
                StateOfDecision,
                (
                    self._region.tobytes(),
                    self._before.tobytes(),
                    earned.tobytes() if self._keeps_earned else b"",
                    self._observed,
                    rule,
                    candidates,
                    baseline.tobytes(),
                    mean,
                    self._totals.tobytes() if self._keeps_totals else b"",
                ),
            )
        return _new(
            Decision,
            (
                decision_id,
                None if action == BASELINE else action,
                bank,
                certificate,
                ucb,
                radius,
                before,
                self._name,
                self.alarm if alarm else None,
                details,
                None,  # propensity
                None,  # receipt
                None,  # labels
                None,  # held
                None,  # proposed
                left_out,
            ),
        )

    def _score_slices(
        self, candidates: Array, baseline: Array, mean: float, details: Array, round_: Round | None
    ) -> int:
        """Score a large pool by several threads, if there may be; returns how many are scored."""
        size, threads = len(candidates), sliced_scores.thread_limit()
        if threads == 1:
            return 0
        given = (self._flat, self.ledger, self._rule, self.earned, candidates, baseline, mean, True)
        bad = sliced_scores.score_slices(self._decide, given, size, details, len(self._space), threads)
        if bad < size:
            self._refuse(NOT_FINITE, bad, math.nan, round_ or Round(candidates, baseline))
        return size

    def take_back(self, rounds: int) -> None:
        """Take back the last decision, if it was charged: only ``rounds`` shall be."""
        if self.rounds > rounds:
            self.ledger[:] = self._before

    def check_row(self, argument: str, row: Array) -> None:
        if self._knows_arms:
            check_arm(argument, row)

    def _check_arms(self, round_: Round) -> None:
        """Every row is an arm; one whose mean is told is the baseline for good."""
        check_arms(f"{round_.argument}candidates", round_.candidates)
        check_arm(f"{round_.argument}baseline", round_.baseline)
        if self.composition.keeps_told_arm:
            sums = books.views(self.ledger)[0].sums
            before = np.flatnonzero(sums[SumsOf.DISPLACED] + sums[SumsOf.FALLBACK])
            if len(before) and before[0] != round_.baseline.argmax():
                remedy = f"must be arm {before[0]} as before: one arm's mean is told"
                raise InvalidInput(f"{round_.argument}baseline", round_.baseline, remedy)

    def _refuse(self, code: int, row: int, margin: float, round_: Round) -> None:
        if code == NOT_FINITE:
            prefix = round_.argument
            if row == BASELINE:
                remedy = f"must be finite and at most {LARGEST:g} in magnitude"
                raise InvalidInput(f"{prefix}baseline", round_.baseline, remedy)
            remedy = "must hold finite numbers only"
            raise InvalidInput(f"{prefix}candidates[{row}]", round_.candidates[row], remedy)
        assert code == NO_SAFE_ACTION
        if self.composition.latches and self.alarm:
            raise NoSafeAction(
                f"round {self.rounds}: the model is refuted ({self.alarm}) and the baseline is "
                "not known to be nonnegative; review the model before going on"
            )
        raise NoSafeAction(
            f"round {self.rounds}: no candidate and not even the baseline is certified (baseline "
            f"margin {margin:.4g} < 0); allow a reserve, add history, or declare "
            "baseline_nonnegative=True if that is known"
        )

    def charge(self, bank: float, played: Played) -> None:
        ledger_kernels.recharge(self.ledger, self._flat, bank, *played[:3], _number(played.baseline_mean))

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        self.check_row("features", executed.features)
        mean = _number(executed.baseline_mean)
        if self._has_learner and decided.instead and not decided.is_baseline:
            ledger_kernels.withdraw(self.ledger, self._flat, decided.features, mean)
        ledger_kernels.amend(
            self.ledger,
            self._flat,
            self.earned,
            decided.features,
            decided.is_baseline,
            executed.features,
            executed.is_baseline,
            executed.baseline,
            mean,
            round_number,
        )
        if bank is not None:
            self.ledger[books.BANK] = bank
        elif self.values_corrections:
            ledger_kernels.recertify(self.ledger, self._flat, executed.baseline)

    def learn(self, features: Array, rewards: Array) -> None:
        self.evidence.learn(features, rewards)
        self._start_learner()

    def _start_learner(self) -> None:
        """What is known now is known before the learner's first round."""
        if self._has_learner:
            self.earned[regret.LOG_DET] = self._count_of[ellipsoids.LOG_DET]

    def absorb(self, features: Array, reward: float) -> None:
        self._absorb(self._flat, features, reward)

    def absorb_outcome(self, played: Played, reward: float) -> None:
        if not (self._learns_plays_only and played.is_baseline):
            self._absorb(self._flat, played.features, reward)
        if self._has_learner:
            self.earned[regret.ABSORBED] += 1.0
        if self._earns and not played.is_baseline:
            earned.earn(self.earned, played.features, reward)

    def absorb_slate(self, played: Played, outcome: Outcome) -> None:
        assert played.items is not None
        if not (self._learns_plays_only and played.is_baseline):
            super().absorb_slate(played, outcome)
        if self._earns and not played.is_baseline:  # as many outcomes as there are items
            earned.earn(self.earned, played.features, total(outcome))
            self.earned[earned.PLAYS] += len(played.items) - 1.0

    def absorb_uncharged(self, played: Played, outcome: Outcome) -> None:
        """As any other: what plays have earned only replaces bounds of the same sums of features.

        A learner takes it as history, before its first round; after that, its regret bound leaves no room
        for outcomes of other rounds than its own, and they are not learned.
        """
        if self._has_learner:
            if not self.rounds:
                super().absorb_uncharged(played, outcome)
                self._start_learner()
            return
        if isinstance(outcome, tuple) or played.items is not None:
            self.absorb_slate(played, outcome)
        else:
            self.absorb_outcome(played, outcome)

    # -- state ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Copies get a working space of their own: views of this one would not be views of theirs.

        Kernels are left out, too: one that comes with a pickle is compiled anew in every process.
        """
        nothing = np.empty(0)
        parts = dict.fromkeys(("_space", "_before", "_region", "_totals"), nothing)
        state = self.__dict__ | parts | {"_room": -1}
        return {name: part for name, part in state.items() if name not in CONNECTED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rule = completed(self._rule)  # an earlier version's has fewer numbers
        self._connect()

    def mark(self) -> Array:
        return self.ledger.copy()

    def undo(self, mark: Array) -> None:
        self.ledger[:] = mark

    def snapshot(self) -> Arrays:
        own = {"earned": self.earned} if len(self.earned) else {}
        return {"evidence": self._flat, "ledger": self.ledger, **own}

    def restore(self, arrays: Arrays) -> None:
        evidence = earlier_layout.in_current_layout(arrays["evidence"], self._flat, self.evidence.model)
        _copy_alike(self._flat, evidence, ellipsoids.HEADING)
        _copy_alike(self.ledger, arrays["ledger"], books.HEADING)
        if len(self.earned):
            heading = regret.HEADING if self._has_learner else earned.HEADING
            _copy_alike(self.earned, arrays["earned"], heading)
        ledger, account = books.views(self.ledger)
        room, kept = len(ledger.kept_bank), ledger.tally[Tally.KEPT]
        if not (
            min(room, 1) <= kept <= room
            and ledger.tally[Tally.STRIDE] >= 1.0
            and (np.isfinite(ledger.bank[0]) or account.kind == LedgerKind.NONE)
            and bool(np.all(np.isfinite(ledger.prefix)))
        ):
            raise ValueError("its parts contradict each other")

    @property
    def bank(self) -> float:
        return self.ledger.item(books.BANK)

    @property
    def rounds(self) -> int:
        return int(books.views(self.ledger)[0].tally[Tally.ROUNDS])

    @property
    def prefix(self) -> Array:
        """Z = sum of x(executed) - (1 - alpha) x(baseline), shape (d,); a copy."""
        return books.views(self.ledger)[0].prefix.copy()

    @property
    def alarm(self) -> str | None:
        if self._has_terms and self.ledger.item(self._told_alarm_at):
            return self.evidence.alarm or WRONG_MEAN
        return self.evidence.alarm

    @property
    def counts_on(self) -> float:
        """alpha r_l for each round that may be left of a phase; see ``ledger.told_ledger``."""
        left = self.composition.phase - 1
        return self.terms.alpha * left * max(self.terms.floor, 0.0) * (1.0 + 8.0 * UNIT)

    @property
    def observations(self) -> int:
        return int(self._count_of[ellipsoids.COUNT])

    @property
    def radius(self) -> float:
        return self.evidence.radius

    @property
    def estimate(self) -> Array:
        return self.evidence.estimate

    def covers(self, theta: Array) -> bool:
        inside = self.evidence.contains(theta)
        if not self._earns:
            return inside
        return inside and earned.earned_holds(self.earned, theta, self.terms.model.misspecification)

    def fingerprint(self) -> str:
        """Of the confidence set: centre, radius and what they were computed from."""
        return hashlib.sha256(b"".join([array.tobytes() for array in self._known])).hexdigest()[:32]

    def explanation(self, round_: Round) -> dict[str, Array]:
        """The centre, and the upper bounds of contrasts where they do not follow from it.

        In a single ellipsoid the centre's contrast is the middle between the bounds.
        """
        arrays: dict[str, Array] = {ESTIMATE: self.evidence.estimate}
        if self.ellipsoids > 1 or self._knows_arms:
            candidates, baseline = round_.candidates, round_.baseline
            out = np.empty((2, len(candidates)))
            negated = np.ascontiguousarray(-candidates.T)
            both(self._flat, negated, -baseline, self.terms.alpha, out)  # U(v) = -L(-v)
            arrays[UPPER] = -out[0]
        return arrays

    def explanation_of(self, round_: Round, some: list[int], details: Array) -> dict[str, Array]:
        """``explanation`` with bounds of ``some`` candidates only, NaN for the others; their separate
        certificates are written into ``details`` (5, K) if they were left out. Decisions do not change
        what it says."""
        candidates, out = round_.candidates[some], np.empty((2, len(some)))
        both(self._flat, np.ascontiguousarray(candidates.T), round_.baseline, self.terms.alpha, out)
        known = details[CandidateField.SEPARATE, some]
        details[CandidateField.SEPARATE, some] = np.where(np.isnan(known), out[1], known)
        above = np.full(len(round_.candidates), np.nan)
        above[some] = self.explanation(round_._replace(candidates=candidates))[UPPER]
        return {ESTIMATE: self.evidence.estimate, UPPER: above}

    def __repr__(self) -> str:
        bank = "no gate" if math.isnan(self.bank) else f"bank={self.bank:.4g}"
        return f"CompiledGate({self._name!r}, rounds={self.rounds}, {bank})"


def _pieces(flat: Array, parts: Iterable[Array]) -> list[Array]:
    """Views of ``flat`` that hold the same bytes as these parts of it; neighbours are one view."""
    begin, ends = flat.__array_interface__["data"][0], [[0, 0]]
    for part in parts:
        start = (part.__array_interface__["data"][0] - begin) // flat.itemsize
        if part.size and start == ends[-1][1]:
            ends[-1][1] += part.size
        elif part.size:
            ends.append([start, start + part.size])
    return [flat[start:end] for start, end in ends if end > start]


def _number(mean: float | None) -> float:
    """As kernels take it."""
    return math.nan if mean is None else mean


def _copy_alike(target: Array, array: Array, heading: int) -> None:
    """Overwrite ``target`` by an array of the same shape, type and first ``heading`` numbers."""
    if array.shape != target.shape or array.dtype != target.dtype:
        raise ValueError(f"expected {target.dtype} {target.shape}, found {array.dtype} {array.shape}")
    if not np.array_equal(array[:heading], target[:heading]):
        raise ValueError("its parts do not belong together")
    target[:] = array
