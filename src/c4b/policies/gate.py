"""The gate: what decides a round, keeps the budget and learns from outcomes.

Contract
--------
*Money.* ``bank`` is a certified lower bound of ``R0 + the sum of contrasts of what was executed`` and
is fixed at the decision. A reward never changes it: ``absorb`` and ``learn`` change what is known,
never what was charged. ``decide``, ``charge`` and ``amend`` are the only methods that change the bank.

*Decisions.* ``decide`` either returns a decision, having charged it, or raises with nothing changed. It
plays a candidate only if the bank that this leaves is certified to be >= 0; a candidate whose features
are the baseline's *is* the baseline, unless the model declares misspecification (equal features may
then have different means). It reads nothing but the round and the gate's own state, so the
same calls in the same order give the same bits: a gate that randomises draws from a stream that depends
on a seed and the round's number only, and says the chance in ``Decision.propensity``.

*Outcomes.* ``absorb`` receives the features that were executed and their reward. The caller keeps the
order: decision order, unless it was told that the order of arrival is independent of the noise.

*State.* ``snapshot`` returns arrays, and ``restore`` continues from them bit for bit. Arrays whose name
begins with ``ledger`` hold money: no reward changes them. The size of a snapshot does not grow with
rounds.

*Failing closed.* What cannot be computed is not certified.

The compiled family (``CompiledGate``) is one gate. A gate in plain Python derives from ``Gate``,
implements the abstract methods and is registered by ``register_gate``; then ``c4b.Policy``, studies,
deployments, the service and the conformance kit know it.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.model import LinearModel
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.round import Round
from c4b.policies.rounds.slates import Outcome, rows

Arrays = dict[str, np.ndarray[Any, Any]]


def copied(arrays: Arrays) -> Arrays:
    """The same arrays, which nobody else can overwrite."""
    return {name: array.copy() for name, array in arrays.items()}


class GateTerms(NamedTuple):
    """What a gate is opened under; fixed for good."""

    model: LinearModel
    alpha: float
    """Fraction of the baseline's reward that may be given up."""
    reserve: float
    """R0, in units of reward."""
    baseline_nonnegative: bool = True
    """Whether the baseline's mean reward is known to be >= 0."""
    baseline_floor: float | None = None
    """r_l, if more is known: the baseline's mean reward is at least this in every round."""
    horizon: int | None = None
    """Rounds that will be decided at most, for policies that need to know."""
    seed: int | None = None
    """Of the draws of a policy that randomises."""

    @property
    def floor(self) -> float:
        """What is known of baseline means: they are at least this."""
        if self.baseline_floor is not None:
            return self.baseline_floor
        return 0.0 if self.baseline_nonnegative else -math.inf


class Played(NamedTuple):
    """What was executed in a round, and against what."""

    features: Array  # (d,)
    baseline: Array  # (d,)
    is_baseline: bool
    baseline_mean: float | None = None  # where the round told it
    items: Array | None = None  # (m, d) of a slate, whose sum is ``features``
    baseline_items: Array | None = None  # (n, d) of the baseline's slate
    instead: bool = False  # of what another action was decided; only for gates with ``knows_instead``


