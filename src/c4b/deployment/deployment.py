"""One policy made durable: every decision is on disk before it is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import select

from c4b import _validate
from c4b.deployment import limits as checks
from c4b.deployment import queries as records
from c4b.deployment.audit import audit as audits
from c4b.deployment.audit.audit_report import Report
from c4b.deployment.commands import Request
from c4b.deployment.configuration import SNAPSHOT_EVERY, Configuration
from c4b.deployment.limits import Limits
from c4b.deployment.queries import PendingDecision, Point, Record, Status
from c4b.deployment.transactor import Session, found, unknown
from c4b.errors import C4BError, DeploymentError, InvalidInput, NameTaken, NoSafeAction
from c4b.evidence.model import LinearModel
from c4b.journal import sql_schema as schema
from c4b.journal.entries import CREATED, GENESIS, Entry, pack
from c4b.journal.journal import columns
from c4b.journal.sql_store import KnownRequest, Store
from c4b.policies.decision import Decision, Explanation
from c4b.policies.policy import Policy
from c4b.policies.registry import DEFAULT_POLICY, PolicySpec

C = TypeVar("C")
T = TypeVar("T")


class Deployment:
    """A policy whose decisions, outcomes and budget live in a journal (see ``c4b.journal.journal``).

    Any number of processes may open the same deployment; they share one budget, and every call is one
    transaction. What a call did is on disk before it returns; a call that raised did nothing. One object
    may be used by several threads, which take turns, and survives a fork.

    >>> import tempfile
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/shop.db"
    >>> model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    >>> with Deployment.create(url, "homepage", model, alpha=0.1, reserve=1.0) as dep:
    ...     decision = dep.decide([[1.0, 0.1]], baseline=[1.0, 0.0], request_id="r-1")
    ...     dep.observe(decision.id, 0.5)
    >>> with Deployment.open(url, "homepage") as dep:
    ...     dep.state().observations, dep.decide([[1.0, 0.1]], [1.0, 0.0], request_id="r-1").id
    (1, 'homepage-1')
    """

    def __init__(self, session: Session, limits: Limits) -> None:
        """Use ``create`` or ``open``."""
        self._session = session
        self._limits = limits

    # -- existence -----------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        url: str,
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
    ) -> Deployment:
        """A new deployment in the store at ``url``; see :class:`c4b.Policy` for what it promises.

        policy: a name, a composition or a gate factory; without it ``"reserve-c4b+"``, which latches the
        baseline when the data refute the model. The paper's policy is ``"refresh"``.

        outcome_timeout: seconds after which an outcome that did not come counts as ``timeout_reward``
        (declare what silence means, say 0 for "no click"), or, with None, as lost: see ``forget``.
        Windows are closed by the next call that writes. limits and snapshot_every belong to this
        object, not to the deployment.
        """
        checks.deployment_name(name)
        chosen = Policy(policy, model, alpha, reserve, baseline_nonnegative, absorb)
        configuration = Configuration.of(name, chosen, outcome_timeout, timeout_reward)
        store = Store(url, create=True)
        with _closed_on_error(store):
            made = cls(Session(store, configuration, _interval(snapshot_every)), _limits(limits))
            payload = pack(configuration.fields(), configuration.constants())
            first = Entry(0, CREATED, None, None, made._session.now(), payload, GENESIS)
            row = {"name": name, "head": 0, "head_hash": first.hash(), "snapshot": -1}
            with store.administering() as connection:
                schema.prepare(connection)
                taken = select(schema.deployments.c.id).where(schema.deployments.c.name == name)
                if connection.execute(taken).first() is not None:
                    raise NameTaken(f"{name!r} exists already; open() it, or choose another name")
                connection.execute(schema.deployments.insert(), row)
                number = connection.execute(taken).scalar_one()
                connection.execute(schema.journal.insert(), columns(number, first))
        return made

    @classmethod
    def open(
        cls,
        url: str,
        name: str,
        limits: Limits | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Deployment:
        """A deployment that exists, where any process left it."""
        checks.deployment_name(name)
        allowed, every = _limits(limits), _interval(snapshot_every)
        store = Store(url)
        with _closed_on_error(store):
            with store.administering(write=False) as connection:
                if not schema.exists(connection):
                    raise unknown(name)
                schema.check(connection)
            with store.reading() as transaction:
                entry = found(transaction, name).at(0)
                assert entry is not None
                session = Session(store, Configuration.recorded(*entry.unpack()), every)
            session.read(lambda journal, state: None)
        return cls(session, allowed)

    @staticmethod
    def names(url: str) -> list[str]:
        """The deployments in a store."""
        store = Store(url)
        try:
            with store.administering(write=False) as connection:
                if not schema.exists(connection):
                    return []
                schema.check(connection)
                column = schema.deployments.c.name
                return list(connection.execute(select(column).order_by(column)).scalars())
        finally:
            store.close()

    def close(self) -> None:
        """Give the connections back. Nothing is lost without it."""
        self._session.close()

    # -- the protocol --------------------------------------------------------------------------

    def learn(self, features: object, rewards: object, request_id: str | None = None) -> None:
        """Historical rows (n, d) with rewards (n,), before the first decision: evidence, never budget.

        With a ``request_id`` repeating the call is harmless.
        """
        dim = self.model.dim
        x = _validate.table("features", features, dim)
        y = _validate.series("rewards", rewards, len(x))
        self._limits.history("features", len(x), dim)
        asked = checks.request_id("request_id", request_id)
        self._session.write(lambda work: work.learn(x, y, asked))

    def decide(
        self,
        candidates: object,
        baseline: object,
        request_id: str | None = None,
        context: object = None,
    ) -> Decision:
        """Choose among ``candidates`` (K, d) against ``baseline`` (d,); charged and durable on return.

        The same ``request_id`` returns the same decision, from any process, for ever; with other
        candidates it is an error. ``context`` is JSON, kept for whoever asks why.
        """
        request = self._request(candidates, baseline, request_id, context, "")
        return self._decided([request])[0]

    def decide_many(
        self,
        rounds: Iterable[tuple[object, object]],
        request_ids: Sequence[str | None] | None = None,
        contexts: Sequence[object] | None = None,
    ) -> list[Decision]:
        """Several rounds, pairs (candidates, baseline), in one commit; all are decided or none."""
        pairs = _validate.pairs("rounds", rounds, "must be a sequence of pairs (candidates, baseline)")
        self._limits.several("rounds", len(pairs))
        asked = _as_many("request_ids", request_ids, len(pairs))
        told = _as_many("contexts", contexts, len(pairs))
        requests = [
            self._request(*pair, asked[n], told[n], f"rounds[{n}].") for n, pair in enumerate(pairs)
        ]
        return self._decided(requests) if requests else []

    def _decided(self, requests: Sequence[Request]) -> list[Decision]:
        """Retries are rare: the journal is asked for request ids only when it refuses one, or when what
        was safe then is not now."""
        try:
            return self._session.write(lambda work: work.decide(requests, look=False))
        except (KnownRequest, NoSafeAction):
            if all(request.request_id is None for request in requests):
                raise
            return self._session.write(lambda work: work.decide(requests))

    def request(
        self,
        candidates: object,
        baseline: object,
        request_id: str | None = None,
        context: object = None,
    ) -> Request:
        """The arguments of ``decide``, checked, for ``decide_each``."""
        return self._request(candidates, baseline, request_id, context, "")

    def decide_each(self, requests: Sequence[Request]) -> list[Decision | C4BError]:
        """Requests of several callers in one commit; one that cannot be decided does not hinder the rest.

        Each gets its decision or the error that ``decide`` would have raised.
        """

        def together(some: Sequence[Request]) -> list[Decision | C4BError]:
            return list(self._decided(some))

        return _each(requests, together, lambda one: self._decided([one])[0])

    def observe_each(self, outcomes: Sequence[tuple[str, float]]) -> list[C4BError | None]:
        """Reports (id, reward) of several callers in one commit; each gets None or its error."""

        def together(some: Sequence[tuple[str, float]]) -> list[C4BError | None]:
            self.observe_many(some)
            return [None] * len(some)

        return _each(outcomes, together, lambda one: self.observe(*one))

    def observe(self, decision_id: str, reward: float) -> None:
        """A decision's reward, in any order, after any delay; repeating the same report is harmless."""
        value = _validate.reward("reward", reward)
        self._session.write(lambda work: work.observe([("", decision_id, value)]))

    def observe_many(self, outcomes: Mapping[str, float] | Iterable[tuple[str, float]]) -> None:
        """Several (id, reward) pairs, or a mapping, in one commit; all are taken or none."""
        listed = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
        pairs = _validate.pairs("outcomes", listed, "must be a mapping, or pairs (id, reward)")
        self._limits.several("outcomes", len(pairs))
        checked = [
            (f"outcomes[{n}].", told, _validate.reward(f"outcomes[{n}].reward", reward))
            for n, (told, reward) in enumerate(pairs)
        ]
        if checked:
            self._session.write(lambda work: work.observe(checked))

    def forget(self, decision_id: str) -> None:
        """Declare an outcome lost, which *asserts that the loss is independent of the reward*."""
        self._session.write(lambda work: work.forget(decision_id))

    def executed(self, decision_id: str, features: object = None) -> None:
        """Another action was executed: charge that one. Features (d,), or None for the baseline."""
        really = None if features is None else _validate.vector("features", features, self.model.dim)
        self._session.write(lambda work: work.executed(decision_id, really))

    def expire(self) -> int:
        """Close outcome windows that are due now instead of at the next call; returns how many."""
        return self._session.expire()

    # -- questions -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._session.configuration.name

    @property
    def model(self) -> LinearModel:
        return self._session.configuration.model

    @property
    def configuration(self) -> Configuration:
        return self._session.configuration

    def state(self) -> Status:
        """Where the deployment stands, with what every process has committed."""
        now = self._session.now
        return self._session.read(lambda journal, state: records.status(state, now()))

    def decisions(
        self,
        after: str | int | None = None,
        limit: int = 100,
        before: str | int | None = None,
        newest: bool = False,
    ) -> list[Record]:
        """At most ``limit`` decisions with their outcomes, between ``after`` and ``before``, which are
        ids (or entries' numbers) and not included.

        The first ones, oldest first; or with ``newest`` the last ones, newest first. Either way only the
        part of the journal that they lie in is read. To page: the last id, as ``after`` or ``before``.
        """
        count = _limit(limit)
        last = _validate.boolean("newest", newest)
        return self._session.read(
            lambda journal, state: records.decisions(journal, state, after, before, count, last)
        )

    def series(self, points: int = 500) -> list[Point]:
        """About ``points`` evenly spaced decisions for a plot, always the first and the last one.

        Up to 512 points are evenly spaced in any journal; of more, as many as are kept, up to 1024. It
        costs the same for a hundred decisions as for a million.
        """
        count = _validate.count("points", points, 2, "must be a whole number of at least 2")
        return self._session.read(lambda journal, state: records.series(journal, state, count))

    def pending(self, limit: int = 100) -> list[PendingDecision]:
        """Decisions whose outcome is not known, oldest first, with their age in seconds."""
        count, now = _limit(limit), self._session.now
        return self._session.read(lambda journal, state: records.pending(journal, state, count, now()))

    def explain(self, decision_id: str) -> Explanation:
        """Why: every candidate's bounds, margin and admissibility, as recorded at the decision."""
        return self.record(decision_id).explain()

    def record(self, decision_id: str) -> Record:
        """One decision with its context and its outcome."""
        return self._session.read(lambda journal, state: records.record(journal, state, decision_id))

    def audit(self, sample: int = 16, progress: Callable[[int, int], None] | None = None) -> Report:
        """Recompute everything with independent code; see :mod:`c4b.deployment.audit.audit`."""
        self._session.ready()
        with self._session.store.reading() as transaction:  # not in turn: it may take long
            return audits.run(found(transaction, self.name), sample, progress)

    def _request(
        self, candidates: object, baseline: object, asked: object, context: object, place: str
    ) -> Request:
        dim = self._session.configuration.model.dim
        pool = _validate.pool(f"{place}candidates", candidates, dim)
        self._limits.pool(f"{place}candidates", len(pool), dim)
        return Request(
            pool,
            _validate.point(f"{place}baseline", baseline, dim),
            checks.request_id(f"{place}request_id", asked),
            self._limits.context(f"{place}context", context),
            place,
        )

    def __enter__(self) -> Deployment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        policy = self.configuration.spec.name
        return f"Deployment({self.name!r}, {policy!r}, {self._session.store!r})"


