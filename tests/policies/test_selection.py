"""Scores and selection order the admissible; they never decide what is admissible."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import c4b
from c4b.policies.catalogue.choice_in_words import because
from c4b.policies.catalogue.scores import SCORES
from c4b.policies.catalogue.selections import SELECTIONS
from c4b.policies.compiled.compiled_choice import choose
from c4b.policies.compiled.tied_scores import TIE, shuffle_ties
from c4b.policies.rounds.candidate_fields import MARGIN, ROWS, SCORE, UCB
from support.oracle_comparison import Duel, history
from support.random_stream import random_stream


def pick(
    scores: list[float], margins: list[float], least: float, propose: bool = False, lazy: bool = False
) -> int:
    details = np.zeros((ROWS, len(scores)))
    details[SCORE], details[MARGIN] = scores, margins
    return int(choose(details, propose, least, lazy))


def test_the_best_scored_of_those_that_leave_enough() -> None:
    assert pick([3.0, 2.0, 1.0], [0.1, 0.5, 0.9], least=0.5) == 1
    assert pick([3.0, 2.0, 1.0], [0.1, 0.4, 0.9], least=0.5) == 2


def test_where_none_leaves_enough_the_best_admissible() -> None:
    assert pick([3.0, 2.0, 1.0], [-0.1, 0.2, 0.3], least=0.5) == 1


def test_ties_go_to_the_lowest_index() -> None:
    assert pick([1.0, 2.0, 2.0], [1.0, 1.0, 1.0], least=0.5) == 1


VALUES = st.sampled_from([-np.inf, -1e308, -2.0, -0.0, 0.0, 0.5, 3.0, np.inf, np.nan])


@given(st.lists(st.tuples(VALUES, VALUES), max_size=70))
def test_pools_of_any_size_give_what_a_plain_loop_gives(candidates: list[tuple[float, float]]) -> None:
    """Many candidates are compared side by side; a score that is not finite never wins."""
    best, top = -1, -np.inf
    for k, (score, margin) in enumerate(candidates):
        if margin >= 0.0 and top < score < np.inf:
            best, top = k, score
    assert pick([score for score, _ in candidates], [margin for _, margin in candidates], 0.0) == best


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.5])
@pytest.mark.parametrize("propose", [False, True])
def test_nothing_below_zero_is_ever_chosen(least: float, propose: bool) -> None:
    assert pick([3.0, 2.0], [-1e-12, -1.0], least, propose) == -1
    assert pick([3.0, 2.0], [np.nan, -np.inf], least, propose) == -1
    assert pick([np.inf, np.nan], [1.0, 1.0], least, propose) == -1  # no finite score, no choice


def test_a_proposal_is_tested_alone() -> None:
    assert pick([3.0, 2.0], [-0.1, 1.0], 0.0, propose=True) == -1
    assert pick([3.0, 2.0], [0.1, 1.0], 0.5, propose=True) == 0


def policy(selection: str, score: str, reserve: float = 0.0) -> c4b.Policy:
    """d = 2, ridge 1; 99 rows of (1, 0) with reward 1, 15 of (0, 1) with reward 0.

    V = diag(100, 16): the first axis is known to beta/10, the second to beta/4; the centre is (.99, 0).
    """
    parts = c4b.Composition("made up", "joint", "refresh", selection, "for a test", score=score)
    made = c4b.Policy(parts, c4b.LinearModel(2, 0.1, 1.0, ridge=1.0), alpha=0.1, reserve=reserve)
    made.learn([[1.0, 0.0]] * 99 + [[0.0, 1.0]] * 15, [1.0] * 99 + [0.0] * 15)
    return made


BOLD, SURE = [1.1, 0.8], [1.12, 0.0]  # wide and promising; well known and good
BASELINE = [1.0, 0.0]


def test_the_score_moves_from_the_top_to_the_middle_of_the_interval() -> None:
    scores = [score for score in SCORES if score != "certificate"]
    found = {score: policy("filter", score, 1.0).decide([BOLD, SURE], BASELINE) for score in scores}
    assert {score: decision.action for score, decision in found.items()} == {
        "ucb": 0, "blend": 0, "mean": 1, "patient": 0, "keen": 0, "measured": 0,
        "measured-2": 0, "believed": 0,  # with this set nothing is believed
    }  # fmt: skip
    for score, decision in found.items():
        evidence = policy("filter", score).evidence
        for k, x in enumerate((BOLD, SURE)):
            low, high = evidence.lower(x), evidence.upper(x)
            spread = np.sqrt(2.5) if SCORES[score].period else 1.0  # 5/d = 2.5
            boldness = SCORES[score].boldness * spread
            expected = 0.5 * (low + high) + boldness * 0.5 * (high - low)
            assert decision.details[SCORE, k] == pytest.approx(expected, rel=1e-12)


def test_thrift_keeps_nine_tenths_of_the_bank_or_six_rounds_of_credit() -> None:
    """beta = 1 + .1 sqrt(log(1600) + 2 log 20) = 1.365: credit = .1 (.99 - .1365) = .0854 a round.

    BOLD's certificate is .2 * .99 - 1.365 sqrt(.04/100 + .64/16) = -.0764, so it leaves R0 - .0764;
    SURE's is .22 * .99 - 1.365 * .022 = .1878.
    """
    for reserve, expected in ((0.08, 1), (0.50, 1), (0.58, 1), (0.60, 0), (1.0, 0)):
        made = policy("thrifty", "ucb", reserve)
        credit = 0.1 * made.evidence.lower(BASELINE)
        assert credit == pytest.approx(0.0854, abs=1e-4)
        decision = made.decide([BOLD, SURE], BASELINE)
        left = float(decision.details[MARGIN, 0])
        assert left == pytest.approx(reserve - 0.0764, abs=1e-4)
        assert (left >= min(0.9 * reserve, 6.0 * credit)) == (expected == 0)
        assert decision.action == expected
        assert policy("filter", "ucb", reserve).decide([BOLD, SURE], BASELINE).action == 0
        assert made.decide([BOLD], BASELINE).action == 0  # nothing thriftier: still better than none


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from(list(itertools.product(SELECTIONS, SCORES, ("carry", "refresh", "checkpoints")))),
)
def test_whatever_is_chosen_has_a_margin(seed: int, dim: int, parts: tuple[str, str, str]) -> None:
    """And margins do not depend on score or selection: the first round's equal those of ucb, filter."""
    selection, score, ledger = parts
    rng = np.random.default_rng(seed)
    theta, stream = random_stream(rng, dim, 12, max_candidates=6)
    data, model = history(rng, theta, 8 * dim, 0.1), c4b.LinearModel(dim, 0.1, 1.0)
    made, plain = (
        c4b.Policy(c4b.Composition("x", "joint", ledger, which, "", score=by), model, 0.2, 0.1)
        for which, by in ((selection, score), ("filter", "ucb"))
    )
    made.learn(*data)
    plain.learn(*data)
    first = plain.decide(*stream[0])
    for t, (pool, baseline) in enumerate(stream):
        decision = made.decide(pool, baseline)
        if t == 0:
            np.testing.assert_array_equal(decision.details[MARGIN], first.details[MARGIN])
        if decision.action is not None:
            assert decision.details[MARGIN, decision.action] == decision.bank
        assert decision.bank >= 0.0
        executed = baseline if decision.action is None else pool[decision.action]
        made.observe(decision.id, float(executed @ theta + 0.1 * rng.normal()))


