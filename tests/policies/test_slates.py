"""Slates: certificates on sums of items, learning from items or from sums, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c4b
from c4b.errors import ContradictoryOutcome, InvalidInput
from support.any_world import COMPOSITIONS

MODEL = c4b.LinearModel(dim=3, noise=0.1, norm_bound=1.0)
RNG = np.random.default_rng(5)
SLATES = np.concatenate([np.ones((4, 2, 1)), RNG.normal(size=(4, 2, 2)) / 4.0], axis=2)
BASELINE = np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.0]])
ROWS, ROW = SLATES[:, 0] + SLATES[:, 1], BASELINE[0] + BASELINE[1]
LINEAR = [name for name in COMPOSITIONS if name != "clicks"]


def opened(name: str = "refresh", model: c4b.LinearModel = MODEL, **terms: Any) -> c4b.Policy:
    return c4b.Policy(name, model, alpha=0.2, reserve=2.0, **terms)


def told(policy: c4b.Policy) -> dict[str, float]:
    return {"baseline_mean": 1.0} if "baseline_mean" in policy.spec.needs else {}


@pytest.mark.parametrize("name", LINEAR)
def test_a_slate_is_certified_as_the_sum_of_its_items(name: str) -> None:
    ours, plain = opened(name), opened(name)
    for _ in range(3):
        slate = ours.decide(SLATES.tolist(), BASELINE.tolist(), **told(ours))
        row = plain.decide(ROWS, ROW, **told(ours))
        assert slate.action == row.action
        assert np.array_equal(slate.numbers, row.numbers, equal_nan=True)
        assert np.array_equal(slate.details, row.details, equal_nan=True)


@pytest.mark.parametrize("name", ["refresh", "clucb-plays", "reserve-c4b+"])
def test_outcomes_by_item_are_rows_of_their_own(name: str) -> None:
    ours = opened(name)
    decision = ours.decide(SLATES, BASELINE, **told(ours))
    ours.observe(decision.id, [0.4, 0.7])
    evidence = c4b.Evidence(ours.evidence.model)
    items = BASELINE if decision.action is None else SLATES[decision.action]
    if not (name == "clucb-plays" and decision.action is None):
        evidence.absorb(items[0], 0.4)
        evidence.absorb(items[1], 0.7)
    assert np.array_equal(ours.evidence.flat, evidence.flat)


def test_one_outcome_of_two_items_has_the_noise_of_the_root_of_two() -> None:
    ours = opened()
    decision = ours.decide(SLATES[:0], BASELINE)
    ours.observe(decision.id, 1.1)
    evidence = c4b.Evidence(ours.evidence.model)
    evidence.absorb(ROW / np.sqrt(2.0), 1.1 / np.sqrt(2.0))
    assert np.array_equal(ours.evidence.flat, evidence.flat)


def test_items_say_more_than_their_sum() -> None:
    by_item, by_sum = opened(), opened()
    for policy, outcome in ((by_item, [0.5, 0.6]), (by_sum, 1.1)):
        for _ in range(20):
            policy.observe(policy.decide(SLATES[:0], BASELINE).id, outcome)
    gap = BASELINE[1] - BASELINE[0]
    width = [p.evidence.upper(gap) - p.evidence.lower(gap) for p in (by_item, by_sum)]
    assert width[0] < 0.9 * width[1]


@pytest.mark.parametrize("outcome", [[0.4, 0.7], 1.1])
def test_realised_rewards_count_every_item(outcome: Any) -> None:
    """CLUCB2 earns sum Y less a width for as many outcomes as there are items."""
    ours = c4b.Policy("clucb2", MODEL, alpha=0.2, reserve=50.0)
    for _ in range(5):
        decision = ours.decide(SLATES, BASELINE, baseline_mean=0.4)
        assert decision.action is not None
        ours.observe(decision.id, outcome)
    arrays = ours.gate.snapshot()["earned"]
    assert arrays[2] == 10.0
    assert arrays[3] + arrays[4] == pytest.approx(5.5)


def test_open_slates_survive_a_file(tmp_path: Path) -> None:
    ours = opened()
    ids = [ours.decide(SLATES, BASELINE).id for _ in range(3)]
    ours.decide(ROWS, ROW)
    ours.observe(ids[1], [0.3, 0.2])
    ours.observe(ids[2], 0.6)
    ours.save(tmp_path / "policy.npz")
    again = c4b.Policy.load(tmp_path / "policy.npz")
    with pytest.raises(ContradictoryOutcome):
        again.observe(ids[1], [0.2, 0.3])
    for policy in (ours, again):
        policy.observe(ids[0], [0.5, 0.5])
        policy.observe(ids[0], [0.5, 0.5])
        with pytest.raises(ContradictoryOutcome):
            policy.observe(ids[0], [0.5, 0.6])
    assert np.array_equal(ours.evidence.flat, again.evidence.flat)


def test_another_slate_was_executed() -> None:
    ours, plain = opened(), opened()
    decision, row = ours.decide(SLATES, BASELINE), plain.decide(ROWS, ROW)
    ours.executed(decision.id, SLATES[3])
    plain.executed(row.id, ROWS[3])
    assert ours.bank == plain.bank
    ours.observe(decision.id, [0.1, 0.2])
    assert ours.gate.observations == 2
    swapped = ours.decide(SLATES[:0], BASELINE)
    ours.executed(swapped.id, BASELINE[::-1])  # the same sum, so the baseline; other items
    before = ours.evidence.flat.copy()
    ours.observe(swapped.id, [0.9, 0.1])
    evidence = c4b.Evidence(ours.evidence.model)
    evidence.flat[:] = before
    evidence.absorb(BASELINE[1], 0.9)
    evidence.absorb(BASELINE[0], 0.1)
    assert np.array_equal(ours.evidence.flat, evidence.flat)


REFUSED = {
    "too few outcomes": (lambda p, id_: p.observe(id_, [0.1]), "reward"),
    "outcomes of text": (lambda p, id_: p.observe(id_, ["a", "b"]), "reward[0]"),
    "no outcomes": (lambda p, id_: p.observe(id_, []), "reward"),
    "a row for a slate": (lambda p, id_: p.executed(id_, [1.0, 0.0, 0.0]), "features"),
    "a baseline of one row": (lambda p, id_: p.decide(SLATES, BASELINE[0]), "baseline"),
    "no items": (lambda p, id_: p.decide(SLATES[:, :0], BASELINE), "candidates"),
    "wrong width": (lambda p, id_: p.decide(SLATES[:, :, :2], BASELINE), "candidates"),
    "ragged": (lambda p, id_: p.decide([[[1.0, 0.0, 0.0]], BASELINE.tolist()], BASELINE), "candidates"),
    "not finite": (lambda p, id_: p.decide(SLATES * np.nan, BASELINE), "candidates"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(what: str) -> None:
    call, argument = REFUSED[what]
    policy = opened()
    id_ = policy.decide(SLATES, BASELINE).id
    before = {name: array.copy() for name, array in policy.gate.snapshot().items()}
    with pytest.raises(InvalidInput) as caught:
        call(policy, id_)
    assert caught.value.argument.startswith(argument)
    assert all(np.array_equal(before[n], a) for n, a in policy.gate.snapshot().items())
    assert policy.pending == (id_,)


@pytest.mark.parametrize(
    "policy",
    [
        lambda: opened(model=c4b.LinearModel(3, 0.1, 1.0, misspecification=0.1)),
        lambda: opened("clicks", c4b.LinearModel.bounded(3, 1.0)),
        lambda: opened("c-squarecb", seed=1),
    ],
    ids=["misspecified", "bounded", "a gate that knows no slates"],
)
def test_where_nothing_is_proved_slates_are_refused(policy: Any) -> None:
    made = policy()
    with pytest.raises(InvalidInput, match="slates"):
        made.decide(SLATES, BASELINE, **told(made))
    assert made.rounds == 0


def test_a_single_action_has_one_outcome() -> None:
    policy = opened()
    id_ = policy.decide(ROWS, ROW).id
    with pytest.raises(InvalidInput, match="one number"):
        policy.observe(id_, [0.4, 0.7])
    with pytest.raises(InvalidInput, match="one row"):
        policy.executed(id_, BASELINE)


def test_the_reward_of_one_item_is_one_number() -> None:
    policy = opened()
    made = policy.decide(SLATES[:, :1], BASELINE[:1])
    policy.observe_many([(made.id, [0.5]), (made.id, 0.5)])
    with pytest.raises(ContradictoryOutcome):
        policy.observe_many([(made.id, [0.5]), (made.id, 0.6)])
