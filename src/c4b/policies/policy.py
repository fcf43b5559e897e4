"""The online policy: validates input, decides with the gate and keeps pending outcomes."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from c4b import _array_likes, _validate
from c4b._validate import LARGEST, Array
from c4b.errors import (
    ContradictoryOutcome,
    HistoryClosed,
    OutcomeClosed,
    UnknownDecision,
)
from c4b.evidence.evidence import Evidence
from c4b.evidence.model import LinearModel
from c4b.policies import state_file
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.registry import DEFAULT_POLICY, PolicySpec
from c4b.policies.checked_terms import checked_terms
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Arrays, Gate
from c4b.policies.gate_run import GateRun, Mark
from c4b.policies.pending import ABSORB, PendingOutcome
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.round import Round, as_rounds, checked_mean, checked_round
from c4b.policies.rounds.slates import (
    Outcome,
    Reward,
    checked_execution,
    checked_outcome,
    has_items,
    plain,
    total,
)
from c4b.policies.turns import TakesTurns, in_turn

_FLOAT64 = np.dtype(np.float64)


class Policy(TakesTurns):
    """Decides in each round whether to execute a candidate or the baseline, within a certified budget.

    With probability at least ``1 - model.delta``, at every round at once, the cumulative *mean* reward of
    what is executed stays above ``(1 - alpha)`` times the baseline's, less ``reserve`` (Theorem 1). This
    needs the assumptions of :class:`LinearModel`; a model and a policy that were chosen before data are
    seen; every executed action reported; losses and corrections that no outcome caused (see ``forget``);
    and, unless ``baseline_nonnegative=False``, baseline means that are never negative. ``linucb`` has no
    gate and promises nothing. Several threads may share a policy: their calls run one at a time.

    Parameters
    ----------
    policy: a name from ``c4b.policies.names()``, a ``Composition`` or a ``GateFactory``; without it, the
        recommended one.
    model: the assumptions about rewards.
    alpha: fraction of the baseline's reward that may be given up, in (0, 1).
    reserve: R0 >= 0, an additional deficit that is allowed, in units of reward.
    baseline_nonnegative: whether the baseline's mean reward is known to be >= 0 in every round. If False,
        the baseline must be certified like any action, and ``decide`` may raise ``NoSafeAction``.
    baseline_floor: r_l, if more is known: the baseline's mean reward is at least this in every round. A
        negative floor needs ``baseline_nonnegative=False``.
    horizon, seed: for policies that need them, see ``needs`` of ``c4b.policies.get(name)``: the largest
        number of rounds that will be decided; the seed of a policy that randomises.
    absorb: ``"in-order"`` is sound for any delay of outcomes. ``"on-arrival"`` learns sooner but
        *assumes* that the order of arrival is independent of the noise. If, for example, good outcomes
        arrive first, its guarantee is void.

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
        policy: str | PolicySpec = DEFAULT_POLICY,
        model: LinearModel | None = None,
        alpha: float = 0.05,
        reserve: float = 0.0,
        baseline_nonnegative: bool = True,
        absorb: str = "in-order",
        baseline_floor: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self._spec = policy if isinstance(policy, PolicySpec) else registry.get(policy)
        self._needs = registry.needs(self._spec)
        terms = checked_terms(
            self._needs, model, alpha, reserve, baseline_nonnegative, baseline_floor, horizon, seed
        )
        self._absorb = _validate.name("absorb", absorb, ABSORB)
        self._gate = registry.build(self._spec, terms)
        if isinstance(self._gate, CompiledGate):
            self._gate.leaves_out_margins = self._gate.ellipsoids > 1
        self._run = GateRun(self._gate, self._absorb == "in-order", self._spec.gated)
        self._dim, self._shape = terms.model.dim, (terms.model.dim,)
        self._ready_gate: CompiledGate | None = None
        """The gate, if it needs two arrays for a decision and nothing else."""
        if isinstance(self._gate, CompiledGate) and not (self._gate.checks_rows or self._needs):
            self._ready_gate = self._gate
        self._takes_any = terms.model.rewards is None and not self._run.may_raise
        """Whether every finite reward is absorbed as it is."""
        self._token = secrets.token_hex(6)
        self._latest = (f"{self._token}-", 0)
        """Id and number of the latest decision: most outcomes are of that one."""

    # -- evidence before the first decision -----------------------------------------------------

    @in_turn
    def learn(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from historical rows ``features`` (n, d) with ``rewards`` (n,).

        History is evidence and never changes the budget. Call this before the first decision only, with
        rows that were not selected by their rewards.
        """
        if self._run.rounds:
            raise HistoryClosed(
                f"learn: {self._run.rounds} decisions were made already; give all history before the "
                "first decision, and later rewards to observe()"
            )
        _array_likes.check_rows(features, rewards)
        x = _validate.table("features", _array_likes.dense(features), self._dim)
        y = _validate.series("rewards", rewards, len(x))
        y = self.model.check_rewards("rewards", y)
        with self._run.whole():
            self._gate.learn(x, y)

    # -- decisions -----------------------------------------------------------------------------

    def decide(
        self,
        candidates: ArrayLike | Round,
        baseline: ArrayLike | None = None,
        baseline_mean: float | None = None,
    ) -> Decision:
        """Choose among ``candidates`` (K, d), K >= 0, against ``baseline`` (d,), and charge the ledger.

        Slates of m items have the shape (K, m, d), their baseline (n, d); see
        :mod:`c4b.policies.rounds.slates`. Instead of arrays, a :class:`Round` may be given, which has
        further fields.

        ``baseline_mean`` is for policies that need it: the *known* mean reward of the baseline in this
        round. An average of past rewards is not a known mean; using one voids the guarantee.

        Any number of decisions may be made before their outcomes are observed, because bank and prefix
        never use a reward. Raises ``NoSafeAction`` (nothing changed) when ``baseline_nonnegative=False``
        and nothing is certified.
        """
        if (  # arrays that checking would not change: in most calls they are
            type(candidates) is np.ndarray
            and type(baseline) is np.ndarray
            and candidates.dtype is baseline.dtype is _FLOAT64
            and candidates.ndim == 2
            and candidates.shape[1] == self._dim
            and baseline.shape == self._shape
            and candidates.flags.carray
            and baseline.flags.carray
        ):
            gate = self._ready_gate
            if baseline_mean is None and gate is not None:
                return self._decide_ready(gate, candidates, baseline)
            if baseline_mean is None and not self._needs:
                return self._decide(Round(candidates, baseline))
            if isinstance(self._gate, CompiledGate):
                mean = checked_mean("", baseline_mean, self._needs)
                return self._decide(Round(candidates, baseline, mean))
        if isinstance(candidates, Round):
            return self._decide(checked_round(candidates, self._dim, self._needs))
        if has_items(candidates, baseline):
            return self._decide(
                checked_round(Round(candidates, baseline, baseline_mean), self._dim, self._needs)
            )
        _array_likes.check_names("", candidates, baseline)
        pool = _validate.pool("candidates", _array_likes.dense(candidates), self._dim)
        point = _validate.point("baseline", _array_likes.dense_row(baseline), self._dim)
        return self._decide(Round(pool, point, checked_mean("", baseline_mean, self._needs)))

    @in_turn
    def decide_many(self, rounds: Iterable[Round | tuple[ArrayLike, ArrayLike]]) -> list[Decision]:
        """Decide several rounds, pairs (candidates, baseline) or ``Round``: all or none."""
        checked = [checked_round(given, self._dim, self._needs) for given in as_rounds(rounds)]
        mark = self._run.mark()
        try:
            return [self._decide(round_) for round_ in checked]
        except BaseException:
            self._run.undo(mark)
            raise

    @in_turn
    def preview(
        self,
        candidates: ArrayLike | Round,
        baseline: ArrayLike | None = None,
        baseline_mean: float | None = None,
    ) -> Decision:
        """Return what ``decide`` would return now. Nothing is charged, and no outcome is expected."""
        mark = self._run.mark()
        try:
            return self.decide(candidates, baseline, baseline_mean)
        finally:
            self._run.undo(mark)

    def _decide_ready(self, gate: CompiledGate, candidates: Array, baseline: Array) -> Decision:
        """``_decide`` for a gate that needs nothing else, in less time: the gate can take its last
        decision back without a copy of the state before."""
        with self._turn:
            run = self._run
            number = run.rounds
            id_ = f"{self._token}-{number}"
            self._latest = (id_, number)
            try:
                decision = gate.decide_ready(candidates, baseline, math.nan, id_)
                run.await_outcome(candidates, baseline, decision[1])
            except BaseException:
                gate.take_back(number)
                run.undo(Mark(gate.mark(), number))
                raise
            return decision

    @in_turn
    def _decide(self, round_: Round) -> Decision:
        """One round. Whatever interrupts it, even a signal, leaves no charge without a round."""
        run = self._run
        before, number = self._gate.mark(), run.rounds
        id_ = f"{self._token}-{number}"
        self._latest = (id_, number)
        try:
            return run.decide(round_, id_)
        except BaseException:
            run.undo(Mark(before, number))
            raise

    @in_turn
    def executed(
        self, decision_id: str | Decision, features: ArrayLike | None = None, *, independent: bool = False
    ) -> None:
        """Report that another action than the decided one was executed.

        The ledger is charged for that action. ``features`` has the shape (d,), or (m, d) for a slate;
        None means the round's baseline. Call this before the outcome is reported. The bank, and the true
        budget, may become negative if later decisions relied on the decided action, or if something worse
        was executed. The gate then plays the baseline until the bank has recovered. Repeating what is on
        record changes nothing.

        What was executed must not depend on a reward of this decision or of a later one. After an outcome
        of a later decision was reported, the call raises ``LaterOutcomeKnown`` unless the caller asserts
        this with ``independent=True``.
        """
        asserted = _validate.boolean("independent", independent)
        id_ = _array_likes.decision_id(decision_id)
        number = self._round_of(id_)
        entry = self._open(number, id_)
        if entry.known:
            raise OutcomeClosed(
                "decision_id", id_, "has its outcome already; report executed() before it"
            )
        executed, items = None, None
        if features is not None:
            executed, items = checked_execution("features", features, self._dim)
            self._run.check_kind(number, features, items)
        executed = self._run.named(number, executed)
        if self._run.is_recorded(number, executed, items):
            return
        self._run.check_order(number, id_, asserted)
        with self._run.whole():
            self._run.amend(number, executed, items=items)

    # -- outcomes ------------------------------------------------------------------------------

    def observe(self, decision_id: str | Decision, reward: Reward) -> None:
        """Report a decision's reward, in any order. Repeating the same report is harmless.

        For a slate, give the rewards of its items in their order, or one number, which is their sum. The
        decision itself may be given instead of its id, and True or False as the reward.
        """
        with self._turn:
            run = self._run
            id_, number = self._latest
            if (  # in most calls
                decision_id is id_
                and type(reward) is float
                and -LARGEST <= reward <= LARGEST
                and self._takes_any
                and run.report_next(number, reward)
            ):
                return
            value = checked_outcome(self._gate.terms.model, "reward", reward)
            if decision_id is not id_ or number >= run.rounds:
                id_ = _array_likes.decision_id(decision_id)
                number = self._round_of(id_)
            if self._is_news(number, id_, value):
                run.check_outcome(number, "reward", value)
                with run.whole([number]):
                    run.report(number, value)

    @in_turn
    def observe_many(
        self, outcomes: Mapping[str, Reward] | Iterable[tuple[str | Decision, Reward]]
    ) -> None:
        """Report several (id, reward) pairs, or a mapping: all or none."""
        listed = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
        pairs = _validate.pairs("outcomes", listed, "must be a mapping, or pairs (id, reward)")
        news: dict[int, Outcome] = {}
        for n, (decision_id, reward) in enumerate(pairs):
            argument = f"outcomes[{n}].reward"
            value = checked_outcome(self.model, argument, reward)
            id_ = _array_likes.decision_id(decision_id)
            number = self._round_of(id_)
            if plain(news.get(number, value)) != plain(value):
                raise ContradictoryOutcome(
                    f"outcomes[{n}].reward",
                    value,
                    f"the same batch also reports {news[number]!r} for {id_}",
                )
            if self._is_news(number, id_, value):
                self._run.check_outcome(number, argument, value)
                news[number] = value
        with self._run.whole(news):
            for number, value in news.items():
                self._run.report(number, value)

    @in_turn
    def forget(self, decision_id: str | Decision, *, independent: bool = False) -> None:
        """Declare a decision's outcome lost, so that later outcomes are absorbed.

        This *asserts that the loss depends on no reward of this decision or of a later one*. The
        confidence set and its guarantee are void if, for example, the outcomes of refunds are never
        reported, or an outcome is declared lost because the next one was poor. After an outcome of a
        later decision was reported, the call raises ``LaterOutcomeKnown`` unless the caller makes the
        assertion explicit with ``independent=True``. An outcome that is only late needs no call: waiting
        is always safe. The ledger keeps the charge, because the action was executed.
        """
        asserted = _validate.boolean("independent", independent)
        id_ = _array_likes.decision_id(decision_id)
        number = self._round_of(id_)
        entry = self._run.outcomes.open.get(number)
        previous = self._run.outcomes.remembered(number) if entry is None else None
        if (entry is not None and entry.lost) or (previous is not None and np.isnan(previous)):
            return
        entry = self._open(number, id_)
        if entry.reward is not None:
            raise ContradictoryOutcome("decision_id", id_, "has an outcome already")
        self._run.check_order(number, id_, asserted)
        with self._run.whole([number]):
            self._run.report(number, None)

    def _round_of(self, decision_id: str) -> int:
        if isinstance(decision_id, str):
            token, _, digits = decision_id.rpartition("-")
            if token == self._token and digits.isdecimal() and len(digits) < 20:
                number = int(digits)
                if number < self._run.rounds and str(number) == digits:  # as it was given out
                    return number
        raise UnknownDecision("decision_id", decision_id, "is no decision of this policy")

    def _open(self, number: int, decision_id: str) -> PendingOutcome:
        entry = self._run.outcomes.open.get(number)
        if entry is None:
            raise OutcomeClosed(
                "decision_id", decision_id, "has an outcome that was absorbed or declared lost"
            )
        return entry

    def _is_news(self, number: int, decision_id: str, reward: Outcome) -> bool:
        """False for a harmless repetition; raises for anything that contradicts the past."""
        entry = self._run.outcomes.open.get(number)
        if entry is not None and entry.reward is None and not entry.lost:
            return True
        previous = self._run.outcomes.remembered(number) if entry is None else entry.reward
        reward = total(reward) if entry is None else plain(reward)  # sums alone are remembered for long
        if previous is None or (not isinstance(previous, tuple) and np.isnan(previous)):
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
    def spec(self) -> PolicySpec:
        """What the gate is made from: a ``Composition`` or a ``GateFactory``."""
        return self._spec

    @property
    def composition(self) -> Composition:
        """The parts of a compiled policy. A gate in plain Python has none, and this raises an error."""
        if not isinstance(self._spec, Composition):
            raise _no_such("composition", self._spec)
        return self._spec

    @property
    def gate(self) -> Gate:
        """The gate that decides; see :mod:`c4b.policies.gate`."""
        return self._gate

    @property
    def evidence(self) -> Evidence:
        """The confidence set of a compiled policy. For a gate in plain Python this raises an error."""
        if not isinstance(self._gate, CompiledGate):
            raise _no_such("evidence", self._spec)
        return self._gate.evidence

    @property
    def alpha(self) -> float:
        """Fraction of the baseline's reward that may be given up."""
        return self._gate.terms.alpha

    @property
    def reserve(self) -> float:
        """R0, in units of reward."""
        return self._gate.terms.reserve

    @property
    def baseline_nonnegative(self) -> bool:
        """Whether the baseline's mean reward is known to be >= 0."""
        return self._gate.terms.baseline_nonnegative

    @property
    def absorb(self) -> str:
        """When outcomes are absorbed: ``"in-order"`` or ``"on-arrival"``."""
        return self._absorb

    # -- state ---------------------------------------------------------------------------------

    @property
    def model(self) -> LinearModel:
        return self._gate.terms.model

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def bank(self) -> float:
        """Certified lower bound of R0 + cumulative contrast so far; NaN without a gate."""
        return self._gate.bank

    @property
    @in_turn
    def prefix(self) -> Array:
        """Z = sum of x(executed) - (1 - alpha) x(baseline), shape (d,), as a copy."""
        if not isinstance(self._gate, CompiledGate):
            raise _no_such("prefix", self._spec)
        return self._gate.prefix

    @property
    @in_turn
    def estimate(self) -> Array | None:
        """The estimate theta_hat, shape (d,), as a copy; None if the gate has none."""
        return self._gate.estimate

    @property
    def radius(self) -> float:
        """Radius beta of the confidence set."""
        return self._gate.radius

    @property
    def alarm(self) -> str | None:
        """Why the data contradict the model, or None.

        After an alarm, a policy that latches plays only the baseline.
        """
        return self._gate.alarm

    @property
    def rounds(self) -> int:
        """Number of decisions made."""
        return self._run.rounds

    @property
    @in_turn
    def pending(self) -> tuple[str, ...]:
        """Ids of decisions whose outcome has not been reported, oldest first."""
        return tuple(
            f"{self._token}-{number}"
            for number, entry in sorted(self._run.outcomes.open.items())
            if not entry.known
        )

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to one file; ``load`` continues from it bit for bit."""
        state_file.write(path, *self.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy that ``save`` wrote."""
        header, arrays = state_file.read(path)
        with state_file.corrupt_if_fails(path):
            model = LinearModel(**header["model"])
            policy = cls(registry.from_record(header), model, **header["settings"])
            rounds, next_ = int(header["rounds"]), int(header["next"])
            policy._run.restore(arrays, rounds, next_, header.get("latest"))
            policy._token = str(header["token"])
        return policy

    @in_turn
    def state(self) -> tuple[dict[str, Any], Arrays]:
        """The content that ``save`` writes: a header of plain data, and copies of the arrays."""
        header = state_file.header(self._spec, self._run, self._absorb, self._token)
        return header, {name: array.copy() for name, array in self._run.arrays().items()}

    def __repr__(self) -> str:
        return (
            f"Policy({self.name!r}, alpha={self.alpha}, reserve={self.reserve}, "
            f"rounds={self.rounds}, bank={self.bank:.4g}, pending={len(self.pending)})"
        )


def _no_such(attribute: str, spec: PolicySpec) -> AttributeError:
    return AttributeError(f"policy {spec.name!r} is a gate in plain Python and has no {attribute}")