WORSE, BETTER = [0.9, 0.0], [1.2, 0.0]  # both well known


def test_a_curious_choice_tries_what_could_be_better_and_costs_nothing() -> None:
    """Neither promises more than the baseline; one is known to be worse, the other one is not known."""
    worse, unsure = [0.95, 0.0], [0.97, 0.1]
    for pool, expected in (([worse], None), ([unsure], 0)):
        made = policy("curious", "keen", reserve=5.0)
        decision = made.decide(pool, BASELINE)
        assert decision.details[MARGIN, 0] > 5.0
        assert decision.action == expected
        assert policy("competitive", "keen", reserve=5.0).decide(pool, BASELINE).action is None


def test_a_balanced_choice_plays_a_counterweight_where_the_best_is_not_admissible() -> None:
    """UP leaves .2 + .15 * .99 - 1.365 sqrt(.15^2/100 + .8^2/16) = .075, a second time -.05. DOWN then
    makes the second axis of the prefix certain: .2 + .25 * .99 - 1.365 * .25/10 = .413. The baseline
    leaves .2 + .25 * .99 - 1.365 sqrt(.25^2/100 + .8^2/16) = .172, SLIGHTLY a little more."""
    up, slightly, down = [1.05, 0.8], [1.02, 0.0], [1.0, -0.8]
    for selection, second in (("balanced", 2), ("filter", 1)):
        made = policy(selection, "mean", reserve=0.2)
        first = made.decide([up, slightly, down], BASELINE)
        assert first.action == 0
        assert first.bank == pytest.approx(0.075, abs=1e-3)
        decision = made.decide([up, slightly, down], BASELINE)
        assert decision.details[MARGIN].tolist() == pytest.approx([-0.05, 0.191, 0.413], abs=1e-3)
        assert decision.action == second
        if selection == "balanced":
            assert "Counterweight" in because(decision, made.spec, 2)
            assert made.decide([up, slightly, down], BASELINE).action == 0


