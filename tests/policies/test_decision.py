"""What a decision says about itself."""

import json
import math

import numpy as np
import pytest

import c4b
from c4b.policies.rounds.decision import Receipt
from support.evidence_internals import inside
from support.oracle_comparison import GATED, METHODS

POOL, BASELINE = [[0.5], [1.0], [1.1]], [1.0]


def decide(name: str, pool: object = POOL, **kwargs: float) -> c4b.Decision:
    policy = c4b.Policy(name, c4b.LinearModel(1, 0.1, 1.0, ridge=1.0), alpha=0.1, **kwargs)
    policy.learn([[1.0]] * 99, [1.0] * 99)
    return policy.decide(pool, BASELINE)


def test_the_explanation_of_a_played_candidate() -> None:
    decision = decide("contrast")
    explanation = decision.explain()
    assert [c.admissible for c in explanation] == [False, True, True]
    assert [c.chosen for c in explanation] == [False, False, True]
    for c, x in zip(explanation, (0.5, 1.0, 1.1), strict=True):
        assert c.margin == c.joint  # the bank was 0
        assert c.penalty == c.joint - c.separate >= 0.0
        # d = 1 and x > 0: the penalty is W (x + 0.9 - |x - 0.9|), half the baseline's width each
        width = (decision.ucb - 1.1 * 0.99) / 1.1
        assert c.penalty == pytest.approx(width * (x + 0.9 - abs(x - 0.9)), rel=1e-9)
    assert "Candidate 2 was played: admissible (2 of 3 were), bank 0.0000 -> 0.1715" in str(explanation)


def test_a_recorded_decision_differs_in_id_and_receipt_only() -> None:
    decision, receipt = decide("contrast"), Receipt(3, "00ff")
    recorded = decision.recorded("shop-3", receipt)
    assert tuple(recorded) == tuple(decision._replace(id="shop-3", receipt=receipt))
    assert type(recorded) is c4b.Decision


def test_the_explanation_of_a_fallback_says_what_is_lacking() -> None:
    explanation = decide("separate").explain()
    assert "none of 3 candidates is admissible; candidate 2 comes closest and is short by 0.0671" in str(
        explanation
    )
    assert not any(c.chosen for c in explanation)


def test_the_explanation_without_candidates_or_gate_or_with_an_untested_rest() -> None:
    assert "there were no candidates" in decide("refresh", []).explain().summary
    assert "no gate" in decide("linucb").explain().summary
    policy = c4b.Policy("revalue", c4b.LinearModel(2, 0.1, 1.0, ridge=1.0), alpha=0.1)
    policy.learn([[1.0, 0.0]] * 99, [1.0] * 99)
    proposal = policy.decide([[1.2, 1.0], [1.2, 0.0]], [1.0, 0.0])
    assert "proposal is not admissible (1 of 2 candidates are)" in proposal.explain().summary


@pytest.mark.parametrize("name", METHODS)
def test_plain_data_is_valid_json(name: str) -> None:
    decision = decide(name)
    text = json.dumps(decision.explain().to_dict(), allow_nan=False)
    told = json.loads(text)
    assert told["action"] == decision.action
    assert len(told["candidates"]) == 3
    assert (told["bank"] is None) == (name == "linucb")


@pytest.mark.parametrize("name", GATED)
def test_banks_before_and_after(name: str) -> None:
    decision = decide(name, reserve=0.5)
    assert decision.bank_before == 0.5
    assert decision.policy == name
    assert "candidate 2" in repr(decision)
    assert repr(decision.explain()).startswith("Explanation('Candidate 2 was played")
    assert decision


def test_a_decision_does_not_change_later() -> None:
    """Frozen: neither the caller's arrays nor later rounds reach into it, nor it into the policy."""
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0), reserve=5.0)
    pool, baseline = np.array([[1.0], [2.0]]), np.array([1.0])
    decision = policy.decide(pool, baseline)
    said = str(decision.explain())
    pool[:], baseline[:] = 50.0, -50.0
    policy.observe(decision.id, 0.5)
    policy.decide([[3.0]], [1.0])
    assert str(decision.explain()) == said
    assert inside(policy.evidence).gram[0, 0] == 4.0  # absorbed x = 2, as decided
    decision.details[:] = math.nan
    policy.prefix[:] = math.nan
    policy.estimate[:] = math.nan
    assert math.isfinite(policy.decide([[3.0]], [1.0]).bank)


def test_ids_are_unique_across_policies() -> None:
    ids = [decide("refresh").id for _ in range(50)]
    assert len(set(ids)) == 50


def test_repr_shows_the_essentials() -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(1, 0.1, 1.0), reserve=2.0)
    assert repr(policy) == "Policy('refresh', alpha=0.05, reserve=2.0, rounds=0, bank=2, pending=0)"


def test_why_an_admissible_candidate_was_not_played() -> None:
    """Worse than the baseline, or scored lower; where the score is the UCB the words say so."""
    decision = decide("reserve-c4b+", [[0.95], [1.1], [1.2], [0.5]], reserve=0.2)
    reports = list(decision.explain())
    assert [c.admissible for c in reports] == [True, True, True, False]
    assert [c.reason for c in reports] == ["has a lower score"] * 2 + ["", ""]
    passed = decide("reserve-c4b+", [[0.95], [0.98], [0.5]], reserve=0.2).explain()
    assert [c.reason for c in passed] == ["promises too little compared with the baseline"] * 2 + [""]
    assert "no admissible candidate (2 of 3 are admissible) promises more" in passed.summary
    assert [c.reason for c in decide("refresh", reserve=2.0).explain()] == ["has a lower UCB"] * 2 + [""]
    parts = c4b.Composition("x", "joint", "refresh", "filter", "", score="mean")
    policy = c4b.Policy(parts, c4b.LinearModel(1, 0.1, 1.0, ridge=1.0), alpha=0.1)
    policy.learn([[1.0]] * 99, [1.0] * 99)
    assert [c.reason for c in policy.decide(POOL, BASELINE).explain()] == ["", "has a lower score", ""]


def test_a_thrifty_choice_says_what_it_saves() -> None:
    """Both are admissible; the second has the higher score and is less certain."""
    parts = c4b.Composition("x", "joint", "refresh", "thrifty", "")
    policy = c4b.Policy(parts, c4b.LinearModel(2, 0.1, 2.0, ridge=1.0), alpha=0.1, reserve=1.3)
    policy.learn([[1.0, 0.0]] * 99, [1.0] * 99)
    explanation = policy.decide([[1.05, 0.0], [1.05, 0.5]], [1.0, 0.0]).explain()
    assert [c.reason for c in explanation] == ["", "would leave less in the bank"]


def test_equality_compares_content() -> None:
    policy = c4b.Policy("refresh", c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0), reserve=1.0)
    one = policy.decide([[1.0, 0.1]], [1.0, 0.0])
    same = one._replace(details=one.details.copy())
    others = [
        one._replace(details=one.details + 1.0),
        one._replace(bank=one.bank + 1.0),
        None,
        tuple(one),
    ]
    assert one == same
    assert not one != same  # noqa: SIM202
    assert hash(one) == hash(same)
    for other in others:
        assert one != other
        assert not one == other  # noqa: SIM201
    assert one._replace(bank=float("nan")) == one._replace(bank=float("nan"))
