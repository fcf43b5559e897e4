"""A worker that seems to be alone computes before it locks: what others wrote meanwhile still counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from c4b import Deployment
from c4b.deployment.transactions import transactor
from c4b.errors import ContradictoryOutcome, NoSafeAction, SchemaVersion, StoreUnavailable
from c4b.journal.backend import Unacknowledged
from c4b.journal.sql.sql_backend import SqlBackend
from c4b.journal.sql.sql_store import Store
from support.shop_world import BASELINE, create, in_agreement, outcome, rivals, sql, trade


def alone(dep: Deployment, seed: int = 50) -> None:
    """Work until this object computes ahead of the lock."""
    while dep._transactor._alone < dep._transactor._trust:
        trade(dep, 1, seed=seed)


def test_being_overtaken(any_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactor, "DISTRUST", 3)
    rng = np.random.default_rng(0)
    with create(any_url, snapshot_every=25) as one, Deployment.open(any_url, "shop") as two:
        for n in range(30):
            alone(one)
            candidates = rivals(rng)
            other = two.decide(candidates, BASELINE)  # ``one`` does not know
            if n % 3 == 0:
                made = [one.decide(candidates, BASELINE, request_id=f"r{n}")]
            elif n % 3 == 1:
                made = one.decide_many([(candidates, BASELINE)] * 2)
            else:
                one.observe(other.id, 0.5)  # unknown here, known under the lock
                made = []
            for each in made:
                assert each.bank_before >= 0
                one.observe(each.id, outcome(candidates, each.action, rng))
        banks = [(r.decision.bank_before, r.decision.bank) for r in one.decisions(limit=10**6)]
        assert all(a[1] == b[0] for a, b in pairwise(banks))
        assert one.state() == two.state()
        assert in_agreement(one)
        assert one.audit().clean


def test_an_outcome_that_overtakes(any_url: str) -> None:
    with create(any_url) as one, Deployment.open(any_url, "shop") as two:
        made = [one.decide([], BASELINE) for _ in range(4)]
        alone(one)
        two.observe(made[0].id, 0.5)
        one.observe(made[1].id, 0.4)  # computed from a set without the other outcome
        assert one._transactor._trust == transactor.DISTRUST
        two.observe(made[2].id, 0.5)
        with pytest.raises(ContradictoryOutcome):
            one.observe(made[2].id, 0.6)
        one.observe(made[2].id, 0.5)
        assert in_agreement(one)
        assert one.audit().clean


def test_errors_ahead_of_the_lock_are_confirmed_under_it(any_url: str) -> None:
    with create(any_url, reserve=0.2, baseline_nonnegative=False) as dep:
        for _ in range(10):
            dep.decide([], 0.001 * BASELINE)
        before = dep.state()
        assert dep._transactor._alone >= dep._transactor._trust
        with pytest.raises(NoSafeAction):
            dep.decide([], 100.0 * BASELINE)
        with pytest.raises(NoSafeAction):
            dep.decide_many([([], 0.001 * BASELINE), ([], 100.0 * BASELINE)])
        assert dep.state() == before
        assert in_agreement(dep)


def test_one_statement_a_call(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(postgres_url) as dep:
        alone(dep)
        monkeypatch.setattr(SqlBackend, "writing", lambda *_, **__: pytest.fail("a second message"))
        for n in range(5):
            dep.observe(dep.decide(rivals(np.random.default_rng(n)), BASELINE).id, 0.5)


def test_a_schema_that_changes_under_a_worker_that_is_alone(url: str) -> None:
    with create(url) as dep:
        alone(dep)
        sql(url, "UPDATE c4b_schema SET version = 99")
        with pytest.raises(SchemaVersion):
            dep.decide([], BASELINE)
        sql(url, "UPDATE c4b_schema SET version = 2")
        trade(dep, 3)
        assert in_agreement(dep)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_answer(postgres_url: str, monkeypatch: pytest.MonkeyPatch, arrived: bool) -> None:
    """The statement was executed or it was not; its acknowledgement is lost either way."""
    at_once = Store.at_once

    def silent(self: Store, statement: Any, values: dict[str, Any]) -> bool:
        if arrived:
            assert at_once(self, statement, values)
        raise Unacknowledged("silence")

    with create(postgres_url) as dep:

        def unheard(call: Any) -> Any:
            alone(dep)
            with monkeypatch.context() as patch:
                patch.setattr(Store, "at_once", silent)
                return call()

        before = dep.state().rounds
        first = unheard(lambda: dep.decide([], BASELINE, request_id="a"))
        assert dep.decide([], BASELINE, request_id="a") == first
        unheard(lambda: dep.observe(first.id, 0.5))
        assert dep.record(first.id).reward == 0.5
        extra = dep.state().rounds
        if arrived:  # and nothing tells whose it is
            with pytest.raises(StoreUnavailable, match="silence"):
                unheard(lambda: dep.decide([], BASELINE))
        else:
            unheard(lambda: dep.decide([], BASELINE))
        assert dep.state().rounds >= extra + 1 > before
        ids = [r.request_id for r in dep.decisions(limit=10**6)]
        assert ids.count("a") == 1
        assert in_agreement(dep)
        assert dep.audit().clean