def test_where_the_best_is_not_admissible_one_that_saves_up_for_it_is_played() -> None:
    """As above, and ACROSS has a higher score than SLIGHTLY, but takes from the bank."""
    up, across, slightly, down = [1.05, 0.8], [1.04, 0.2], [1.02, 0.0], [1.0, -0.8]
    for selection, second in (("hopeful-5", 2), ("balanced", 3), ("filter", 1)):
        made = policy(selection, "mean", reserve=0.2)
        assert made.decide([up, across, slightly, down], BASELINE).action == 0
        decision = made.decide([up, across, slightly, down], BASELINE)
        assert decision.details[MARGIN, 0] < 0.0 < decision.details[MARGIN, 1] < 0.172
        assert min(decision.details[MARGIN, 2:]) > 0.172  # the baseline's, as above
        assert decision.action == second
        if selection == "hopeful-5":
            assert "Saving up" in because(decision, made.spec, 2)


def first_arms(selection: str, seeds: int) -> list[int]:
    """The arm that is tried first in each of so many worlds: five arms that differ in nothing that is
    known, and rewards of the incumbent, which differ from world to world."""
    spec = c4b.Policy("reserve-c4b+", c4b.LinearModel(6, 0.1, 3.0)).spec
    assert isinstance(spec, c4b.Composition)
    arms, first = np.eye(6), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        parts = replace(spec, name="made up", selection=selection)
        made = c4b.Policy(parts, c4b.LinearModel(6, 0.1, 3.0), alpha=0.2, reserve=5.0)
        made.learn(arms[[0] * 20], 1.0 + 0.1 * rng.normal(size=20))
        while (decision := made.decide(arms[1:], arms[0])).action is None:
            made.observe(decision.id, 1.0 + 0.1 * rng.normal())
        first.append(decision.action)
        ucb = decision.details[UCB]
        assert np.ptp(ucb) <= TIE * abs(ucb[0])
    return first


def test_of_equal_arms_not_always_the_first_of_the_list_is_tried_first() -> None:
    assert set(first_arms("hopeful-5", 5)) == {0}
    tried = first_arms("hopeful-6", 100)
    assert min(np.bincount(tried, minlength=5)) >= 10  # 20 each in the mean, standard deviation 4
    assert first_arms("hopeful-6", 5) == tried[:5]  # the data decide, nothing else does


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.floats(-1e300, 1e300))
def test_a_shuffle_changes_scores_by_less_than_a_tie_and_nothing_else(
    scores: list[float], moment: float
) -> None:
    details = np.zeros((ROWS, len(scores) + 3))
    details[SCORE] = [*scores, np.inf, -np.inf, np.nan]
    before = details.copy()
    shuffle_ties(np.array([moment, 0.25]), details)
    assert np.array_equal(np.delete(details, SCORE, 0), np.delete(before, SCORE, 0))
    after = details[SCORE]
    assert np.array_equal(after[-3:], before[SCORE, -3:], equal_nan=True)
    change = np.abs(after[:-3] - before[SCORE, :-3])
    assert np.all(change <= TIE * np.abs(before[SCORE, :-3]) * (1.0 + 1e-9))


