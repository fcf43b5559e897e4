"""Gates in plain Python for tests; ``registered`` makes them policies for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from c4b.policies import (
    CompiledGate,
    Composition,
    Decision,
    Gate,
    GateFactory,
    GateTerms,
    Played,
    Round,
    get,
)
from c4b.policies.catalogue import registry


class WrappedRefresh(Gate):
    """Decides as ``refresh`` does, so that a study with both must find the same numbers twice."""

    def __init__(self, terms: GateTerms) -> None:
        self.terms = terms
        refresh = get("refresh")
        assert isinstance(refresh, Composition)
        self.inner = CompiledGate(refresh, terms)

    def decide(self, round_: Round, decision_id: str) -> Decision:
        return self.inner.decide(round_, decision_id)

    def charge(self, bank: float, played: Played) -> None:
        self.inner.charge(bank, played)

    def amend(
        self, round_number: int, decided: Played, executed: Played, bank: float | None = None
    ) -> None:
        self.inner.amend(round_number, decided, executed, bank)

    def absorb(self, features: np.ndarray, reward: float) -> None:
        self.inner.absorb(features, reward)

    def snapshot(self) -> dict[str, np.ndarray]:
        return self.inner.snapshot()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.inner.restore(arrays)

    def covers(self, theta: np.ndarray) -> bool | None:
        return self.inner.covers(theta)

    bank = property(lambda self: self.inner.bank)
    rounds = property(lambda self: self.inner.rounds)


class Silent(WrappedRefresh):
    def decide(self, round_: Round, decision_id: str) -> Decision:
        decision = self.inner.decide(round_, decision_id)
        unknown = np.full_like(decision.details, np.nan)
        return decision._replace(certificate=np.nan, ucb=np.nan, radius=np.nan, details=unknown)

    def covers(self, theta: np.ndarray) -> bool | None:
        return None


class First(Silent):
    def decide(self, round_: Round, decision_id: str) -> Decision:
        decision = super().decide(round_, decision_id)
        return decision._replace(action=0 if len(round_.candidates) else None, bank=np.nan)

    bank = property(lambda self: np.nan)


class KnowsTheMean(First):
    def decide(self, round_: Round, decision_id: str) -> Decision:
        decision = super().decide(round_, decision_id)
        return decision if round_.baseline_mean == 1.0 else decision._replace(action=None)


class Broken(Exception):
    pass


ANSWERS = {
    "raises": None,
    "no decision": "baseline",
    "too large": 99,
    "negative": -2,
    "text": "0",
    "boolean": True,
}


def _broken(answer: Any) -> type[Gate]:
    class Misbehaves(WrappedRefresh):
        def decide(self, round_: Round, decision_id: str) -> Decision:
            decision = super().decide(round_, decision_id)
            if answer is None:
                raise Broken("on purpose\nsecond line")
            changed: Any = "baseline" if answer == "baseline" else decision._replace(action=answer)
            return changed  # type: ignore[no-any-return]  # what no gate should answer

    return Misbehaves


GATES = (
    GateFactory("wrapped-refresh", WrappedRefresh, "refresh behind the interface of a gate in Python"),
    GateFactory("silent", Silent, "wrapped-refresh that says what it plays and its bank, nothing else"),
    GateFactory("first", First, "always the first candidate, certifies nothing", gated=False),
    GateFactory(
        "knows-the-mean",
        KnowsTheMean,
        "plays a candidate if the mean it is given is 1",
        needs=frozenset({"baseline_mean"}),
    ),
    *(GateFactory(name, _broken(answer), "answers what no gate may") for name, answer in ANSWERS.items()),
)


@contextmanager
def registered() -> Iterator[None]:
    """Policies of these names exist inside; other tests list all policies and must not meet them."""
    with pytest.MonkeyPatch.context() as patch:
        for factory in GATES:
            patch.setitem(registry._REGISTRY, factory.name, factory)
        yield
