"""A hopeful choice in a journal: what it tries is recomputed by the audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import c4b
from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.audit.recomputed.recomputed_hope import (
    Hope,
    check_hope,
    leeway_left,
    possible_aims,
    what_is_cheap,
    what_is_soon,
)
from c4b.policies import CandidateField
from support.forgeries import Forgery, another, only_one, play
from support.shop_world import create, forge

ITEMS, INCUMBENT = np.diag([0.0, 1.0, 0.8])[1:], np.array([1.0, 0.0, 0.0])


def test_what_is_tried_without_a_promise_is_audited(sqlite_url: str) -> None:
    """The incumbent is worth .3. Nothing is known of two items, so that neither promises more."""
    with create(sqlite_url, policy="reserve-c4b+", reserve=5.0) as dep:
        dep.learn([INCUMBENT] * 20, [0.3] * 20)
        tried = []
        for _ in range(40):
            made = dep.decide(ITEMS, INCUMBENT)
            scores = made.details[CandidateField.SCORE].tolist()
            if made.action == 0 and scores[1] == -np.inf:
                assert made.receipt is not None
                tried.append(made.receipt.seq)
                assert "passed over" in dep.explain(made.id).because
            dep.observe(made.id, 0.3 if made.action is None else 0.25)
        assert tried
        assert dep.audit(sample=0).clean
        forge(dep, tried[0], only_one)
        report = dep.audit(sample=0)
        assert report.entry == tried[0]
        assert "could be better" in str(report.finding)


def test_belief_that_hangs_on_rounding_is_no_finding(sqlite_url: str) -> None:
    """sigma is 1e-7 of S: what is believed where there are no data is mostly rounding, and so is whether
    the best-scored candidate promises more than the baseline."""
    rng = np.random.default_rng(50)
    theta, baseline = 0.3 * rng.normal(size=6), rng.normal(size=6)
    baseline *= np.sign(baseline @ theta)
    model = c4b.LinearModel(6, 2e-7, 2.0)
    with c4b.Deployment.create(sqlite_url, "shop", model, "reserve-c4b+", alpha=0.1) as dep:
        dep.learn(np.tile(baseline, (3000, 1)), np.full(3000, baseline @ theta))
        for _ in range(6):
            pool = baseline + rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-2.0, 0.0, size=(6, 1))
            made = dep.decide(pool, baseline)
            played = baseline if made.action is None else pool[made.action]
            dep.observe(made.id, float(played @ theta))
        report = dep.audit(sample=0)
        assert report.clean, report


def hope_of(left: float, could: Array, cheap: NDArray[np.bool_], scores: Array) -> Hope:
    """Nothing takes too long to learn, and what is not cheap is dear."""
    soon = np.ones(len(could), bool)
    return Hope(left, 1e-6, could, could, cheap, ~cheap, soon, ~soon, scores, 0.5)


@pytest.mark.parametrize(
    ("left", "tried", "finding"),
    [
        (1.0, 1, None),
        (1.0, None, "candidate 1 could be better"),
        (1.0, 2, "candidate 1 could be better, too"),
        (-1.0, None, None),
        (-1.0, 1, "too much seems lost, or gained"),
        (1e-9, None, None),
        (-1e-9, 1, None),
    ],
)
def test_the_rule_of_hope(left: float, tried: int | None, finding: str | None) -> None:
    """Candidate 0 could not be better, 3 is not admissible, 1 has a higher score than 2."""
    could, scores = np.array([-0.1, 0.2, 0.3, 0.9]), np.array([0.9, 0.8, 0.7, 0.95])
    margins = np.array([1.0, 1.0, 1.0, -1.0])
    passed_over = np.arange(4) != (9 if tried is None else tried)
    passed_over[3] = False
    hope = hope_of(left, could, np.zeros(4, bool), scores)
    if finding is None:
        check_hope(hope, margins, passed_over, tried, 1e-6)
        return
    with pytest.raises(Finding, match=finding):
        check_hope(hope, margins, passed_over, tried, 1e-6)


def test_what_takes_too_long_to_learn_is_not_tried_in_hope() -> None:
    """Candidate 0 takes too long, 1 does not, of 2 rounding decides."""
    soon, late = np.array([False, True, False]), np.array([True, False, False])
    scores, margins = np.array([0.9, 0.8, 0.7]), np.ones(3)

    def check(tried: int | None, left: float = 1.0) -> None:
        hope = hope_of(left, np.ones(3), np.zeros(3, bool), scores)._replace(soon=soon, late=late)
        passed_over = np.arange(3) != (9 if tried is None else tried)
        check_hope(hope, margins, passed_over, tried, 1e-6)

    check(1)
    with pytest.raises(Finding, match=r"candidate 0, .* too long to learn whether it is better"):
        check(0)
    with pytest.raises(Finding, match="tries candidate 2, though candidate 1"):
        check(2)
    with pytest.raises(Finding, match="candidate 1 could be better"):
        check(None)
    check(None, -1.0)
    check(0, 1e-9)


@pytest.mark.parametrize(("gain", "sooner", "later"), [(3.0, True, False), (0.5, False, True)])
def test_plays_that_learning_takes(gain: float, sooner: bool, later: bool) -> None:
    """With sigma 1 and two features: two plays for a possible gain of 3; 72 for one of .5."""
    view = np.array([-1.0]), np.array([1.0 + gain])
    found = what_is_soon(10.0, view, (np.array([2]), 1.0), np.array([1e-9]))
    assert [bool(each[0]) for each in found] == [sooner, later]
    exactly = 2.0 * max(9.0 / gain**2, 1.0)
    assert not np.any(what_is_soon(exactly, view, (np.array([2]), 1.0), np.array([1e-6])))


def test_the_thrifty_come_first() -> None:
    hope = hope_of(1.0, np.ones(2), np.zeros(2, bool), np.array([0.9, 0.8]))
    check_hope(hope, np.array([0.4, 0.6]), np.array([True, False]), 1, 1e-6)
    with pytest.raises(Finding, match="higher score"):
        check_hope(hope, np.array([0.6, 0.6]), np.array([True, False]), 1, 1e-6)


def test_what_seems_lost_or_gained() -> None:
    """100 rounds, alpha .1: leeway .75, so that 3 of 10 baseline rewards may seem lost."""
    left, size = leeway_left(np.array([7.5, 1.0]), 0.1, 100, 4.0, 0.25)
    assert left == pytest.approx(0.5)
    assert leeway_left(np.array([13.5, 1.0]), 0.1, 100, 4.0, 0.25)[0] == pytest.approx(-0.5)
    assert size == pytest.approx(18.5)
    assert leeway_left(np.array([0.0, 1.0]), 0.1, 6, 4.0, 0.25)[0] == -np.inf


def test_what_is_cheap_may_be_tried_without_hope() -> None:
    """Candidate 0 is cheap, 1 surely dear, of 2 rounding decides."""
    cheap, dear = np.array([True, False, False]), np.array([False, True, False])
    scores, margins = np.array([0.7, 0.9, 0.8]), np.ones(3)

    def check(tried: int | None) -> None:
        hope = hope_of(-1.0, np.ones(3), cheap, scores)._replace(dear=dear)
        passed_over = np.arange(3) != (9 if tried is None else tried)
        check_hope(hope, margins, passed_over, tried, 1e-6)

    check(0)
    check(2)
    with pytest.raises(Finding, match=r"candidate 0 could be better .* learning about it is cheap"):
        check(None)
    with pytest.raises(Finding, match="too much seems lost, or gained"):
        check(1)


def test_what_learning_costs() -> None:
    """Two features, sigma .1, 100 rounds at alpha .02 of 1 granted 2: half of it, less .1, is .9.

    Candidate 0 may gain .4 and seems to lose .1: 2 plays cost .2. Candidate 1 may gain .05 and seems to
    lose .05: 2 (.3 / .05)^2 = 72 plays cost 3.6. Candidate 2 cannot gain.
    """
    view = np.array([-0.1, -0.05, -0.15]), np.array([0.5, 0.1, 0.075])  # seems to gain; could gain more
    rule, rounding = (np.full(3, 2), 0.1), (1e-9, np.full(3, 1e-9))
    cheap, dear = what_is_cheap(np.array([2.1, 1.0]), (2.0, 1.0), view, rule, rounding)
    assert cheap.tolist() == [True, False, False]
    assert dear.tolist() == [False, True, True]
    cheap, dear = what_is_cheap(np.array([3.1, 1.0]), (2.0, 1.0), view, rule, rounding)
    assert not cheap.any()
    assert dear.all()
    cheap, dear = what_is_cheap(np.array([2.8, 1.0]), (2.0, 1.0), view, rule, rounding)
    assert not cheap.any()  # .2 are left: rounding decides
    assert dear.tolist() == [False, True, True]
    rule = np.array([5, 2, 2]), 0.1
    cheap, dear = what_is_cheap(np.array([2.1, 1.0]), (2.0, 0.5), view, rule, rounding)
    assert not cheap.any()  # five features cost .5, and .4 are left
    assert dear.all()


@pytest.mark.parametrize(
    ("left", "cheap", "promise", "within", "second", "expected"),
    [
        (-1.0, False, 0.1, 1.0, 0.5, (0.2, 0.2)),  # it promises more
        (1.0, False, -0.1, 1.0, 0.5, (0.2, 0.2)),  # it would be hoped for
        (-1.0, True, -0.1, 1.0, 0.5, (0.2, 0.2)),  # learning about it is cheap
        (-1.0, False, -0.1, 1.0, 0.5, (-np.inf, -np.inf)),  # it would not be played
        (1.0, False, 0.1, -1.0, 0.5, (-np.inf, -np.inf)),  # it is out of reach
        (1.0, False, 0.1, 1e-9, 0.5, (-np.inf, 0.2)),  # rounding says whether
        (1.0, False, 0.1, 1.0, 0.9, (0.1, 0.2)),  # two have the highest score, up to rounding
    ],
)
def test_what_a_candidate_must_be_able_to_gain(
    left: float, cheap: bool, promise: float, within: float, second: float, expected: tuple[float, float]
) -> None:
    """A fifth of what the best-scored one could: 1; the second one could gain .5."""
    known = np.array([cheap, cheap])
    could = np.array([1.0, 0.5])
    hope = hope_of(left, could, known, np.array([0.9, second]))
    found = possible_aims(hope, np.array([within, 1.0]), np.array([promise, 0.1]), 0.2, np.full(2, 1e-6))
    assert found == pytest.approx(expected)


def test_an_audit_finds_what_was_spent_on_crumbs(sqlite_url: str) -> None:
    """An item that is known to be worth what the incumbent is, beside one of which nothing is known and
    for which credit is saved: the known one is passed over. Playing it instead is found."""
    model = c4b.LinearModel(3, 0.05, 4.0)
    baseline, known, unknown = np.eye(3)
    with c4b.Deployment.create(sqlite_url, "arms", model, alpha=0.02, reserve=0.5) as dep:
        dep.learn([baseline] * 400 + [known] * 10, [1.0] * 400 + [1.004] * 10)
        for _ in range(200):
            dep.forget(dep.decide([], baseline).id)
        alone = dep.decide([known], baseline)
        assert alone.action == 0
        dep.forget(alone.id)

        def spends(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
            arrays["details"][CandidateField.SCORE, 0] = alone.details[CandidateField.SCORE, 0]
            play(0, fields, arrays)

        made = dep.decide([known, unknown], baseline)
        assert made.action is None
        assert "too little compared with the baseline" in str(dep.explain(made.id))
        assert dep.audit(sample=0).clean
        assert made.receipt is not None
        forge(dep, made.receipt.seq, spends)
        report = dep.audit(sample=0)
        assert report.entry == made.receipt.seq
        assert "saved for a better one" in str(report.finding)


@pytest.mark.parametrize("forgery", [another, only_one])
def test_saving_up_is_audited(sqlite_url: str, forgery: Forgery) -> None:
    """Directions that are worth a little; alone the best of them costs more than there is at first."""
    rng, forged, saved = np.random.default_rng(6), None, 0
    directions = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8], [-0.6, -0.8]])
    with create(sqlite_url, policy="reserve-c4b+", reserve=0.0) as dep:
        dep.learn([INCUMBENT] * 40, 0.5 + 0.1 * rng.normal(size=40))
        for _ in range(120):
            pool = np.c_[np.ones(6), directions * rng.uniform(0.1, 0.5, size=(6, 1))]
            made = dep.decide(pool, INCUMBENT)
            played = INCUMBENT if made.action is None else pool[made.action]
            dep.observe(made.id, 0.5 + 0.15 * played[1] + 0.1 * rng.normal())
            scores, margins = made.details[CandidateField.SCORE], made.details[CandidateField.MARGIN]
            if made.action is not None and margins[np.argmax(scores)] < 0.0:
                saved += 1
                if (margins >= 0.0).sum() > 1 and "Saving up" in dep.explain(made.id).because:
                    assert made.receipt is not None
                    forged = made.receipt.seq
        assert saved > 5
        assert forged is not None
        report = dep.audit(sample=50)
        assert report.clean, report
        forge(dep, forged, forgery)
        assert dep.audit(sample=0).entry == forged


@pytest.mark.parametrize("more", [1e-13, 1e-12, 1e-8])
def test_baseline_that_is_barely_playable(sqlite_url: str, more: float) -> None:
    """Nothing is known: what the first round may lose with the baseline is alpha S = .05, and only with
    a larger reserve does the baseline compete. Then the third candidate saves up for the first."""
    model, baseline = c4b.LinearModel(2, 0.1, 1.0), np.array([1.0, 0.0])
    pool = np.array([[1.5, 1.0], [1.0, 0.0], [0.97, 0.0]])
    with c4b.Deployment.create(
        sqlite_url, "shop", model, "reserve-c4b+", reserve=0.05 + more, baseline_nonnegative=False
    ) as dep:
        assert dep.decide(pool, baseline).action == 2
        report = dep.audit()
        assert report.clean, report.finding
