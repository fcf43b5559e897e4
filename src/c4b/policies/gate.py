"""The gate decides a round, keeps the budget and learns from outcomes.

Contract
--------
*Money.* ``bank`` is a certified lower bound of ``R0 + the sum of contrasts of what was executed`` and is
fixed at the decision. A reward never changes it: ``absorb`` and ``learn`` change what is known, never
what was charged. ``decide``, ``charge`` and ``amend`` are the only methods that change the bank.

*Decisions.* ``decide`` either charges a decision and returns it, or raises an error with nothing changed.
It plays a candidate only if the bank after it is certified to be >= 0. A candidate with the baseline's
features *is* the baseline, unless the model declares misspecification (equal features may then have
different means). ``decide`` reads only the round and the gate's own state, so the same calls in the same
order give the same bits. A gate that randomises draws from a stream that depends only on a seed and the
round's number, and reports the probability in ``Decision.propensity``.

*Outcomes.* ``absorb`` receives the features that were executed and their reward. The caller is
responsible for the order: the order of decisions, unless the user declared that the order of arrival is
independent of the noise.

*State.* ``snapshot`` returns arrays, and ``restore`` continues from them bit for bit. Arrays whose name
begins with ``ledger`` hold money: no reward changes them. The size of a snapshot does not grow with the
number of rounds.

*Failing closed.* What cannot be computed is not certified.

``CompiledGate`` implements all compiled policies. A gate in plain Python derives from ``Gate``,
implements the abstract methods and is registered with ``register_gate``. It then works in ``c4b.Policy``,
studies, deployments, the service and the conformance kit.
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
    """Copies of the arrays."""
    return {name: array.copy() for name, array in arrays.items()}


class GateTerms(NamedTuple):
    """The terms under which a gate is opened. They never change."""

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
    """The largest number of rounds that will be decided, for policies that need it."""
    seed: int | None = None
    """Seed of the draws of a policy that randomises."""

    @property
    def floor(self) -> float:
        """A known lower bound of the baseline's mean reward in every round."""
        if self.baseline_floor is not None:
            return self.baseline_floor
        return 0.0 if self.baseline_nonnegative else -math.inf


class Played(NamedTuple):
    """What was executed in a round, and the baseline it is compared with."""

    features: Array  # (d,)
    baseline: Array  # (d,)
    is_baseline: bool
    baseline_mean: float | None = None  # where the round told it
    items: Array | None = None  # (m, d) of a slate, whose sum is ``features``
    baseline_items: Array | None = None  # (n, d) of the baseline's slate
    instead: bool = False  # of what another action was decided; only for gates with ``knows_instead``