def test_while_the_best_is_not_admissible_what_brings_it_nearest_is_played() -> None:
    """The oracle looks one round ahead in the plainest way. In this world the bank is always short."""
    theta, baseline = np.array([1.0, 0.3, 0.0, 0.0, 0.0]), np.array([1.05, 0.0, 0.0, 0.0, 0.0])
    model = c4b.LinearModel(5, 0.3, 1.2, 0.1, 0.05, "unbiased")
    awaited = approached = costly = 0
    for seed in range(3):
        rng, duel = np.random.default_rng(seed), Duel("reserve-c4b+", model, 0.1)
        features = np.c_[np.ones(5), 0.3 * rng.normal(size=(5, 4))]
        duel.learn(features, features @ theta + 0.3 * rng.normal(size=5))
        for _ in range(70):
            pool = np.c_[np.ones(12), 0.4 * rng.normal(size=(12, 4))]
            waits = duel.policy.preview(np.empty((0, 5)), baseline)
            before = duel.policy.preview(pool, baseline)
            assert duel.decide(pool, baseline)
            action, scores = duel.actions[-1], before.details[SCORE]
            duel.observe(len(duel.ids) - 1, duel.executed_features[-1] @ theta + 0.3 * rng.normal())
            if before.details[MARGIN, np.argmax(scores)] < 0.0 and np.isfinite(scores).all():
                awaited += 1
                approached += action is not None
                costly += action is not None and before.details[MARGIN, action] < waits.bank
    assert awaited >= 30
    assert approached >= 15
    assert costly >= 5  # more is learned than is lost: the rule before played none of these


def test_what_teaches_nothing_is_not_played_for_the_little_that_it_saves() -> None:
    """Rewards fall with the second feature, and the bank allows small steps at first. A candidate beside
    the baseline saves a little more than the baseline does in every round, for as long as one likes."""
    theta, baseline, plays = np.array([1.0, -0.5]), np.array([0.995, 0.0]), {}
    spec = c4b.Policy("reserve-c4b+", c4b.LinearModel(2, 0.05, 1.4)).spec
    assert isinstance(spec, c4b.Composition)
    for selection in ("hopeful-6", "hopeful-8"):
        parts, count = replace(spec, name="made up", selection=selection), []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            made = c4b.Policy(parts, c4b.LinearModel(2, 0.05, 1.4), alpha=0.03)
            made.learn([baseline] * 5, 0.995 + 0.05 * rng.normal(size=5))
            rounds = 0
            while True:
                pool = np.c_[np.ones(300), 0.7 * rng.normal(size=300)]
                decision = made.decide(pool, baseline)
                features = baseline if decision.action is None else pool[decision.action]
                if features @ theta > 1.5 or rounds == 60:
                    break
                made.observe(decision.id, features @ theta + 0.05 * rng.normal())
                rounds += 1
            count.append(rounds)
        plays[selection] = float(np.mean(count))
    assert plays["hopeful-8"] < 0.6 * plays["hopeful-6"]


def test_no_counterweight_for_a_candidate_that_promises_no_more_than_the_baseline() -> None:
    """Both others leave more than the baseline; the one with the higher score is played."""
    unwanted, down, further_down = [0.97, 1.0], [0.95, -0.5], [0.85, -0.8]
    made = policy("balanced", "mean", reserve=0.2)
    assert made.decide([[1.05, 0.8]], BASELINE).action == 0
    decision = made.decide([unwanted, down, further_down], BASELINE)
    assert decision.details[MARGIN, 0] < 0.0
    assert min(decision.details[MARGIN, 1:]) > 0.172  # the baseline's, as above
    assert decision.action == 1


def test_the_baseline_is_played_where_it_promises_more() -> None:
    """The contrast of WORSE is certain to be negative; in optimistic rounds its UCB is lower."""
    made = policy("competitive", "patient", reserve=5.0)
    assert policy("thrifty", "blend", reserve=5.0).decide([WORSE], BASELINE).action == 0
    for _ in range(70):
        decision = made.decide([WORSE], BASELINE)
        assert decision.action is None
        assert decision.details[MARGIN, 0] >= 0.0
        optimistic = decision.details[SCORE, 0] == decision.details[UCB, 0]
        assert optimistic or decision.details[SCORE, 0] == -np.inf
        words = "highest UCB in an optimistic round" if optimistic else "promises more"
        assert words in decision.explain().summary
    assert made.decide([WORSE, BETTER], BASELINE).action == 1


