"""A durable policy: every decision is on disk before it is returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from c4b import _array_likes, _validate
from c4b.deployment import limits as checks
from c4b.deployment import succession
from c4b.deployment.configuration import SNAPSHOT_EVERY, Configuration
from c4b.deployment.deployment_orders import DeploymentOrders, user_name
from c4b.deployment.deployment_storage import DeploymentStorage
from c4b.deployment.limits import Limits
from c4b.deployment.questions.deployment_questions import DeploymentQuestions
from c4b.deployment.transactions.commands import ReportedOutcome, numbers_in
from c4b.deployment.transactions.recording import EVERYTHING
from c4b.deployment.transactions.shared_calls import SharedCalls
from c4b.deployment.transactions.transactor import Transactor
from c4b.errors import (
    C4BError,
    DecisionsClosed,
    DeploymentError,
    EntryArchived,
    InvalidInput,
    JournalCorrupt,
    NoSafeAction,
)
from c4b.evidence.model import LinearModel
from c4b.journal import seal
from c4b.journal.backend import JournalBackend, KnownRequest
from c4b.journal.backend_registry import open_backend
from c4b.journal.entries import CREATED, GENESIS, Entry, pack
from c4b.journal.journal import Journal
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.registry import DEFAULT_POLICY, PolicySpec
from c4b.policies.policy import Policy
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.round import Round, as_rounds, checked_round
from c4b.policies.rounds.slates import Outcome, Reward, checked_execution, checked_outcome

_new = tuple.__new__
"""Makes a ``Round`` of all its fields in the least time."""
Outcomes = Mapping[str, Reward] | Iterable[tuple[str | Decision, Reward]]
"""Rewards of decisions: a mapping from ids, or pairs."""


class Deployment(DeploymentOrders, DeploymentStorage, DeploymentQuestions):
    """A policy whose decisions, outcomes and budget are stored in a journal.

    Any number of processes may open the same deployment. They share one budget, and every call is one
    transaction. The effect of a call is on disk before the call returns; a call that raises an error has
    changed nothing (``c4b.errors`` names the one exception). Several threads may use one object; they
    share commits. The object can be used after a fork. ``c4b.journal.backend`` states the contract of the
    store.

    >>> import tempfile
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/shop.db"
    >>> model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    >>> with Deployment.create(url, "homepage", model, alpha=0.1, reserve=1.0) as dep:
    ...     decision = dep.decide([[1.0, 0.1]], baseline=[1.0, 0.0], request_id="r-1")
    ...     dep.observe(decision.id, 0.5)
    >>> with Deployment.open(url, "homepage") as dep:
    ...     again = dep.decide([[1.0, 0.1]], [1.0, 0.0], request_id="r-1")
    ...     dep.state().observations, again.id == decision.id, again.receipt == decision.receipt
    (1, True, True)
    """

    def __init__(self, transactor: Transactor, limits: Limits, url: str | JournalBackend) -> None:
        """Use ``create`` or ``open`` instead."""
        self._transactor = transactor
        self._url: str | None = None
        if isinstance(url, str) and not url.startswith("memory:"):  # else no other process can open it
            self._url = url
        self._limits = limits
        self._model = transactor.configuration.model
        self._dim = self._model.dim
        self._needs = registry.needs(transactor.configuration.spec)
        self._calls: SharedCalls[Round | ReportedOutcome, Decision | None] = SharedCalls(
            self.call_each, numbers_in
        )

    # -- existence -----------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        url: str | JournalBackend,
        name: str,
        model: LinearModel,
        policy: str | PolicySpec = DEFAULT_POLICY,
        alpha: float = 0.05,
        reserve: float = 0.0,
        baseline_nonnegative: bool = True,
        absorb: str = "in-order",
        outcome_timeout: float | None = None,
        timeout_reward: float | None = None,
        limits: Limits | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        baseline_floor: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        mode: str = "live",
        records: str = "everything",
        compress: bool = False,
    ) -> Deployment:
        """Create a deployment in the store at ``url``; see :class:`c4b.Policy` for what it promises.

        Parameters
        ----------
        url: address of the store, or an open backend. A backend that is given stays open when the
            deployment is closed.
        policy: a name, a composition or a gate factory. The default, ``"reserve-c4b+"``, plays only the
            baseline once the data refute the model. The paper's policy is ``"refresh"``.
        outcome_timeout: seconds after which a missing outcome counts as ``timeout_reward`` (for example 0
            for "no click") or, if that is None, as lost: see ``forget``. The next call that writes closes
            overdue outcomes.
        mode: ``"shadow"`` decides and records, but always executes the incumbent, until ``go_live``.
        records: ``"executed"`` stores only the candidate that was executed;
            :mod:`c4b.deployment.transactions.recording` says what an audit can check then.
        compress: whether entries are compressed with zlib.
        limits, snapshot_every: settings of this object, not of the deployment; give them again to
            ``open``.
        """
        checks.deployment_name(name)
        terms = (baseline_floor, horizon, seed)
        chosen = Policy(policy, model, alpha, reserve, baseline_nonnegative, absorb, *terms)
        own = (outcome_timeout, timeout_reward)
        configuration = Configuration.of(name, chosen, *own, seal.first_id(), mode, records, compress)
        return cls._begun(url, configuration, limits, snapshot_every)

    @classmethod
    def _begun(
        cls,
        url: str | JournalBackend,
        configuration: Configuration,
        limits: Limits | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Deployment:
        """A new journal with its first entry."""
        allowed, every = _limits(limits), _interval(snapshot_every)
        backend = _backend(url, create=True)
        with _closed_on_error(backend, owned=backend is not url):
            transactor = Transactor(backend, configuration, every, owns_backend=backend is not url)
            arrays, sealer = configuration.constants(), seal.find(configuration.key)
            if sealer is not None:
                arrays[seal.SEAL] = seal.BLANK
            payload = pack(configuration.fields(), arrays)
            first = Entry(0, CREATED, None, None, transactor.now(), payload, GENESIS)
            backend.create(configuration.name, first if sealer is None else sealer.sealed(first))
        return cls(transactor, allowed, url)

    @classmethod
    def open(
        cls,
        url: str | JournalBackend,
        name: str,
        limits: Limits | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Deployment:
        """Open an existing deployment in its latest committed state; ``url`` as for ``create``."""
        checks.deployment_name(name)
        allowed, every = _limits(limits), _interval(snapshot_every)
        backend = _backend(url)
        with _closed_on_error(backend, owned=backend is not url):
            with backend.reading(name) as transaction:
                entry = Journal(transaction).at(0)
                if entry is None:
                    raise JournalCorrupt(
                        f"the journal of {name!r} ends before its first entry; restore it from a backup"
                    )
                configuration = Configuration.recorded(*entry.unpack())
            if configuration.name != name:
                raise JournalCorrupt(
                    f"the journal under the name {name!r} was created as {configuration.name!r}: names "
                    "were exchanged in the store; restore it from a backup"
                )
            transactor = Transactor(backend, configuration, every, owns_backend=backend is not url)
            transactor.read(lambda journal, state: None)
        return cls(transactor, allowed, url)

    @staticmethod
    def names(url: str) -> list[str]:
        """List the deployments in a store."""
        backend = open_backend(url)
        try:
            return backend.names()
        finally:
            backend.close()

    def close(self) -> None:
        """Close the connections of this object. Nothing is lost if it is not called."""
        self._transactor.close()

    # -- the protocol --------------------------------------------------------------------------

    def learn(self, features: ArrayLike, rewards: ArrayLike, request_id: str | None = None) -> None:
        """Learn from historical rows (n, d) with rewards (n,), before the first decision.

        History is evidence and never changes the budget. With a ``request_id``, repeating the call is
        harmless.
        """
        _array_likes.check_rows(features, rewards)
        x = _validate.table("features", _array_likes.dense(features), self._dim)
        y = self._model.check_rewards("rewards", _validate.series("rewards", rewards, len(x)))
        self._limits.history("features", len(x), self._dim)
        id_ = checks.request_id("request_id", request_id)
        self._transactor.write(lambda commands: commands.learn(x, y, id_))

    def decide(
        self,
        candidates: ArrayLike | Round,
        baseline: ArrayLike | None = None,
        request_id: str | None = None,
        context: object = None,
        baseline_mean: float | None = None,
        labels: Sequence[str] | None = None,
        outcomes: Outcomes | None = None,
    ) -> Decision:
        """Choose among ``candidates`` (K, d) against ``baseline`` (d,).

        The decision is charged and on disk on return.

        Slates of m items have the shape (K, m, d), their baseline (n, d); see
        :mod:`c4b.policies.rounds.slates`. Instead of these arguments, a :class:`c4b.Round` may be given,
        which holds all of them.

        Parameters
        ----------
        request_id: the same id always returns the same decision, in any process. With other candidates,
            another baseline or another ``baseline_mean`` it is an error. Another ``context`` and other
            ``labels`` are no error: the first decision is returned, and keeps those that it was made
            with.
        context: JSON that is stored with the decision.
        labels: names of the candidates, one each. They are shown to people, and ``items`` counts by
            label.
        baseline_mean: for policies that need it; see :meth:`c4b.Policy.decide`.
        outcomes: rewards of earlier decisions, as for ``observe_many``. They are recorded first, the
            decision learns from them, and both are one commit: half as many commits as ``observe`` and
            ``decide`` make. Repeating the call is as harmless as repeating each of the two.
        """
        round_ = self.request(candidates, baseline, request_id, context, baseline_mean, labels)
        if outcomes is not None:
            return self._decide([round_], self._checked_outcomes(outcomes), reports_first=True)[0]
        return cast(Decision, self._calls(round_))

    def decide_many(
        self,
        rounds: Iterable[Round | tuple[ArrayLike, ArrayLike]],
        request_ids: Sequence[str | None] | None = None,
        contexts: Sequence[object] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        outcomes: Outcomes | None = None,
    ) -> list[Decision]:
        """Decide several rounds, ``Round`` or pairs (candidates, baseline), in one commit: all or none.

        ``request_ids``, ``contexts`` and ``labels`` have one value for each round. ``outcomes``: as in
        ``decide``.
        """
        given = as_rounds(rounds)
        if labels is not None:
            names = _one_each("labels", labels, given)
            given = [round_._replace(labels=each) for round_, each in zip(given, names, strict=True)]
        self._limits.several("rounds", len(given))
        ids = _one_each("request_ids", request_ids, [round_.request_id for round_ in given])
        kept = _one_each("contexts", contexts, [round_.context for round_ in given])
        checked, size = [], 0
        for each in zip(given, ids, kept, strict=True):
            round_, entry = self._measured(*each)
            checked.append(round_)
            size += entry
        self._limits.together("rounds", size)
        reported = [] if outcomes is None else self._checked_outcomes(outcomes)
        return self._decide(checked, reported, reports_first=True) if checked or reported else []

    def _decide(
        self,
        rounds: Sequence[Round],
        outcomes: Sequence[ReportedOutcome] = (),
        reports_first: bool = False,
    ) -> list[Decision]:
        """Decisions, and outcomes of earlier ones, in one commit; all or none.

        Retries are rare: the journal is asked for request ids only when it refuses one, or when what
        was safe then is not now."""
        first = reports_first and bool(outcomes)
        try:
            return self._written(rounds, outcomes, first, look_up=False)
        except (KnownRequest, NoSafeAction, DecisionsClosed) as refusal:
            if all(round_.request_id is None for round_ in rounds):
                raise
            lost = refusal.lost if isinstance(refusal, KnownRequest) else None
        try:
            return self._written(rounds, outcomes, first, look_up=True)
        except DeploymentError as error:
            if lost is not None:
                raise lost from error
            if not isinstance(error, KnownRequest):
                raise
            raise JournalCorrupt(
                f"the index of request ids contradicts the journal ({error}); nothing was decided, "
                "run an audit"
            ) from error

    def _written(
        self,
        rounds: Sequence[Round],
        outcomes: Sequence[ReportedOutcome],
        reports_first: bool,
        look_up: bool,
    ) -> list[Decision]:
        """A decision that is repeated lacks what its entry leaves out."""
        if reports_first:
            made = self._transactor.write(lambda c: c.report_and_decide(outcomes, rounds, look_up))
        else:
            made = self._transactor.write(lambda c: c.call(rounds, outcomes, look_up))
        if self.configuration.records == EVERYTHING:
            for n, round_ in enumerate(rounds):
                if round_.request_id is not None and _lacks_numbers(made[n]):
                    made[n] = self._with_left_out(made[n])
        return made

    def request(
        self,
        candidates: ArrayLike | Round,
        baseline: ArrayLike | None = None,
        request_id: str | None = None,
        context: object = None,
        baseline_mean: float | None = None,
        labels: Sequence[str] | None = None,
    ) -> Round:
        """Return the checked arguments of ``decide`` for ``call_each``, with the context as JSON text."""
        if isinstance(candidates, Round):
            return self._measured(candidates, candidates.request_id, candidates.context)[0]
        return self._measured(Round(candidates, baseline, baseline_mean, labels), request_id, context)[0]

    def _measured(self, given: Round, request_id: object, context: object) -> tuple[Round, int]:
        """A round that was checked, and the most bytes that its entry can have."""
        dim = self._dim
        candidates, baseline, mean, labels, _, _, argument, items = checked_round(given, dim, self._needs)
        if labels is not None:
            checks.labels(f"{argument}labels", labels)
        text = self._limits.context(f"{argument}context", context)
        if items is not None:  # an entry holds their features beside the sums
            dim *= 1 + max(items.candidates.shape[1], len(items.baseline))
        size = self._limits.pool(f"{argument}candidates", len(candidates), dim, text, labels)
        id_ = checks.request_id(f"{argument}request_id", request_id)
        return _new(Round, (candidates, baseline, mean, labels, id_, text, argument, items)), size

    def reported(self, decision_id: str | Decision, reward: Reward) -> ReportedOutcome:
        """Return the checked arguments of ``observe`` for ``call_each``."""
        return ReportedOutcome(_array_likes.decision_id(decision_id), self._reward("reward", reward))

    def call_each(self, calls: Sequence[Round | ReportedOutcome]) -> list[Decision | C4BError | None]:
        """Execute calls of several callers, each from ``request`` or ``reported``, in one commit.

        The result has one element for each call: what ``decide`` or ``observe`` would have returned, or
        the error that it would have raised. An invalid call does not affect the others.
        """
        rounds = [call for call in calls if isinstance(call, Round)]
        outcomes = [call for call in calls if isinstance(call, ReportedOutcome)]
        try:
            made = iter(self._decide(rounds, outcomes))
            return [next(made) if isinstance(call, Round) else None for call in calls]
        except C4BError as error:
            shared = isinstance(error, DeploymentError) and not isinstance(error, EntryArchived)
            if shared or len(calls) == 1:  # the store's fault, not a caller's
                return [error] * len(calls)
        half = len(calls) // 2  # who is at fault is in one of the two
        return self.call_each(calls[:half]) + self.call_each(calls[half:])

    def observe(self, decision_id: str | Decision, reward: Reward) -> None:
        """Report a decision's reward, in any order and after any delay.

        Repeating the same report is harmless. For a slate, give the rewards of its items in their order,
        or one number, which is their sum. The decision itself may be given instead of its id, and True or
        False as the reward.
        """
        self._calls(self.reported(decision_id, reward))

    def _reward(self, argument: str, value: object) -> Outcome:
        return checked_outcome(self._model, argument, value)

    def observe_many(self, outcomes: Outcomes) -> None:
        """Report several (id, reward) pairs, or a mapping, in one commit: all or none."""
        if checked := self._checked_outcomes(outcomes):
            self._decide([], checked)

    def _checked_outcomes(self, outcomes: Outcomes) -> list[ReportedOutcome]:
        listed = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
        pairs = _validate.pairs("outcomes", listed, "must be a mapping, or pairs (id, reward)")
        self._limits.several("outcomes", len(pairs))
        return [
            ReportedOutcome(
                _array_likes.decision_id(id_),
                self._reward(f"outcomes[{n}].reward", reward),
                f"outcomes[{n}].",
            )
            for n, (id_, reward) in enumerate(pairs)
        ]

    def forget(self, decision_id: str | Decision, *, independent: bool = False) -> None:
        """Declare an outcome lost.

        This *asserts that the loss depends on no reward of this decision or of a later one*. After an
        outcome of a later decision was reported, the call raises ``LaterOutcomeKnown`` unless the caller
        makes the assertion explicit with ``independent=True``. The journal records the assertion.
        Repeating the call is harmless.
        """
        asserted = _validate.boolean("independent", independent)
        id_ = _array_likes.decision_id(decision_id)
        self._transactor.write(lambda commands: commands.forget(id_, asserted))

    def executed(
        self, decision_id: str | Decision, features: ArrayLike | None = None, *, independent: bool = False
    ) -> None:
        """Report that another action was executed; the ledger is charged for that action.

        ``features`` has the shape (d,), or (m, d) for a slate; None means the baseline. Features that
        equal the round's baseline bit for bit mean the baseline, unless the model declares
        misspecification. What was executed must not depend on a reward of this decision or of a later
        one; ``independent`` asserts this, as in ``forget``.
        """
        checked = items = None
        if features is not None:
            checked, items = checked_execution("features", features, self._dim)
        asserted = _validate.boolean("independent", independent)
        id_ = _array_likes.decision_id(decision_id)
        self._transactor.write(lambda commands: commands.executed(id_, checked, asserted, items))

    def expire(self) -> int:
        """Close overdue outcomes now instead of at the next call; returns their number."""
        return self._transactor.expire()

    # -- a successor --------------------------------------------------------------------------

    @classmethod
    def successor(
        cls,
        url: str | JournalBackend,
        predecessor: str,
        name: str,
        reason: str,
        model: LinearModel | None = None,
        reserve: float | None = None,
        translate: succession.Translation | None = None,
        by: str | None = None,
        **options: Any,
    ) -> Deployment:
        """Close ``predecessor`` and start ``name`` with what it learned and the rest of its reserve.

        Call it again if it was interrupted; see :mod:`c4b.deployment.succession`.

        Parameters
        ----------
        model: the new model; by default the predecessor's.
        reserve: at most the certified rest of the predecessor's reserve, which is the default.
        translate: function from the predecessor's features of executed actions to features of the new
            model, if these differ.
        options: as for ``create``; by default the predecessor's. End a freeze or a ramp first, or give
            ``mode``.
        """
        checks.deployment_name(name)
        order = (checks.text("reason", reason), checks.text("by", user_name() if by is None else by))
        return succession.start(cls, url, predecessor, name, order, model, reserve, translate, options)

    def __enter__(self) -> Deployment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        remedy = f"open it where it is needed: Deployment.open(URL, {self.name!r})"
        raise TypeError(f"{self!r} holds connections and cannot be copied or pickled; {remedy}")

    def __repr__(self) -> str:
        policy = self.configuration.spec.name
        return f"Deployment({self.name!r}, {policy!r}, {self._transactor.backend!r})"


def _backend(url: str | JournalBackend, create: bool = False) -> JournalBackend:
    """The store at ``url``, or the one that is given."""
    if isinstance(url, str) or not hasattr(url, "append_if_head"):
        return open_backend(cast(str, url), create)
    return url


@contextmanager
def _closed_on_error(backend: JournalBackend, owned: bool) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if owned:
            backend.close()
        raise


def _lacks_numbers(decision: Decision) -> bool:
    """Whether a decision was read from an entry without numbers that it did not depend on."""
    return decision.left_out is None and bool(np.isnan(decision.computed[CandidateField.SEPARATE]).any())


def _limits(limits: object) -> Limits:
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise InvalidInput("limits", limits, "must be a c4b.deployment.Limits")
    return limits


def _interval(value: object) -> int:
    return _validate.count("snapshot_every", value, 1, "must be a whole number of at least 1")


def _one_each(argument: str, values: Sequence[Any] | None, default: Sequence[Any]) -> Sequence[Any]:
    """One value for each round, or those that the rounds carry."""
    if values is None:
        return default
    size = len(default)
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or len(values) != size:
        raise InvalidInput(argument, values, f"must be a sequence, one for each of the {size} rounds")
    return values
