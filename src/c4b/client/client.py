"""A small typed client. Every call may be repeated, so it repeats what failed."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import numpy as np
from pydantic import BaseModel

from c4b import errors
from c4b.evidence.model import LinearModel
from c4b.service import schemas as m

A = TypeVar("A", bound=BaseModel)

_AGAIN = (408, 429, 502, 503, 504)
_LONGEST = 5.0
"""Seconds between two attempts at most."""


class Client:
    """Speaks to ``c4b serve``; raises the library's own errors.

    A call that got no answer is repeated up to ``attempts`` times with growing pauses. That is safe:
    ``decide`` and ``learn`` carry a request id (made if you give none), so a repeated call gets the
    answer of the first; outcomes and creation are the same said twice. One object may be used by several
    threads.

    timeout: seconds to wait for one answer. An audit or export may take as long as it needs.
    """

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 10.0, attempts: int = 6
    ) -> None:
        self._attempts = attempts
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)
        except (httpx.InvalidURL, TypeError) as error:
            raise errors.InvalidInput("url", url, "must be like http://127.0.0.1:8000") from error
        if self._http.base_url.scheme not in ("http", "https"):
            raise errors.InvalidInput("url", url, "must be like http://127.0.0.1:8000")

    # -- deployments ---------------------------------------------------------------------------

    def create(self, name: str, model: LinearModel, **options: Any) -> m.Deployment:
        """A new deployment; options as for ``c4b.Deployment.create``. Twice the same is harmless."""
        told = {f.name: getattr(model, f.name) for f in fields(model) if f.init}
        return self._ask(m.Deployment, "PUT", _at(name), json={"model": told, **options})

    def deployments(self) -> list[m.State]:
        """Those that the token may see."""
        return self._ask(m.Deployments, "GET", "/v1/deployments").deployments

    def deployment(self, name: str) -> m.Deployment:
        """Where a deployment stands, and its configuration."""
        return self._ask(m.Deployment, "GET", _at(name))

    def learn(
        self, name: str, features: object, rewards: object, request_id: str | None = None
    ) -> m.Deployment:
        """History, before the first decision."""
        body = {"features": _plain(features), "rewards": _plain(rewards)}
        return self._ask(m.Deployment, "POST", _at(name, "history"), json=body, headers=_key(request_id))

    # -- decisions and outcomes ----------------------------------------------------------------

    def decide(
        self,
        name: str,
        candidates: object,
        baseline: object,
        request_id: str | None = None,
        context: object = None,
    ) -> m.Decided:
        """Choose among ``candidates`` (K, d) against ``baseline`` (d,); durable and charged on return."""
        body = {"candidates": _plain(candidates), "baseline": _plain(baseline), "context": context}
        return self._ask(m.Decided, "POST", _at(name, "decisions"), json=body, headers=_key(request_id))

    def decide_many(
        self,
        name: str,
        rounds: Iterable[tuple[object, object]],
        request_ids: Sequence[str] | None = None,
        contexts: Sequence[object] | None = None,
    ) -> list[m.Decided]:
        """Several rounds, pairs (candidates, baseline), in one commit."""
        pairs = list(rounds)
        ids = request_ids or [uuid.uuid4().hex for _ in pairs]
        told = contexts or [None] * len(pairs)
        body = [
            {"candidates": _plain(x), "baseline": _plain(b), "request_id": asked, "context": context}
            for (x, b), asked, context in zip(pairs, ids, told, strict=True)
        ]
        path = _at(name, "decisions", "batch")
        return self._ask(m.Decisions, "POST", path, json={"rounds": body}).decisions

    def observe(self, name: str, decision_id: str, reward: float) -> None:
        """A decision's reward, in any order, after any delay."""
        path = _at(name, "decisions", decision_id, "outcome")
        self._ask(m.Done, "PUT", path, json={"reward": reward})

    def observe_many(
        self, name: str, outcomes: Mapping[str, float] | Iterable[tuple[str, float]]
    ) -> None:
        """Several (id, reward) pairs, or a mapping, in one commit."""
        pairs = outcomes.items() if isinstance(outcomes, Mapping) else outcomes
        body = {"outcomes": [{"id": id_, "reward": reward} for id_, reward in pairs]}
        self._ask(m.Done, "POST", _at(name, "outcomes"), json=body)

    def forget(self, name: str, decision_id: str) -> None:
        """Declare an outcome lost, which asserts that the loss is independent of the reward."""
        path = _at(name, "decisions", decision_id, "outcome")
        self._ask(m.Done, "PUT", path, json={"lost": True})

    def executed(self, name: str, decision_id: str, features: object = None) -> None:
        """Another action was executed: charge that one; None for the baseline."""
        path = _at(name, "decisions", decision_id, "executed")
        self._ask(m.Done, "PUT", path, json={"features": None if features is None else _plain(features)})

    # -- questions -----------------------------------------------------------------------------

    def decisions(self, name: str, order: str = "oldest", page: int = 500) -> Iterator[m.Line]:
        """All decisions, fetched a page at a time."""
        after: dict[str, str] = {}
        while True:
            told = {"order": order, "limit": page, **after}
            found = self._ask(m.Page, "GET", _at(name, "decisions"), params=told)
            yield from found.decisions
            if found.next is None:
                return
            after = {"after": found.next}

    def explain(self, name: str, decision_id: str) -> m.Why:
        """Why: every candidate's case, and what became of the decision."""
        return self._ask(m.Why, "GET", _at(name, "decisions", decision_id))

    def pending(self, name: str, limit: int = 50) -> list[m.Pending]:
        """Decisions that wait for their outcome, oldest first."""
        return self._ask(m.Waiting, "GET", _at(name, "pending"), params={"limit": limit}).pending

    def audit(self, name: str, sample: int = 16) -> m.Audited:
        """Recompute the whole journal with independent code."""
        return self._ask(m.Audited, "POST", _at(name, "audit"), params={"sample": sample}, timeout=None)

    def export(self, name: str, path: str | PathLike[str]) -> None:
        """Write all decisions with their outcomes to a Parquet file."""
        answer = self._send("GET", _at(name, "export"), timeout=None)
        Path(path).write_bytes(answer.content)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the wire ------------------------------------------------------------------------------

    def _ask(self, answer: type[A], method: str, path: str, **more: Any) -> A:
        return answer.model_validate_json(self._send(method, path, **more).content)

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One call, repeated while that may help."""
        said, sent = "", False
        for attempt in range(self._attempts):
            pause = min(0.1 * 2.0**attempt, _LONGEST) * random.uniform(0.5, 1.0)
            try:
                answer = self._http.request(method, path, **more)
            except httpx.TransportError as error:
                said = f"{type(error).__name__}: {error}"
                sent = sent or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            except ValueError as error:  # NaN has no place in JSON
                raise errors.InvalidInput("request", path, f"cannot be sent as JSON ({error})") from error
            else:
                if answer.is_success:
                    return answer
                if answer.status_code not in _AGAIN:
                    raise _error(answer)
                said, sent = str(_error(answer)), True
                wait = answer.headers.get("Retry-After", "")
                pause = max(pause, float(wait) if wait.isdigit() else 0.0)
            if attempt + 1 < self._attempts:
                time.sleep(min(pause, _LONGEST))
        if not sent:
            raise errors.ServiceUnavailable(
                f"{self._http.base_url}: nobody answers at this address, no connection in "
                f"{self._attempts} attempts ({said}); nothing was sent"
            )
        raise errors.ServiceUnavailable(
            f"{self._http.base_url}: no answer in {self._attempts} attempts ({said}); it may have been "
            "carried out: repeat the call with the same request_id to learn"
        )


def _error(answer: httpx.Response) -> errors.C4BError:
    """The library's error that a problem+json tells of."""
    try:
        told: dict[str, Any] = answer.json()
        kind, detail = str(told["type"]), str(told["detail"])
    except (ValueError, KeyError, TypeError):
        return errors.ServiceRefused(f"HTTP {answer.status_code}: {answer.text[:200]}")
    found = errors.named(kind.removeprefix("urn:c4b:problem:"))
    if found is None:
        return errors.ServiceRefused(f"HTTP {answer.status_code}: {detail}")
    if not issubclass(found, errors.InvalidInput):
        return found(detail)
    first: dict[str, Any] = (told.get("errors") or [{}])[0]
    argument = told.get("argument", first.get("argument", "body"))
    remedy = told.get("remedy", first.get("remedy", detail))
    value = told.get("value", first.get("value", "..."))
    return errors.rebuild(found, str(argument), str(value), str(remedy))


def _at(*parts: str) -> str:
    return "/v1/deployments/" + "/".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    if not isinstance(part, str) or not part or part in (".", ".."):
        raise errors.InvalidInput("name or id", part, "must be a text")
    return quote(part, safe="")


def _key(request_id: str | None) -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex if request_id is None else request_id}


def _plain(values: object) -> Any:
    """Arrays as lists; lists as they are, for the service to judge."""
    return values.tolist() if isinstance(values, np.ndarray) else values