def test_a_candidate_equal_to_the_baseline_changes_nothing() -> None:
    for pool in ([BASELINE, BETTER], [BETTER, BASELINE]):
        decision = policy("competitive", "patient", reserve=1.0).decide(pool, BASELINE)
        assert decision.action == pool.index(BETTER)
    assert policy("competitive", "patient", 1.0).decide([BASELINE], BASELINE).action is None


def test_a_baseline_that_cannot_be_played_does_not_compete() -> None:
    """Its mean may be negative: it is not certified, and a certified candidate is better than none."""
    parts = c4b.Composition("x", "joint", "refresh", "competitive", "", score="patient")
    model = c4b.LinearModel(2, 0.1, 1.0, ridge=1.0)
    made = c4b.Policy(parts, model, alpha=0.1, reserve=0.0, baseline_nonnegative=False)
    made.learn([[1.0, 0.0]] * 99 + [[0.0, 1.0]] * 99, [-0.9] * 99 + [0.0] * 99)
    with pytest.raises(c4b.errors.NoSafeAction):
        made.decide([[1.05, 0.0]], BASELINE)
    assert made.decide([[0.5, 0.0]], BASELINE).action == 0


def test_optimistic_rounds_are_one_in_each_block() -> None:
    """Where the score is the UCB the round is optimistic; only the number of the round decides it."""
    made, period = policy("competitive", "patient", reserve=10.0), SCORES["patient"].period
    optimistic = []
    for n in range(6 * period):
        decision = made.decide([BOLD, SURE], BASELINE)
        if decision.details[SCORE, 0] == decision.details[UCB, 0]:
            optimistic.append(n)
    assert [n // period for n in optimistic] == list(range(6))
    assert len({n % period for n in optimistic}) == 6


def test_optimistic_rounds_become_sparse() -> None:
    """With alpha .1 and d = 2: where 8 (.1 sqrt(t) - sqrt(2/80)) + t/1024 passes a whole number."""
    made, optimistic = policy("hopeful", "measured", reserve=10.0), []
    for n in range(400):
        decision = made.decide([BOLD, SURE], BASELINE)
        if decision.details[SCORE, 0] == decision.details[UCB, 0]:
            optimistic.append(n)
    due = [max(0.8 * np.sqrt(t) - 8.0 * np.sqrt(2 / 80), 0.0) + t / 1024 for t in range(401)]
    assert optimistic == [t for t in range(400) if int(due[t + 1]) > int(due[t])]
    assert len(optimistic) == 15
    assert optimistic[0] == 7
    assert np.all(np.diff(optimistic, 2) >= 0)


def test_of_two_optimistic_rounds_the_first_scores_by_the_upper_bound() -> None:
    """The others add half of the half-width to the middle; ordinary rounds .4 of it at d = 5."""
    parts = c4b.Composition("x", "joint", "refresh", "hopeful-2", "", "measured-2")
    made = c4b.Policy(parts, c4b.LinearModel(5, 0.1, 1.0, ridge=1.0), alpha=0.1, reserve=10.0)
    made.learn([[1.0, 0.0, 0.0, 0.0, 0.0]] * 99, [1.0] * 99)
    sure, baseline, boldness = np.array([1.12, 0, 0, 0, 0]), np.array([1.0, 0, 0, 0, 0]), []
    for _ in range(400):
        decision = made.decide([sure], baseline)
        low, high = made.evidence.lower(sure), decision.details[UCB, 0]
        boldness.append((2.0 * decision.details[SCORE, 0] - high - low) / (high - low))
    due = [max(0.8 * np.sqrt(t) - 2.0, 0.0) + t / 1024 for t in range(401)]
    numbers = {t: int(due[t + 1]) for t in range(400) if int(due[t + 1]) > int(due[t])}
    bold = {t: 1.0 if number % 2 == 1 else 0.5 for t, number in numbers.items()}
    assert boldness == pytest.approx([bold.get(t, 0.4) for t in range(400)], abs=1e-3)
    assert list(bold.values())[:6] == [1.0, 0.5, 1.0, 0.5, 1.0, 0.5]


def test_a_restrained_round_plays_the_baseline_if_its_score_is_higher() -> None:
    """The candidate's UCB is above the baseline's, the score with .4 sqrt(5/2) half-widths is not. Of
    the optimistic rounds 7, 16, 28 and 42 the first and the third score by the UCB."""
    made = policy("hopeful-2", "measured-2", reserve=50.0)
    actions = [made.decide([[0.97, 0.3]], BASELINE).action for _ in range(43)]
    assert [actions[t] for t in (7, 16, 28, 42)] == [0, None, 0, None]
    assert actions[8] == 0  # hope


def test_what_is_cheap_to_learn_is_tried_before_there_is_any_leeway() -> None:
    """With alpha .02 and d = 2 there is leeway from round 63 on. The candidate seems to lose .05 of 1 and
    could gain; with sigma .1 two plays are enough to know, which cost .1: half of what alpha has granted
    in 10 rounds. With sigma 1 they are many more."""
    unsure, first = [0.95, 0.6], {}
    for noise in (0.1, 1.0):
        for selection in ("hopeful", "hopeful-2"):
            parts = c4b.Composition("x", "joint", "checkpoints", selection, "", "mean", "unbiased")
            made = c4b.Policy(parts, c4b.LinearModel(2, noise, 1.5), alpha=0.02, reserve=50.0)
            made.learn([BASELINE] * 400, [1.0] * 400)
            actions = []
            for _ in range(60):
                decision = made.decide([unsure], BASELINE)
                actions.append(decision.action)
                made.forget(decision.id)
            first[noise, selection] = actions.index(0) if 0 in actions else None
    assert first[0.1, "hopeful"] is first[1.0, "hopeful"] is first[1.0, "hopeful-2"] is None
    found = first[0.1, "hopeful-2"]
    assert found is not None
    assert 8 <= found <= 14


def test_arms_are_learned_one_by_one_and_what_was_cheap_stays_so() -> None:
    """Two arms beside a baseline worth 1; sigma .05, alpha .005. An unseen arm seems to lose 1 in a play.
    Three plays, one for each feature, are paid by half of what alpha has granted in 1200 rounds; two, one
    for each feature in which it differs, in 800. From round 1501 on there is leeway. The first arm has
    lost .8 by then: too much to hope, but 3.75 - .8 still pay for two plays of the other one."""
    baseline, arms, first, second = np.eye(3)[0], np.eye(3)[1:], {}, {}
    for selection in ("hopeful-2", "hopeful-3"):
        parts = c4b.Composition("x", "joint", "checkpoints", selection, "", "mean", "unbiased")
        made = c4b.Policy(parts, c4b.LinearModel(3, 0.05, 4.0), alpha=0.005, reserve=50.0)
        made.learn([baseline] * 400, [1.0] * 400)
        actions = []
        for _ in range(1510):
            decision = made.decide(arms[:1], baseline)
            actions.append(decision.action)
            made.observe(decision.id, 1.0 if decision.is_baseline else 0.2)
        assert actions.count(0) == 1
        first[selection], second[selection] = actions.index(0), made.decide(arms, baseline).action
    assert first == {"hopeful-2": pytest.approx(1200, abs=15), "hopeful-3": pytest.approx(800, abs=15)}
    assert second == {"hopeful-2": None, "hopeful-3": 1}


def test_what_learning_may_cost_grows_with_time() -> None:
    """Two arms beside a baseline worth 1, alpha .005: the first one lost 3.9 in a play. From round 1501
    on there is leeway, too little to hope, and 5.63 - 3.9 do not pay for the other one's two plays, at 1
    each. 5.63 (t/1500)^(3/4) - 3.9 do from about round 1600 on."""
    baseline, arms, second = np.eye(3)[0], np.eye(3)[1:], {}
    for selection, first in (("hopeful-3", 800), ("hopeful-4", 533)):
        parts = c4b.Composition("x", "joint", "checkpoints", selection, "", "mean", "unbiased")
        made = c4b.Policy(parts, c4b.LinearModel(3, 0.05, 4.0), alpha=0.005, reserve=50.0)
        made.learn([baseline] * 400, [1.0] * 400)
        actions = []
        for t in range(1800):
            decision = made.decide(arms[: 1 + (t > 1400)], baseline)
            actions.append(decision.action)
            made.observe(decision.id, 1.0 if decision.is_baseline else -2.9)
        assert actions.index(0) == pytest.approx(first, abs=15)
        second[selection] = actions.index(1) if 1 in actions else None
    assert second == {"hopeful-3": None, "hopeful-4": pytest.approx(1600, abs=60)}


def test_with_few_features_more_could_be_better() -> None:
    """An arm of which nothing is known, where S is twice the mean of the baseline: it is 1 below, and
    half of its half-width does not make up for it; .65 of it does. There is leeway from round 4 on."""
    baseline, arm, tried = np.eye(3)[0], np.eye(3)[1], {}
    for selection in ("hopeful-3", "hopeful-4"):
        parts = c4b.Composition("x", "joint", "checkpoints", selection, "", "mean", "unbiased")
        made = c4b.Policy(parts, c4b.LinearModel(3, 0.05, 2.0), alpha=0.1, reserve=50.0)
        made.learn([baseline] * 400, [1.0] * 400)
        for _ in range(50):
            made.forget(made.decide([], baseline).id)
        tried[selection] = made.decide([arm], baseline).action
    assert tried == {"hopeful-3": None, "hopeful-4": 0}


def test_what_is_saved_for_a_trial_is_not_spent_on_what_could_gain_little() -> None:
    """An arm that is known to be worth about as much as the baseline, 1, beside one of which nothing is
    known: that one costs up to 4.9 of the bank. After 100 rounds as many more would not pay for it."""
    known, unknown, baseline = np.eye(3)[1], np.eye(3)[2], np.eye(3)[0]
    chosen = {}
    for selection in ("hopeful-2", "hopeful-3"):
        parts = c4b.Composition("x", "joint", "checkpoints", selection, "", "measured-2", "unbiased")
        made = c4b.Policy(parts, c4b.LinearModel(3, 0.05, 4.0), alpha=0.02, reserve=0.5)
        made.learn([baseline] * 400 + [known] * 10, [1.0] * 400 + [1.004] * 10)
        for _ in range(300):
            made.forget(made.decide([], baseline).id)
            if made.rounds in (100, 200, 290):
                decision = made.preview([known, unknown], baseline)
                chosen[selection, made.rounds] = decision.action
                assert decision.details[SCORE, 1] != decision.details[UCB, 1]  # no optimistic round
    assert [chosen["hopeful-2", t] for t in (100, 200, 290)] == [0, 0, 0]
    assert [chosen["hopeful-3", t] for t in (100, 200, 290)] == [0, None, 1]


def test_hope_tries_what_could_be_better_while_little_seems_lost() -> None:
    """UNSURE promises no more than the baseline and leaves less; the middle of its contrast plus half of
    the half-width is above 0 at first. KNOWN cannot be better."""
    known, unsure = np.array([0.9, 0.0]), np.array([0.95, 0.6])
    made, seen = policy("hopeful", "measured", reserve=50.0), set()

    def middle(v: np.ndarray, trust: float = 0.0) -> float:
        low, high = made.evidence.lower(v), made.evidence.upper(v)
        return 0.5 * (low + high) + 0.5 * trust * (high - low)

    for t in range(120):
        mean, leeway = middle(BASELINE), max(0.1 * np.sqrt(t) - 0.25 * np.sqrt(0.4), 0.0)
        lost = 0.1 * t * mean - middle(made.gate.prefix)
        hopeful, could = abs(lost) < 4.0 * leeway * mean, middle(unsure - BASELINE, 0.5) > 0.0
        assert middle(unsure - BASELINE, 0.02) < 0.0
        decision = made.decide([known, unsure], BASELINE)
        if decision.details[SCORE, 1] != decision.details[UCB, 1]:  # not an optimistic round
            assert decision.action == (1 if hopeful and could else None)
            assert decision.details[SCORE, 0] == -np.inf
            seen.add((hopeful, could))
        made.observe(decision.id, 1.0 if decision.action is None else 0.8)
    assert seen >= {(True, True), (False, True), (True, False)}
    assert policy("competitive", "measured", reserve=50.0).decide([unsure], BASELINE).action is None


def test_what_is_not_surely_better_leaves_a_fund_for_optimistic_rounds() -> None:
    """After 60 rounds of the baseline: leeway .1 sqrt(60) - sqrt(2/80) = .617 rewards of .99."""
    likely, surely = [1.02, 16.0], [1.4, 0.2]
    for selection, expected in (("competitive", 0), ("hopeful-5", 0), ("hopeful", None)):
        made = policy(selection, "mean")
        for _ in range(60):
            made.forget(made.decide([], BASELINE).id)
        decision = made.decide([likely], BASELINE)
        assert 0.0 < decision.details[MARGIN, 0] < 0.617 * 0.99
        assert decision.action == expected
    assert made.evidence.lower(np.array(surely) - BASELINE) > 0.0
    assert made.decide([likely, surely], BASELINE).action == 1


def test_who_has_gained_does_not_hope() -> None:
    """After 21 rounds four rewards a unit of leeway are 1.2: one gain of .3 is less, six are more."""
    for gains, expected in ((1, 0), (6, None)):
        made = policy("hopeful", "mean", reserve=50.0)
        for t in range(21):
            made.observe(
                made.decide([[1.3, 0.0]] if t < gains else [], BASELINE).id, 1.0 + 0.3 * (t < gains)
            )
        assert made.decide([[0.95, 0.6]], BASELINE).action == expected


def test_hope_beyond_the_candidates_that_are_looked_at_one_by_one() -> None:
    """Twelve that cannot be better have higher scores than the one that could."""
    certain = [[0.99 - 0.001 * k, 0.0] for k in range(12)]
    made = policy("hopeful", "mean", reserve=50.0)
    for _ in range(10):
        made.forget(made.decide([], BASELINE).id)
    decision = made.decide([*certain, [0.95, 0.6], [0.94, 0.6]], BASELINE)
    assert decision.action == 12
    assert np.isneginf(np.delete(decision.details[SCORE], 12)).all()


def test_a_better_arm_is_found_beside_a_certified_one() -> None:
    """Arms worth 1 (baseline), 1.06 (known) and 1.15 (never seen): blend never tries the last one."""
    means, model = np.array([1.0, 1.06, 1.15]), c4b.LinearModel(3, 0.1, 1.9)
    played = {}
    for selection, score in (("thrifty", "blend"), ("competitive", "patient")):
        parts = c4b.Composition("x", "joint", "checkpoints", selection, "", score, "unbiased")
        made, rng = c4b.Policy(parts, model, alpha=0.05), np.random.default_rng(1)
        made.learn(np.repeat(np.eye(3)[:2], 50, axis=0), np.repeat(means[:2], 50))
        actions = []
        for _ in range(600):
            decision = made.decide(np.eye(3)[1:], np.eye(3)[0])
            actions.append(decision.action)
            arm = 0 if decision.action is None else 1 + decision.action
            made.observe(decision.id, float(means[arm] + 0.1 * rng.normal()))
        played[score] = actions
    assert 1 not in played["blend"]
    assert played["patient"][-100:].count(1) >= 90


def test_many_candidates_that_promise_less_are_all_passed_over() -> None:
    """After a few the rest is looked at in one pass; the better one behind them is still found."""
    worse = [[0.9 + 0.001 * k, 0.0] for k in range(60)]
    decision = policy("competitive", "patient", reserve=5.0).decide(worse, BASELINE)
    assert decision.action is None
    assert np.all(decision.details[SCORE] == -np.inf)
    certain = [*worse, [1.02, 0.0]]
    unsure = [[0.95, 0.05 * k] for k in range(9, 20)]
    found = policy("competitive", "patient", reserve=5.0).decide([*unsure, *certain], BASELINE)
    assert found.action == len(unsure) + 60


def test_a_baseline_whose_past_was_unlucky_is_tried_again() -> None:
    """Its five observations say 0.8, its mean is 1; the candidate is known to be worth 0.9."""
    model, rng = c4b.LinearModel(2, 0.2, 1.5), np.random.default_rng(3)
    parts = c4b.Composition("x", "joint", "checkpoints", "competitive", "", "patient", "unbiased")
    made = c4b.Policy(parts, model, alpha=0.15, reserve=5.0)
    made.learn([[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 200, [0.8] * 5 + [0.9] * 200)
    actions = []
    for _ in range(2000):
        decision = made.decide([[0.0, 1.0]], [1.0, 0.0])
        actions.append(decision.action)
        mean = 1.0 if decision.action is None else 0.9
        made.observe(decision.id, float(mean + 0.2 * rng.normal()))
    assert actions[:10].count(0) >= 9
    assert actions[-200:].count(None) >= 190
