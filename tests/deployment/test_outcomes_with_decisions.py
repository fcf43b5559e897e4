"""Outcomes that are reported with the next decision: one commit, and the same journal as two calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pytest

import c4b
from c4b import Deployment
from c4b.errors import (
    C4BError,
    ContradictoryOutcome,
    ContradictoryRequest,
    InvalidInput,
    NoSafeAction,
    UnknownDecision,
)
from c4b.journal.entries import Entry
from c4b.journal.sql.sql_backend import SqlBackend
from support.shop_world import BASELINE, MODEL, create, entries_of, in_agreement, outcome, rivals, trade


def test_it_decides_as_two_calls_would(any_url: str) -> None:
    rng = np.random.default_rng(5)
    with create(any_url) as together, create(any_url, "other") as apart:
        trade(together, 3)
        trade(apart, 3)
        candidates = rivals(rng)
        a, b = together.decide(candidates, BASELINE), apart.decide(candidates, BASELINE)
        for n in range(30):
            reward, candidates = outcome(candidates, a.action, rng), rivals(rng)
            a = together.decide(candidates, BASELINE, f"r-{n}", outcomes=[(a, reward)])
            apart.observe(b.id, reward)
            b = apart.decide(candidates, BASELINE, f"r-{n}")
            assert (a.action, a.numbers, a.alarm) == (b.action, b.numbers, b.alarm)
            assert np.array_equal(a.details, b.details, equal_nan=True)
        assert together.state().bank == apart.state().bank
        kinds = [entry.kind for entry in entries_of(together)]
        assert kinds == [entry.kind for entry in entries_of(apart)]
        assert in_agreement(together)
        assert together.audit().clean


def test_it_is_one_commit(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    appended: list[int] = []
    original = SqlBackend.append_all_if_head

    def counted(self: SqlBackend, journal: Hashable, entries: Sequence[Entry], hash_: bytes) -> bool:
        appended.append(len(entries))
        return original(self, journal, entries, hash_)

    monkeypatch.setattr(SqlBackend, "append_all_if_head", counted)
    with create(sqlite_url) as dep:
        made = [dep.decide(rivals(np.random.default_rng(n)), BASELINE) for n in range(4)]
        dep.decide([BASELINE], BASELINE, outcomes={each.id: 0.5 for each in made})
        assert appended == [5]
        assert dep.state().observations == 4


@pytest.mark.parametrize("count", [1, 7, 8, 40])
def test_any_number_of_outcomes_and_rounds(any_url: str, count: int) -> None:
    rng = np.random.default_rng(count)
    with create(any_url) as dep:
        made = dep.decide_many([(rivals(rng), BASELINE)] * count)
        more = dep.decide_many([(rivals(rng), BASELINE)] * count, outcomes=[(e, 0.5) for e in made])
        assert len(more) == count
        assert dep.state().observations == count
        assert dep.decide_many([], outcomes={more[0].id: 0.5}) == []
        assert dep.state().observations == count + 1
        assert dep.decide_many([]) == []
        assert in_agreement(dep)


def test_repeating_it_is_harmless(any_url: str) -> None:
    rng = np.random.default_rng(1)
    with create(any_url) as dep, Deployment.open(any_url, "shop") as elsewhere:
        first, candidates = dep.decide(rivals(rng), BASELINE), rivals(rng)
        made = dep.decide(candidates, BASELINE, "r-1", outcomes={first.id: 0.5})
        before = dep.state()
        for each in (dep, elsewhere):
            again = each.decide(candidates, BASELINE, "r-1", outcomes={first.id: 0.5})
            assert (again.id, again.receipt) == (made.id, made.receipt)
            assert each.state() == before
        assert in_agreement(dep)


def test_a_decision_that_is_known_does_not_keep_outcomes_back(any_url: str) -> None:
    rng = np.random.default_rng(2)
    with create(any_url) as dep:
        first, candidates = dep.decide(rivals(rng), BASELINE), rivals(rng)
        made = dep.decide(candidates, BASELINE, "r-1")
        again = dep.decide(candidates, BASELINE, "r-1", outcomes={first.id: 0.5})
        assert again.id == made.id
        assert dep.state().observations == 1
        assert in_agreement(dep)


WRONG: list[tuple[type[C4BError], Callable[[Deployment, str], object]]] = [
    (UnknownDecision, lambda dep, id_: dep.decide([BASELINE], BASELINE, outcomes={"shop-99": 0.5})),
    (ContradictoryOutcome, lambda dep, id_: dep.decide([BASELINE], BASELINE, outcomes={id_: 0.25})),
    (InvalidInput, lambda dep, id_: dep.decide([BASELINE], BASELINE, outcomes={id_: float("nan")})),
    (InvalidInput, lambda dep, id_: dep.decide([BASELINE], BASELINE, outcomes=0.5)),  # type: ignore[arg-type]
    (InvalidInput, lambda dep, id_: dep.decide([[1.0]], BASELINE, outcomes={id_: 0.5})),
    (
        ContradictoryRequest,
        lambda dep, id_: dep.decide([[9.0, 9.0, 9.0]], BASELINE, "known", outcomes={id_: 0.5}),
    ),
]


@pytest.mark.parametrize(("error", "call"), WRONG)
def test_all_or_none(
    any_url: str, error: type[C4BError], call: Callable[[Deployment, str], object]
) -> None:
    with create(any_url) as dep:
        known, open_ = dep.decide([BASELINE], BASELINE, "known"), dep.decide([BASELINE], BASELINE)
        dep.observe(known.id, 0.5)
        before = dep.state()
        with pytest.raises(error):
            call(dep, known.id if error is ContradictoryOutcome else open_.id)
        assert dep.state() == before
        dep.decide([BASELINE], BASELINE, outcomes={open_.id: 0.5})
        assert dep.state().observations == 2
        assert in_agreement(dep)


def test_a_round_without_a_safe_action_records_no_outcome(any_url: str) -> None:
    with Deployment.create(
        any_url, "shop", MODEL, "refresh", reserve=1.0, baseline_nonnegative=False
    ) as dep:
        made = dep.decide([BASELINE], BASELINE)
        before = dep.state()
        with pytest.raises(NoSafeAction):
            dep.decide([[0.0, 0.0, 50.0]], [0.0, 50.0, 0.0], "r-1", outcomes={made.id: 0.5})
        assert dep.state() == before
        dep.observe(made.id, 0.5)
        assert in_agreement(dep)


def test_the_decision_learns_from_them() -> None:
    policy = c4b.Policy("reserve-c4b+", MODEL, reserve=1.0)
    with Deployment.create("memory://learns", "shop", MODEL, "reserve-c4b+", reserve=1.0) as dep:
        a, b = dep.decide([BASELINE], BASELINE), policy.decide([BASELINE], BASELINE)
        policy.observe(b.id, 0.9)
        after = policy.decide([BASELINE], BASELINE)
        assert dep.decide([BASELINE], BASELINE, outcomes={a.id: 0.9}).radius == after.radius


def test_another_writer_in_between(any_url: str) -> None:
    rng = np.random.default_rng(4)
    with create(any_url) as one, Deployment.open(any_url, "shop") as two:
        last = {each: each.decide(rivals(rng), BASELINE) for each in (one, two)}
        for n in range(40):
            each = one if n % 3 else two
            last[each] = each.decide(rivals(rng), BASELINE, f"r-{n}", outcomes=[(last[each], 0.5)])
        assert one.state() == two.state()
        assert one.state().observations == 40
        assert in_agreement(one)
        assert one.audit().clean