@contextmanager
def _closed_on_error(store: Store) -> Iterator[None]:
    try:
        yield
    except BaseException:
        store.close()
        raise


def _each(
    calls: Sequence[C], together: Callable[[Sequence[C]], list[T | C4BError]], alone: Callable[[C], T]
) -> list[T | C4BError]:
    """All calls at once; if one of them is at fault, each by itself to find out which."""
    if len(calls) > 1:
        try:
            return together(calls)
        except DeploymentError as error:  # the store's fault, not a caller's
            return [error] * len(calls)
        except C4BError:
            pass
    answers: list[T | C4BError] = []
    for one in calls:
        try:
            answers.append(alone(one))
        except C4BError as error:
            answers.append(error)
    return answers


def _limits(limits: object) -> Limits:
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise InvalidInput("limits", limits, "must be a c4b.deployment.Limits")
    return limits


def _interval(value: object) -> int:
    return _validate.count("snapshot_every", value, 1, "must be a whole number of at least 1")


def _limit(value: object) -> int:
    return _validate.count("limit", value, 1, "must be a whole number of at least 1")


def _as_many(argument: str, values: Sequence[Any] | None, size: int) -> Sequence[Any]:
    if values is None:
        return [None] * size
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or len(values) != size:
        raise InvalidInput(argument, values, f"must be a sequence, one for each of the {size} rounds")
    return values
