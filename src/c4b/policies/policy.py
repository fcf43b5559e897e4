"""The online policy: validates, decides with the compiled round, keeps pending outcomes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from c4b import _validate
from c4b._validate import LARGEST, Array
from c4b.errors import (
    ContradictoryOutcome,
    HistoryClosed,
    InvalidInput,
    NoSafeAction,
    OutcomeClosed,
    UnknownDecision,
)
from c4b.evidence import ellipsoids as statistics
from c4b.evidence.evidence import Evidence
from c4b.evidence.model import LinearModel
from c4b.ledger import ledger_kernels as ledgers
from c4b.policies import composition as compositions
from c4b.policies import state_file
from c4b.policies.compiled_round import BASELINE, NO_SAFE_ACTION, NOT_FINITE, decide
from c4b.policies.composition import Composition
from c4b.policies.decision import Decision
from c4b.policies.pending import ABSORB, Outcomes, Pending


class Policy:
    """A gate between candidates and their execution.

    With probability at least ``1 - model.delta``, at every round at once, the cumulative *mean*
    reward of what is executed stays above ``(1 - alpha)`` times the baseline's, less ``reserve``
    (Theorem 1). That needs the assumptions of :class:`LinearModel`, every executed action reported,
    and, unless ``baseline_nonnegative=False``, baseline means that are never negative. ``linucb`` has
    no gate and promises nothing. One policy object belongs to one thread.

    Parameters
    ----------
    policy: a name from ``c4b.policies.names()`` or a ``Composition``.
    model: the assumptions about rewards.
    alpha: fraction of the baseline's reward that may be given up, in (0, 1).
    reserve: R0 >= 0, an additive deficit (in reward units) allowed on top.
    baseline_nonnegative: the baseline's mean reward is known to be >= 0 in every round. If False the
        baseline must be certified like any action and ``decide`` may raise ``NoSafeAction``.
    absorb: ``"in-order"`` is sound whatever delays outcomes. ``"on-arrival"`` learns sooner but
        *assumes* that the order of arrival is independent of the noise; if, say, good outcomes arrive
        first, its guarantee is void.

    >>> model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    >>> policy = Policy("refresh", model, alpha=0.1, reserve=1.0)
    >>> policy.learn([[1.0, 0.0], [1.0, 0.2]], [0.5, 0.6])
    >>> decision = policy.decide([[1.0, 0.1], [1.0, -0.1]], baseline=[1.0, 0.0])
    >>> decision.is_baseline, decision.bank >= 0
    (False, True)
    >>> policy.observe(decision.id, 0.55)
    """

    def __init__(
        self,
        policy: str | Composition,
        model: LinearModel,
        alpha: float = 0.05,
        reserve: float = 0.0,
        baseline_nonnegative: bool = True,
        absorb: str = "in-order",
    ) -> None:
        self._composition = policy if isinstance(policy, Composition) else compositions.get(policy)
        if not isinstance(model, LinearModel):
            raise InvalidInput("model", model, "must be a c4b.LinearModel")
        self._evidence = Evidence(model.resolved(self.composition.confidence))
        self._alpha = _validate.fraction(
            "alpha", alpha, "must lie strictly between 0 and 1: the share of the baseline to risk"
        )
        self._reserve = _validate.nonnegative(
            "reserve", reserve, "must be a finite number >= 0, in units of reward"
        )
        self._baseline_nonnegative = _validate.boolean("baseline_nonnegative", baseline_nonnegative)
        self._absorbs = _validate.name("absorb", absorb, ABSORB)
        account = self.composition.account(
            self.alpha, self.reserve, self.baseline_nonnegative, model.misspecification
        )
        self._ledger = ledgers.opening(account, model.dim, self.composition.checkpoints)
        self._rule = self.composition.rule
        self._outcomes = Outcomes(in_order=self.absorb == "in-order")
        self._rounds = 0
        self._token = secrets.token_hex(6)

    # -- evidence before deployment ------------------------------------------------------------

    def learn(self, features: object, rewards: object) -> None:
        """Historical rows ``features`` (n, d) with ``rewards`` (n,): evidence, never budget.

        Only before the first decision, and only rows that were not picked by their rewards.
        """
        if self._rounds:
            raise HistoryClosed(
                f"learn: {self._rounds} decisions were made already; give all history before the "
                "first decision, and later rewards to observe()"
            )
        self.evidence.learn(features, rewards)

    # -- decisions -----------------------------------------------------------------------------

    def decide(self, candidates: object, baseline: object) -> Decision:
        """Choose among ``candidates`` (K, d), K >= 0, against ``baseline`` (d,); charge the ledger.

        Sound to call any number of times before outcomes are observed: bank and prefix never use a
        reward. Raises ``NoSafeAction`` (nothing changed) when ``baseline_nonnegative=False`` and
        nothing is certified.
        """
        dim = self.evidence.model.dim
        return self._decide(
            _validate.pool("candidates", candidates, dim),
            _validate.point("baseline", baseline, dim),
        )

    def decide_many(self, rounds: Iterable[tuple[object, object]]) -> list[Decision]:
        """Several rounds at once, each a pair (candidates, baseline); all are decided or none."""
        dim = self.evidence.model.dim
        checked = [
            (
                _validate.pool(f"rounds[{n}].candidates", candidates, dim),
                _validate.point(f"rounds[{n}].baseline", baseline, dim),
            )
            for n, (candidates, baseline) in enumerate(
                _validate.pairs("rounds", rounds, "must be a sequence of pairs (candidates, baseline)")
            )
        ]
        before, first = self._ledger.copy(), self._rounds
        try:
            return [self._decide(*checked[n], f"rounds[{n}].") for n in range(len(checked))]
        except BaseException:
            self._ledger[:] = before
            for round_ in range(first, self._rounds):
                del self._outcomes.open[round_]
            self._rounds = first
            raise

    def _decide(self, candidates: Array, baseline: Array, place: str = "") -> Decision:
        """One round. Whatever interrupts it, even a signal, leaves no charge without a round."""
        before, round_ = self._ledger.copy(), self._rounds
        try:
            return self._decided(candidates, baseline, place, f"{self._token}-{round_}")
        except BaseException:
            self._ledger[:] = before
            self._outcomes.open.pop(round_, None)
            self._rounds = round_
            raise

    def _decided(self, candidates: Array, baseline: Array, place: str, id_: str) -> Decision:
        """One round, for a caller who can restore ledger and rounds if it is interrupted."""
        before = self.bank
        action, bank, ucb, certificate, details, executed = decide(
            self._evidence.flat, self._ledger, *self._rule, candidates, baseline
        )
        if action == NOT_FINITE:
            row = int(bank)
            if row == BASELINE:
                remedy = f"must be finite and at most {LARGEST:g} in magnitude"
                raise InvalidInput(f"{place}baseline", baseline, remedy)
            remedy = "must hold finite numbers only"
            raise InvalidInput(f"{place}candidates[{row}]", candidates[row], remedy)
        if action == NO_SAFE_ACTION:
            if self._composition.latches and self.alarm:
                raise NoSafeAction(
                    f"round {self._rounds}: the model is refuted ({self.alarm}) and the baseline is "
                    "not known to be nonnegative; review the model before going on"
                )
            raise NoSafeAction(
                f"round {self._rounds}: no candidate and not even the baseline is certified (baseline "
                f"margin {bank:.4g} < 0); allow a reserve, add history, or declare "
                "baseline_nonnegative=True if that is known"
            )
        round_ = self._rounds
        self._outcomes.open[round_] = Pending(executed, baseline.copy(), action == BASELINE)
        self._rounds = round_ + 1
        return Decision(
            id_,
            None if action == BASELINE else action,
            bank,
            certificate,
            ucb,
            self._evidence.radius,
            before,
            self._composition.name,
            self.alarm,
            details,
        )

    def executed(self, decision_id: str, features: object = None) -> None:
        """Another action than the decided one was executed: charge the ledger for that one.

        ``features`` (d,) of what was executed, or None for the round's baseline. To be called before
        the outcome is absorbed. The bank may become negative, as may the truth; the gate then plays
        the baseline until the bank has recovered.
        """
        round_ = self._round_of(decision_id)
        entry = self._open(round_, decision_id)
        if entry.known:
            raise OutcomeClosed(
                "decision_id", decision_id, "has its outcome already; report executed() before it"
            )
        really = entry.baseline
        if features is not None:
            really = _validate.vector("features", features, self.evidence.model.dim)
        ledgers.amend(
            self._ledger,
            self.evidence.flat,
            entry.executed,
            entry.is_baseline,
            really,
            features is None,
            entry.baseline,
            round_,
        )
        entry.executed = really.copy()
        entry.is_baseline = features is None

    # -- outcomes ------------------------------------------------------------------------------

    def observe(self, decision_id: str, reward: float) -> None:
        """Report a decision's reward, in any order; repeating the same report is harmless."""
        value = _validate.reward("reward", reward)
        round_ = self._round_of(decision_id)
        if self._is_news(round_, decision_id, value):
            self._outcomes.open[round_].reward = value
            self._absorb(round_)

    def observe_many(self, outcomes: Mapping[str, float] | Iterable[tuple[str, float]]) -> None:
        """Several (id, reward) pairs, or a mapping; all are taken or none."""
        told = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
        pairs = _validate.pairs("outcomes", told, "must be a mapping, or pairs (id, reward)")
        news: dict[int, float] = {}
        for n, (decision_id, reward) in enumerate(pairs):
            value = _validate.reward(f"outcomes[{n}].reward", reward)
            round_ = self._round_of(decision_id)
            if news.get(round_, value) != value:
                raise ContradictoryOutcome(
                    f"outcomes[{n}].reward",
                    value,
                    f"the same batch also reports {news[round_]!r} for {decision_id}",
                )
            if self._is_news(round_, decision_id, value):
                news[round_] = value
        for round_, value in news.items():
            self._outcomes.open[round_].reward = value
            self._absorb(round_)

    def forget(self, decision_id: str) -> None:
        """Declare a decision's outcome lost, so that later outcomes are absorbed.

        This *asserts that the loss is independent of the reward*. If, say, refunds never report back,
        the confidence set and its guarantee are void. An outcome that is merely late needs no call:
        waiting is always safe. The ledger keeps the charge: the action was executed.
        """
        round_ = self._round_of(decision_id)
        entry = self._outcomes.open.get(round_)
        previous = self._outcomes.remembered(round_) if entry is None else None
        if (entry is not None and entry.lost) or (previous is not None and np.isnan(previous)):
            return
        entry = self._open(round_, decision_id)
        if entry.reward is not None:
            raise ContradictoryOutcome("decision_id", decision_id, "has an outcome already")
        entry.lost = True
        self._absorb(round_)

    def _absorb(self, round_: int) -> None:
        for features, reward in self._outcomes.ready(round_):
            self._evidence.absorber(self._evidence.flat, features, reward)

    def _round_of(self, decision_id: str) -> int:
        if isinstance(decision_id, str):
            token, _, number = decision_id.rpartition("-")
            if token == self._token and number.isdecimal() and len(number) < 20:
                round_ = int(number)
                if round_ < self._rounds and str(round_) == number:  # as it was given out
                    return round_
        raise UnknownDecision("decision_id", decision_id, "is no decision of this policy")

    def _open(self, round_: int, decision_id: str) -> Pending:
        entry = self._outcomes.open.get(round_)
        if entry is None:
            raise OutcomeClosed(
                "decision_id", decision_id, "has an outcome that was absorbed or declared lost"
            )
        return entry

    def _is_news(self, round_: int, decision_id: str, reward: float) -> bool:
        """False for a harmless repetition; raises for anything that contradicts the past."""
        entry = self._outcomes.open.get(round_)
        if entry is not None and not entry.known:
            return True
        previous = entry.reward if entry is not None else self._outcomes.remembered(round_)
        if previous is None or np.isnan(previous):
            lost = previous is not None or entry is not None
            raise OutcomeClosed(
                "decision_id",
                decision_id,
                "was declared lost; its reward can no longer be used"
                if lost
                else "was absorbed too long ago to compare; nothing was changed, drop the report",
            )
        if previous != reward:
            raise ContradictoryOutcome(
                "reward", reward, f"decision {decision_id} has reward {previous!r} already"
            )
        return False

    # -- terms, fixed for good: the ledger was opened under them -------------------------------

    @property
    def composition(self) -> Composition:
        return self._composition

    @property
    def evidence(self) -> Evidence:
        """The confidence set."""
        return self._evidence

    @property
    def alpha(self) -> float:
        """Fraction of the baseline's reward that may be given up."""
        return self._alpha

    @property
    def reserve(self) -> float:
        """R0, in units of reward."""
        return self._reserve

    @property
    def baseline_nonnegative(self) -> bool:
        """Whether the baseline's mean reward is known to be >= 0."""
        return self._baseline_nonnegative

    @property
    def absorb(self) -> str:
        """``"in-order"`` or ``"on-arrival"``."""
        return self._absorbs

    # -- state ---------------------------------------------------------------------------------

    @property
    def model(self) -> LinearModel:
        return self.evidence.model

    @property
    def name(self) -> str:
        return self.composition.name

    @property
    def bank(self) -> float:
        """Certified lower bound of R0 + cumulative contrast so far; NaN without a gate."""
        return self._ledger.item(ledgers.BANK)

    @property
    def prefix(self) -> Array:
        """Z = sum of x(executed) - (1 - alpha) x(baseline), shape (d,); a copy."""
        return ledgers.views(self._ledger)[0].prefix.copy()

    @property
    def estimate(self) -> Array:
        """theta_hat, shape (d,); a copy."""
        return self.evidence.estimate

    @property
    def radius(self) -> float:
        """Radius beta of the confidence set."""
        return self.evidence.radius

    @property
    def alarm(self) -> str | None:
        """What speaks against the model, or None. A policy that latches then plays the baseline only."""
        return self.evidence.alarm

    @property
    def rounds(self) -> int:
        """Decisions made."""
        return self._rounds

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of decisions whose outcome has not been reported, oldest first."""
        return tuple(
            f"{self._token}-{round_}"
            for round_, entry in sorted(self._outcomes.open.items())
            if not entry.known
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to one file; ``load`` continues bit for bit."""
        state_file.write(path, self._header(), self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy that ``save`` wrote."""
        header, arrays = state_file.read(path)
        with state_file.corrupt_if_fails(path):
            policy = cls(
                Composition(**header["composition"]),
                LinearModel(**header["model"]),
                **header["settings"],
            )
            policy._restore(header, arrays)
        return policy

    def _header(self) -> dict[str, Any]:
        return {
            "composition": state_file.fields(self.composition),
            "model": state_file.fields(self.model),
            "settings": {
                "alpha": self.alpha,
                "reserve": self.reserve,
                "baseline_nonnegative": self.baseline_nonnegative,
                "absorb": self.absorb,
            },
            "token": self._token,
            "rounds": self._rounds,
            "next": self._outcomes.next,
        }

    def _arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {
            "evidence": self.evidence.flat,
            "ledger": self._ledger,
            **{f"outcomes.{key}": array for key, array in self._outcomes.arrays(self.model.dim).items()},
        }

    def _restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.evidence.flat[:] = state_file.like(
            arrays["evidence"], self.evidence.flat, statistics.HEADING
        )
        self._ledger[:] = state_file.like(arrays["ledger"], self._ledger, ledgers.HEADING)
        self._outcomes.restore(
            {k.removeprefix("outcomes."): a for k, a in arrays.items() if k.startswith("outcomes.")},
            self.model.dim,
        )
        self._token = str(header["token"])
        self._rounds = int(header["rounds"])
        self._outcomes.next = int(header["next"])
        ledger, account = ledgers.views(self._ledger)
        room, kept = len(ledger.kept_bank), ledger.tally[ledgers.KEPT]
        state_file.consistent(
            self._rounds == ledger.tally[ledgers.ROUNDS]
            and 0 <= self._outcomes.next <= self._rounds
            and all(0 <= round_ < self._rounds for round_ in self._outcomes.open)
            and min(room, 1) <= kept <= room
            and ledger.tally[ledgers.STRIDE] >= 1.0
            and (np.isfinite(ledger.bank[0]) or account.kind == ledgers.UNGATED)
            and bool(np.all(np.isfinite(ledger.prefix)))
        )

    def __repr__(self) -> str:
        return (
            f"Policy({self.name!r}, alpha={self.alpha}, reserve={self.reserve}, "
            f"rounds={self.rounds}, bank={self.bank:.4g}, pending={len(self.pending)})"
        )