class Gate(ABC):
    """Derive from this to write a gate in plain Python; see the contract at the top of this file."""

    terms: GateTerms
    array_prefix = "gate."
    """Put before the names of a snapshot's arrays in state files and journals."""
    revalues = False
    """Whether the bank is valued anew each round instead of carried: new data can then lower it, in a
    fallback round below 0."""

    takes_slates = False
    """Whether rounds may offer slates; ``Round.items`` and ``Played.items`` then hold their items."""
    needs_item_outcomes = False
    """Whether it learns nothing from one outcome for a whole slate, so that it must not be given one."""

    knows_instead = False
    """Whether ``amend`` must know that what is on record was itself executed instead of a decision."""

    learns_alike = False
    """Whether ``absorb_outcome`` is ``absorb`` of what was executed, whatever that was."""

    # -- what a gate must do -------------------------------------------------------------------

    @abstractmethod
    def decide(self, round_: Round, decision_id: str) -> Decision:
        """Choose among ``round_.candidates`` (K, d) against ``round_.baseline`` (d,), and charge it.

        Raises ``NoSafeAction``, having changed nothing, if not even the baseline is certified.
        """

    @abstractmethod
    def charge(self, bank: float, played: Played) -> None:
        """Take over a recorded decision as it was charged then, without deciding again."""

    @abstractmethod
    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        """``executed`` was executed instead of ``decided`` in a round (0 is the first): charge that.

        The bank may become negative, as may the true credit D, which changes by ``(x(executed) -
        x(decided)) @ theta``, at least ``-norm_bound * ||x(executed) - x(decided)||``. A ``bank`` that
        was recorded when this happened is taken over.
        """

    @abstractmethod
    def absorb(self, features: Array, reward: float) -> None:
        """Learn the reward of executed ``features`` (d,)."""

    def absorb_outcome(self, played: Played, reward: float) -> None:
        """``absorb`` for a gate that learns differently from candidates and from the baseline."""
        self.absorb(played.features, reward)

    def absorb_slate(self, played: Played, outcome: Outcome) -> None:
        """The outcome of a slate: one reward for each of ``played.items``, or one for all of them."""
        assert played.items is not None
        for x, y in rows(played.items, outcome):
            self.absorb(x, y)

    def absorb_uncharged(self, played: Played, outcome: Outcome) -> None:
        """The outcome of a round in shadow, which the ledger does not know: evidence, as history is."""
        if isinstance(outcome, tuple) or played.items is not None:
            self.absorb_slate(played, outcome)
        else:
            self.learn(played.features[None, :], np.array([outcome]))

    def check_row(self, argument: str, row: Array) -> None:
        """Raise ``InvalidInput`` if the gate cannot take these features (d,)."""
        if not np.all(np.isfinite(row)):
            raise InvalidInput(argument, row, "must hold finite numbers only")

    @abstractmethod
    def snapshot(self) -> Arrays:
        """Everything that ``restore`` needs to continue bit for bit; see *State* for the names."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Continue from a snapshot; raises ``ValueError`` if it is not one of this gate's."""

    @property
    @abstractmethod
    def bank(self) -> float:
        """Certified lower bound of R0 + cumulative contrast so far; NaN if it certifies nothing."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Decisions charged so far."""

    # -- what it may do ------------------------------------------------------------------------

    def learn(self, features: Array, rewards: Array) -> None:
        """Historical rows (n, d) with rewards (n,): evidence, never budget."""
        for x, y in zip(features, rewards.tolist(), strict=True):
            self.absorb(x, y)

    def mark(self) -> Any:
        """What ``undo`` needs to take back the decisions that follow."""
        return copied(self.snapshot())

    def undo(self, mark: Any) -> None:
        """Take back every decision since ``mark``; outcomes were not absorbed in between."""
        self.restore(mark)

    @property
    def alarm(self) -> str | None:
        """What speaks against the model, or None."""
        return None

    @property
    def counts_on(self) -> float:
        """How much of the bank, at most, only later rounds will earn: 0 unless the ends of phases are
        promised."""
        return 0.0

    @property
    def observations(self) -> int:
        """Rewards absorbed, history included."""
        return 0

    @property
    def radius(self) -> float:
        """Size of the confidence set, for people; NaN if there is none."""
        return np.nan

    @property
    def estimate(self) -> Array | None:
        """Estimated theta (d,), or None if the gate estimates none."""
        return None

    def covers(self, theta: Array) -> bool | None:
        """Whether the gate's guarantee holds for ``theta`` at this moment; None if it cannot say."""
        return None

    def explanation(self, round_: Round) -> dict[str, Array]:
        """Arrays that explain a decision about to be made, recorded by deployments; decides nothing."""
        return {}

    def fingerprint(self) -> str:
        """Names what is known from outcomes: equal knowledge, equal text."""
        digest = hashlib.sha256()
        for name, array in sorted(self.snapshot().items()):
            if not name.startswith("ledger"):
                digest.update(name.encode() + b"\0" + array.tobytes())
        return digest.hexdigest()[:32]