class Gate(ABC):
    """Base class of gates. Derive from it to write a gate in plain Python.

    The module docstring of ``c4b.policies.gate`` states the contract.
    """

    terms: GateTerms
    array_prefix = "gate."
    """Prefix of the names of a snapshot's arrays in state files and journals."""
    revalues = False
    """Whether the bank is computed anew in each round instead of carried over. New data can then lower
    it, below 0 in a round that plays the baseline."""

    takes_slates = False
    """Whether rounds may offer slates; ``Round.items`` and ``Played.items`` then hold their items."""
    needs_item_outcomes = False
    """Whether it cannot learn from one outcome for a whole slate and must not be given one."""

    knows_instead = False
    """Whether ``amend`` must know that what is on record was itself executed instead of a decision."""

    learns_alike = False
    """Whether ``absorb_outcome`` calls ``absorb`` with the executed features for candidates and baseline
    alike."""

    # -- what a gate must do -------------------------------------------------------------------

    @abstractmethod
    def decide(self, round_: Round, decision_id: str) -> Decision:
        """Choose among ``round_.candidates`` (K, d) against ``round_.baseline`` (d,), and charge it.

        Raises ``NoSafeAction``, having changed nothing, if not even the baseline is certified.
        """

    @abstractmethod
    def charge(self, bank: float, played: Played) -> None:
        """Charge a recorded decision as it was charged then, without deciding again."""

    @abstractmethod
    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        """Charge for ``executed`` instead of ``decided`` in a round (0 is the first).

        The bank may become negative. So may the true credit D, which changes by ``(x(executed) -
        x(decided)) @ theta``, at least ``-norm_bound * ||x(executed) - x(decided)||``. If ``bank`` is
        given, it is the bank that was recorded then, and the gate uses it.
        """

    @abstractmethod
    def absorb(self, features: Array, reward: float) -> None:
        """Learn from the reward of executed ``features`` (d,)."""

    def absorb_outcome(self, played: Played, reward: float) -> None:
        """``absorb`` for a gate that learns differently from candidates and from the baseline."""
        self.absorb(played.features, reward)

    def absorb_slate(self, played: Played, outcome: Outcome) -> None:
        """Learn from a slate's outcome: one reward for each of ``played.items``, or one for all."""
        assert played.items is not None
        for x, y in rows(played.items, outcome):
            self.absorb(x, y)

    def absorb_uncharged(self, played: Played, outcome: Outcome) -> None:
        """Learn from the outcome of a round in shadow mode.

        The ledger was not charged for it; it is evidence only, like history.
        """
        if isinstance(outcome, tuple) or played.items is not None:
            self.absorb_slate(played, outcome)
        else:
            self.learn(played.features[None, :], np.array([outcome]))

    def check_row(self, argument: str, row: Array) -> None:
        """Raise ``InvalidInput`` if the gate cannot use these features (d,)."""
        if not np.all(np.isfinite(row)):
            raise InvalidInput(argument, row, "must hold finite numbers only")

    @abstractmethod
    def snapshot(self) -> Arrays:
        """Return all arrays that ``restore`` needs to continue bit for bit.

        *State* in the contract says how to name them.
        """

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Continue from a snapshot.

        Raises ``ValueError`` if the arrays are not a snapshot of this gate.
        """

    @property
    @abstractmethod
    def bank(self) -> float:
        """Certified lower bound of R0 + cumulative contrast so far; NaN if the gate certifies nothing."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Number of decisions charged so far."""

    # -- what it may do ------------------------------------------------------------------------

    def learn(self, features: Array, rewards: Array) -> None:
        """Learn from historical rows (n, d) with rewards (n,).

        They are evidence and never change the bank.
        """
        for x, y in zip(features, rewards.tolist(), strict=True):
            self.absorb(x, y)

    def mark(self) -> Any:
        """Return what ``undo`` needs to take back the decisions that follow."""
        return copied(self.snapshot())

    def undo(self, mark: Any) -> None:
        """Take back every decision since ``mark``. No outcome was absorbed in between."""
        self.restore(mark)

    @property
    def alarm(self) -> str | None:
        """Why the data contradict the model, or None."""
        return None

    @property
    def counts_on(self) -> float:
        """How much of the bank, at most, only later rounds will earn: 0 unless the ends of phases are
        promised."""
        return 0.0

    @property
    def observations(self) -> int:
        """Number of rewards absorbed, history included."""
        return 0

    @property
    def radius(self) -> float:
        """Size of the confidence set, for display; NaN if the gate has none."""
        return np.nan

    @property
    def estimate(self) -> Array | None:
        """Estimate of theta (d,), or None if the gate has none."""
        return None

    def covers(self, theta: Array) -> bool | None:
        """Whether the gate's guarantee holds for ``theta`` at this moment; None if this is unknown."""
        return None

    def explanation(self, round_: Round) -> dict[str, Array]:
        """Arrays that explain the coming decision.

        Deployments record them; they do not affect the decision.
        """
        return {}

    def fingerprint(self) -> str:
        """A digest of everything learned from outcomes: equal knowledge gives an equal digest."""
        digest = hashlib.sha256()
        for name, array in sorted(self.snapshot().items()):
            if not name.startswith("ledger"):
                digest.update(name.encode() + b"\0" + array.tobytes())
        return digest.hexdigest()[:32]
