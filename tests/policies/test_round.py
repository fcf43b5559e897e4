"""One frozen value enters a decision, however it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import c4b
from c4b import errors
from c4b.policies.rounds.round import checked_round

MODEL = c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0)
POOL, BASELINE = [[1.0, 0.1], [1.0, -0.1]], [1.0, 0.0]


def policy() -> c4b.Policy:
    made = c4b.Policy("refresh", MODEL, reserve=1.0)
    made.learn([BASELINE] * 5, [0.5] * 5)
    return made


def test_a_round_and_its_parts_give_the_same_decision() -> None:
    one, other, third = policy(), policy(), policy()
    given = c4b.Round(POOL, BASELINE, labels=["up", "down"], context={"user": 1})
    decisions = [
        one.decide(POOL, BASELINE),
        other.decide(given),
        *third.decide_many([given])[:1],
    ]
    assert len({(d.action, *d.numbers) for d in decisions}) == 1
    assert one.decide_many([(POOL, BASELINE)])[0].action == other.decide_many([given])[0].action


def test_a_round_is_frozen() -> None:
    with pytest.raises(AttributeError):
        c4b.Round(POOL, BASELINE).baseline = [0.0, 0.0]  # type: ignore[misc]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("candidates", {"candidates": [[1.0]]}),
    ("baseline", {"baseline": [1.0]}),
    ("baseline_mean", {"baseline_mean": 0.5}),
    ("labels", {"labels": ["only one"]}),
    ("labels", {"labels": "ab"}),
    ("labels", {"labels": [1, 2]}),
]


@pytest.mark.parametrize(("argument", "change"), BAD)
def test_bad_parts_are_named_and_change_nothing(argument: str, change: dict[str, Any]) -> None:
    made = policy()
    before = made.state()[1]["ledger"].tobytes()
    given = c4b.Round(POOL, BASELINE)._replace(**change)
    with pytest.raises(errors.InvalidInput) as caught:
        made.decide(given)
    assert caught.value.argument == argument
    with pytest.raises(errors.InvalidInput) as caught:
        made.decide_many([(POOL, BASELINE), given])
    assert caught.value.argument == f"rounds[1].{argument}"
    assert (made.rounds, made.state()[1]["ledger"].tobytes()) == (0, before)


def test_a_gate_that_needs_the_mean_gets_it_and_refuses_a_round_without() -> None:
    given = c4b.Round(POOL, BASELINE, baseline_mean=np.float64(0.5))
    assert checked_round(given, 2, {"baseline_mean"}).baseline_mean == 0.5
    for mean in (None, float("nan"), "0.5"):
        with pytest.raises(errors.InvalidInput, match="baseline_mean = "):
            checked_round(given._replace(baseline_mean=mean), 2, {"baseline_mean"})
