"""Ctrl-C in the middle of a call: the same object goes on from what the journal has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c4b import Deployment
from c4b.deployment.summary import running_totals
from c4b.deployment.transactions.state import State
from c4b.journal.sql.sql_transaction import Transaction
from support.shop_world import BASELINE, create, in_agreement, rivals, seen, trade


def alone(dep: Deployment) -> None:
    """Work until this object computes ahead of the lock."""
    while dep._transactor._alone < dep._transactor._trust:
        trade(dep, 1)


@pytest.mark.parametrize("with_outcomes", [False, True])
def test_while_a_snapshot_is_made(
    any_url: str, monkeypatch: pytest.MonkeyPatch, with_outcomes: bool
) -> None:
    """What has come together is added up for it, and was counted twice after half of that."""
    original, added = running_totals.add_up, []

    def half(*sums: Any) -> None:
        original(*sums)
        added.append(sums)
        raise KeyboardInterrupt

    with create(any_url, snapshot_every=1) as dep:
        alone(dep)
        last = dep.decide(rivals(np.random.default_rng(0)), BASELINE)
        outcomes = {last.id: 0.5} if with_outcomes else None
        with monkeypatch.context() as patch:
            patch.setattr(running_totals, "add_up", half)
            with pytest.raises(KeyboardInterrupt):
                dep.decide([BASELINE], BASELINE, outcomes=outcomes)
        assert len(added) == 1
        trade(dep, 3)
        assert in_agreement(dep)
        assert dep.audit(sample=0).clean


@pytest.mark.parametrize("is_alone", [False, True])
def test_while_a_decision_is_taken_back(
    any_url: str, monkeypatch: pytest.MonkeyPatch, is_alone: bool
) -> None:
    """It turned out that its request id is known."""

    def interrupted(self: State, mark: object) -> None:
        raise KeyboardInterrupt

    with create(any_url) as dep:
        first = dep.decide([BASELINE], BASELINE, "r-1")
        if is_alone:
            alone(dep)
        else:
            dep._transactor._alone = 0
        seen(dep).recent._numbers.clear()  # as after many others
        with monkeypatch.context() as patch:
            patch.setattr(State, "undo", interrupted)
            with pytest.raises(KeyboardInterrupt):
                dep.decide([BASELINE], BASELINE, "r-1")
        assert dep.decide([BASELINE], BASELINE, "r-1").id == first.id
        trade(dep, 3)
        assert in_agreement(dep)


def test_while_an_answer_is_read(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps the exception, as interactive sessions do, does not keep the past with it."""

    def interrupted(self: Transaction, statement: Any, values: dict[str, Any]) -> Any:
        self.run(statement, values)
        raise KeyboardInterrupt

    with create(sqlite_url) as dep:
        trade(dep, 3)
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "one", interrupted)
            with pytest.raises(KeyboardInterrupt) as kept:
                dep.state()
        made = dep.decide([BASELINE], BASELINE)
        assert dep.record(made.id).decision == made
        assert kept.value.__traceback__ is not None
        assert in_agreement(dep)
