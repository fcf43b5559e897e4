"""The Python client: typed methods for the HTTP API."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn
from urllib.parse import quote

from numpy.typing import ArrayLike

from c4b import _array_likes, _validate, errors
from c4b.client.retrying_http import RetryingHttp
from c4b.evidence.model import LinearModel
from c4b.policies import Round
from c4b.policies.rounds.round import as_rounds
from c4b.policies.rounds.slates import Reward
from c4b.service import schemas

Outcomes = Mapping[str, Reward] | Iterable[tuple[str | schemas.Decided, Reward]]
"""Rewards of decisions: a mapping from ids, or pairs."""


class Client:
    """A client of ``c4b serve``. It raises the same errors as the library.

    A call without an answer is attempted up to ``attempts`` times with growing pauses. Repeating is safe:
    ``decide`` and ``learn`` carry a request id (a random one by default), so a repeated call gets the
    answer of the first one, and repeating an outcome or a creation changes nothing. Several threads may
    use one object.

    timeout: seconds to wait for one answer. Audits and exports have no time limit.
    """

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 10.0, attempts: int = 6
    ) -> None:
        self._http = RetryingHttp(url, token, timeout, attempts)

    # -- deployments ---------------------------------------------------------------------------

    def create(self, name: str, model: LinearModel, **options: Any) -> schemas.Deployment:
        """Create a deployment; options as for ``c4b.Deployment.create``.

        Repeating the call is harmless.
        """
        assumptions = {f.name: getattr(model, f.name) for f in fields(model) if f.init}
        body = {"model": assumptions, **options}
        return self._http.call(schemas.Deployment, "PUT", _path(name), json=body)

    def deployments(self) -> list[schemas.State]:
        """Return the states of the deployments that the token may read."""
        return self._http.call(schemas.Deployments, "GET", "/v1/deployments").deployments

    def deployment(self, name: str) -> schemas.Deployment:
        """Return the state and the configuration of a deployment."""
        return self._http.call(schemas.Deployment, "GET", _path(name))

    def learn(
        self, name: str, features: ArrayLike, rewards: ArrayLike, request_id: str | None = None
    ) -> schemas.Deployment:
        """Learn from historical rows and rewards, before the first decision."""
        _array_likes.check_rows(features, rewards)
        body = {"features": _as_lists("features", features), "rewards": _as_lists("rewards", rewards)}
        return self._http.call(
            schemas.Deployment,
            "POST",
            _path(name, "history"),
            json=body,
            headers=_idempotency_key(request_id),
        )

    # -- rolling out and back ------------------------------------------------------------------

    def freeze(self, name: str, reason: str, by: str | None = None) -> schemas.Deployment:
        """Play only the incumbent from the next decision on.

        Like all orders, it needs the scope admin and is safe to repeat.
        """
        return self._order(name, "freeze", reason, by)

    def thaw(self, name: str, reason: str, by: str | None = None) -> schemas.Deployment:
        """End ``freeze``."""
        return self._order(name, "thaw", reason, by)

    def ramp(self, name: str, share: float, reason: str, by: str | None = None) -> schemas.Deployment:
        """Limit the share of rounds that may play something else than the incumbent; 1 ends the limit."""
        return self._order(name, "ramp", reason, by, share)

    def go_live(self, name: str, reason: str, by: str | None = None) -> schemas.Deployment:
        """End shadow mode permanently."""
        return self._order(name, "go-live", reason, by)

    def close_decisions(self, name: str, reason: str, by: str | None = None) -> schemas.Deployment:
        """Stop making decisions permanently; outcomes are still accepted."""
        return self._order(name, "close", reason, by)

    def successor(
        self, name: str, successor: str, reason: str, by: str | None = None, **options: Any
    ) -> schemas.Deployment:
        """Close a deployment and start its successor; options ``reserve`` and ``policy``."""
        body = {"successor": successor, "why": reason, "by": by, **options}
        return self._http.call(
            schemas.Deployment, "POST", _path(name, "successor"), json=body, timeout=None
        )

    def erase_context(self, name: str, request_id: str) -> int:
        """Erase the context of one decision, and return the number of erased contexts."""
        return self._erase(name, {"request_id": request_id})

    def erase_contexts(self, name: str, before: datetime) -> int:
        """Erase the contexts of all decisions made before a time."""
        return self._erase(name, {"before": before.isoformat()})

    def _erase(self, name: str, body: dict[str, str]) -> int:
        path = _path(name, "erasures")
        return int(self._http.send("POST", path, json=body, timeout=None).json()["erased"])

    def _order(
        self, name: str, action: str, why: str, by: str | None, share: float | None = None
    ) -> schemas.Deployment:
        body = {"action": action, "why": why, "by": by, "share": share}
        return self._http.call(schemas.Deployment, "POST", _path(name, "orders"), json=body)

    # -- decisions and outcomes ----------------------------------------------------------------

    def decide(
        self,
        name: str,
        candidates: ArrayLike | Round,
        baseline: ArrayLike | None = None,
        request_id: str | None = None,
        context: object = None,
        baseline_mean: float | None = None,
        labels: Sequence[str] | None = None,
    ) -> schemas.Decided:
        """Choose among ``candidates`` (K, d) against ``baseline`` (d,).

        The decision is charged and on disk on return.

        The same ``request_id`` gets the same decision, also with another ``context`` or other ``labels``;
        the first ones are kept. With other candidates or another baseline it is an error.

        ``labels`` name the candidates, one each. ``baseline_mean`` is for policies that need it; see
        :meth:`c4b.Policy.decide`. Instead of these arguments, a :class:`c4b.Round` may be given, which
        holds all of them.
        """
        round_ = candidates
        if not isinstance(round_, Round):
            round_ = Round(candidates, baseline, baseline_mean, labels, request_id, context)
        return self._http.call(
            schemas.Decided,
            "POST",
            _path(name, "decisions"),
            json=_round_body(round_),
            headers=_idempotency_key(round_.request_id),
        )

    def decide_many(
        self,
        name: str,
        rounds: Iterable[Round | tuple[ArrayLike, ArrayLike]],
        request_ids: Sequence[str] | None = None,
        contexts: Sequence[object] | None = None,
        labels: Sequence[Sequence[str] | None] | None = None,
        outcomes: Outcomes | None = None,
    ) -> list[schemas.Decided]:
        """Decide several rounds, ``Round`` or pairs (candidates, baseline), in one commit.

        ``outcomes`` of earlier decisions, as for ``observe_many``, are recorded first in that commit.
        """
        given = as_rounds(rounds)
        if labels:
            given = [r._replace(labels=each) for r, each in zip(given, labels, strict=True)]
        if request_ids:
            pairs = zip(given, request_ids, strict=True)
            given = [round_._replace(request_id=id_) for round_, id_ in pairs]
        if contexts:
            given = [r._replace(context=context) for r, context in zip(given, contexts, strict=True)]
        body = [
            {**_round_body(round_), "request_id": round_.request_id or uuid.uuid4().hex}
            for round_ in given
        ]
        request = {"rounds": body} if outcomes is None else {"rounds": body, **_outcomes_body(outcomes)}
        path = _path(name, "decisions", "batch")
        return self._http.call(schemas.Decisions, "POST", path, json=request).decisions

    def observe(self, name: str, decision_id: str | schemas.Decided, reward: Reward) -> None:
        """Report a decision's reward, in any order and after any delay; for a slate, also item by item.

        The decision itself may be given instead of its id.
        """
        path = _path(name, "decisions", _array_likes.decision_id(decision_id), "outcome")
        self._http.call(schemas.Done, "PUT", path, json={"reward": _as_outcome(reward)})

    def observe_many(self, name: str, outcomes: Outcomes) -> None:
        """Report several (id, reward) pairs, or a mapping, in one commit."""
        body = _outcomes_body(outcomes)
        self._http.call(schemas.Done, "POST", _path(name, "outcomes"), json=body)

    def forget(self, name: str, decision_id: str | schemas.Decided, *, independent: bool = False) -> None:
        """Declare an outcome lost.

        This asserts that the loss depends on no reward of this decision or of a later one. After an
        outcome of a later decision was reported, the assertion must be explicit: ``independent=True``.
        """
        path = _path(name, "decisions", _array_likes.decision_id(decision_id), "outcome")
        self._http.call(schemas.Done, "PUT", path, json={"lost": True, **_assertion(independent)})

    def executed(
        self,
        name: str,
        decision_id: str | schemas.Decided,
        features: ArrayLike | None = None,
        *,
        independent: bool = False,
    ) -> None:
        """Report that another action was executed; the ledger is charged for it. None means the baseline.

        ``independent``: as in ``forget``.
        """
        path = _path(name, "decisions", _array_likes.decision_id(decision_id), "executed")
        given = None if features is None else _as_lists("features", _array_likes.dense_row(features))
        body = {"features": given, **_assertion(independent)}
        self._http.call(schemas.Done, "PUT", path, json=body)

    # -- queries -------------------------------------------------------------------------------

    def decisions(
        self, name: str, order: str = "oldest", page: int = 500
    ) -> Iterator[schemas.DecisionRow]:
        """Iterate over all decisions, fetched one page at a time."""
        after: dict[str, str] = {}
        while True:
            query = {"order": order, "limit": page, **after}
            rows = self._http.call(schemas.Page, "GET", _path(name, "decisions"), params=query)
            yield from rows.decisions
            if rows.next is None:
                return
            after = {"after": rows.next}

    def find(self, name: str, limit: int = 50, **wanted: Any) -> schemas.Page:
        """Find decisions by ``request_id``, ``label``, ``outcome``, ``played``, ``since`` and ``until``.

        The newest come first. To continue, pass the ``next`` of the answer as ``after``.
        """
        given = {key: _as_text(value) for key, value in wanted.items() if value is not None}
        query = {"limit": str(limit), **given}
        return self._http.call(schemas.Page, "GET", _path(name, "decisions"), params=query)

    def earnings(
        self, name: str, seconds: float | None = None, last: int | None = None
    ) -> schemas.Earnings:
        """Return the earnings and the uplift over the incumbent; see :meth:`c4b.Deployment.earnings`."""
        query = {"seconds": seconds, "last": last}
        given = {key: value for key, value in query.items() if value is not None}
        return self._http.call(schemas.Earnings, "GET", _path(name, "earnings"), params=given)

    def items(self, name: str) -> list[schemas.Item]:
        """Return the counts for each label (offered, admissible, played) and its mean reward."""
        return self._http.call(schemas.Items, "GET", _path(name, "items")).items

    def explain(self, name: str, decision_id: str | schemas.Decided) -> schemas.ExplainedDecision:
        """Explain a decision: the bounds of every candidate, and the outcome."""
        return self._http.call(
            schemas.ExplainedDecision,
            "GET",
            _path(name, "decisions", _array_likes.decision_id(decision_id)),
        )

    def pending(self, name: str, limit: int = 50) -> list[schemas.PendingDecision]:
        """Return the decisions without a known outcome, oldest first."""
        return self._http.call(
            schemas.PendingDecisions, "GET", _path(name, "pending"), params={"limit": limit}
        ).pending

    def audit(self, name: str, sample: int = 16) -> schemas.Audited:
        """Recompute the whole journal with independent code."""
        return self._http.call(
            schemas.Audited, "POST", _path(name, "audit"), params={"sample": sample}, timeout=None
        )

    def export(self, name: str, path: str | PathLike[str]) -> None:
        """Write all decisions with their outcomes to a Parquet file."""
        response = self._http.send("GET", _path(name, "export"), timeout=None)
        Path(path).write_bytes(response.content)

    def close(self) -> None:
        self._http.close()

    def __reduce__(self) -> NoReturn:
        remedy = "make one where it is needed: Client(URL, token=...)"
        raise TypeError(f"{self!r} holds connections and cannot be copied or pickled; {remedy}")

    def __repr__(self) -> str:
        return f"Client({self._http.address!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _path(*parts: str) -> str:
    return "/v1/deployments/" + "/".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    if not isinstance(part, str) or not part or part in (".", ".."):
        raise errors.InvalidInput("name or id", part, "must be a text")
    return quote(part, safe="")


def _idempotency_key(request_id: str | None) -> list[tuple[bytes, bytes]]:
    """The header, in UTF-8, so that every request id can be sent."""
    if request_id is None:
        request_id = uuid.uuid4().hex
    try:
        return [(b"Idempotency-Key", request_id.encode())]
    except (UnicodeError, AttributeError) as error:
        raise errors.InvalidInput(
            "request_id", request_id, "must be a text that UTF-8 can encode"
        ) from error


def _assertion(independent: bool) -> dict[str, bool]:
    """Sent only when it is made, as earlier services do not know it."""
    return {} if independent is False else {"independent": independent}


def _round_body(round_: Round) -> dict[str, Any]:
    """The request body of a round, without its request id."""
    _array_likes.check_names(round_.argument, round_.candidates, round_.baseline)
    baseline = _array_likes.dense_row(round_.baseline)
    _check_width_of_none(round_, baseline)
    optional = {
        "baseline_mean": round_.baseline_mean,
        "labels": _array_likes.texts(round_.labels),
        "context": round_.context,
    }
    return {
        "candidates": _as_lists("candidates", round_.candidates),
        "baseline": _as_lists("baseline", baseline),
        **{key: value for key, value in optional.items() if value is not None},
    }


def _check_width_of_none(round_: Round, baseline: object) -> None:
    """A table without rows still says how many features it has; as a list it would not."""
    shape: tuple[int, ...] = getattr(_array_likes.dense(round_.candidates), "shape", ())
    if len(shape) < 2 or shape[0] > 0:
        return
    own = _validate.converted("baseline", baseline, "must be an array of numbers").shape
    if (len(shape) - 1, shape[-1:]) != (len(own), own[-1:]):
        remedy = f"has shape {shape}, and the baseline {own}; give [] where there are no candidates"
        raise errors.InvalidInput(f"{round_.argument}candidates", round_.candidates, remedy)


def _outcomes_body(outcomes: Outcomes) -> dict[str, Any]:
    pairs = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
    listed = [
        {"id": _array_likes.decision_id(id_), "reward": _as_outcome(reward)} for id_, reward in pairs
    ]
    return {"outcomes": listed}


def _as_outcome(reward: Any) -> Any:
    """One reward, or those of a slate's items, as JSON has them."""
    values = _as_lists("reward", reward)
    if isinstance(values, list):
        return [_array_likes.reward(each) for each in values]
    return _array_likes.reward(values)


def _as_lists(argument: str, values: object) -> Any:
    """Arrays, frames, sparse matrices and lists of arrays as lists, NumPy's numbers as numbers. Other
    values are sent as they are and validated by the service."""
    values = _array_likes.dense(values)
    if isinstance(values, list | tuple):
        return [_as_lists(argument, each) for each in values]
    if not hasattr(values, "__array__"):
        return values
    return _validate.converted(argument, values, "must be an array of numbers").tolist()
