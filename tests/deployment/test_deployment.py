"""The shared test case: every promise of the interface, on both stores."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import c4b
from c4b import Decision, Deployment, Policy
from c4b.deployment.transactions.recent_requests import RecentRequests
from c4b.errors import (
    ContradictoryOutcome,
    ContradictoryRequest,
    HistoryClosed,
    NameTaken,
    NoSafeAction,
    OutcomeClosed,
    StoreUnavailable,
    UnknownDecision,
    UnknownDeployment,
)
from support.shop_world import (
    BASELINE,
    MODEL,
    create,
    entries_of,
    evidence_of,
    in_agreement,
    outcome,
    rivals,
    seen,
    trade,
)


def plain(made: Decision) -> tuple[object, ...]:
    """Everything but the id and the details."""
    return made.action, made.numbers, made.policy, made.alarm, made.propensity


def test_it_decides_exactly_as_a_policy_does(any_url: str) -> None:
    policy = Policy("refresh", MODEL, alpha=0.1, reserve=0.5)
    rng = np.random.default_rng(3)
    history = rng.normal(size=(20, 3))
    with create(any_url) as dep:
        for each in (dep, policy):
            each.learn(history, history @ np.ones(3) * 0.1)
        for _ in range(60):
            candidates = rivals(rng)
            ours, theirs = dep.decide(candidates, BASELINE), policy.decide(candidates, BASELINE)
            assert plain(ours) == plain(theirs)
            assert np.array_equal(ours.details, theirs.details)
            reward = outcome(candidates, ours.action, rng)
            dep.observe(ours.id, reward)
            policy.observe(theirs.id, reward)
        assert in_agreement(dep)


def test_it_goes_on_where_another_process_left_it(any_url: str) -> None:
    with create(any_url) as dep:
        trade(dep, 30)
        before = dep.state()
    with Deployment.open(any_url, "shop") as dep:
        assert dep.state() == before
        assert dep.configuration.alpha == 0.1
        trade(dep, 5, seed=1)
        assert dep.state().rounds == 35
        assert in_agreement(dep)


def test_two_openings_share_one_budget(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url) as one, Deployment.open(any_url, "shop") as two:
        for n in range(40):
            dep = one if n % 3 else two
            candidates = rivals(rng)
            before = (two if n % 3 else one).state().bank
            made = dep.decide(candidates, BASELINE)
            assert made.bank_before == before
            (two if n % 2 else one).observe(made.id, outcome(candidates, made.action, rng))
        assert one.state() == two.state()
        assert in_agreement(one)
        assert one.audit().clean


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_another_process_opens_it_by_itself(any_url: str, how: Callable[[Deployment], object]) -> None:
    with create(any_url) as dep:
        with pytest.raises(TypeError, match=r"connections .* Deployment\.open\(URL, 'shop'\)"):
            how(dep)
        made = dep.decide([], BASELINE)
        assert pickle.loads(pickle.dumps(made)) == made


def test_threads_take_turns(any_url: str) -> None:
    with create(any_url) as dep:
        threads = [threading.Thread(target=trade, args=(dep, 15, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert dep.state().rounds == 60
        assert in_agreement(dep)
        assert dep.audit().clean


def test_the_same_request_gets_the_same_decision(any_url: str) -> None:
    rng = np.random.default_rng(0)
    candidates = rivals(rng)
    with create(any_url) as dep, Deployment.open(any_url, "shop") as other:
        names = [f"item {n}" for n in range(len(candidates))]
        first = dep.decide(candidates, BASELINE, request_id="r-1", context={"user": "a"}, labels=names)
        trade(dep, 5)
        for again, context, labels in ((dep, None, None), (other, {"user": "b"}, names[::-1])):
            made = again.decide(candidates, BASELINE, "r-1", context, labels=labels)
            assert made.labels == first.labels
            assert made.id == first.id
            assert plain(made) == plain(first)
            assert np.array_equal(made.details, first.details)
        head = dep.state().seq
        with pytest.raises(ContradictoryRequest, match="r-1"):
            dep.decide(candidates + 0.1, BASELINE, request_id="r-1")
        with pytest.raises(ContradictoryRequest):
            dep.decide(candidates, BASELINE * 2, request_id="r-1")
        assert dep.state().seq == head
        assert dep.record(first.id).context == {"user": "a"}
        assert in_agreement(dep)


def test_history_is_learned_once(any_url: str) -> None:
    x, y = np.eye(3), np.array([0.5, 0.1, 0.2])
    with create(any_url) as dep:
        dep.learn(x, y, request_id="history")
        dep.learn(x, y, request_id="history")
        assert dep.state().observations == 3
        with pytest.raises(ContradictoryRequest):
            dep.learn(x, -y, request_id="history")
        with pytest.raises(ContradictoryRequest):
            dep.decide([], BASELINE, request_id="history")
        dep.learn(np.empty((0, 3)), [])
        dep.decide([], BASELINE)
        dep.learn(x, y, request_id="history")  # a late retry
        with pytest.raises(HistoryClosed):
            dep.learn(x, y)


def test_outcomes_come_in_any_order_and_twice(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url) as dep:
        made = [dep.decide(rivals(rng), BASELINE) for _ in range(4)]
        dep.observe(made[2].id, 0.5)
        assert (dep.state().observations, dep.state().waiting, dep.state().pending) == (0, 1, 3)
        assert dep.state().oldest_pending == made[0].id
        dep.observe(made[2].id, 0.5)
        with pytest.raises(ContradictoryOutcome):
            dep.observe(made[2].id, 0.6)
        dep.observe_many({made[1].id: 0.4, made[0].id: 0.3})
        assert (dep.state().observations, dep.state().pending) == (3, 1)
        head = dep.state().seq
        dep.observe_many([(made[0].id, 0.3), (made[2].id, 0.5)])
        with pytest.raises(ContradictoryOutcome):  # absorbed long ago, the journal remembers
            dep.observe(made[0].id, 0.31)
        with pytest.raises(ContradictoryOutcome):
            dep.observe_many([(made[3].id, 0.1), (made[3].id, 0.2)])
        with pytest.raises(ContradictoryOutcome):
            dep.observe_many([(made[3].id, 0.1), (made[0].id, 0.2)])
        assert dep.state().seq == head
        assert [record.outcome for record in dep.decisions()] == ["observed"] * 3 + ["pending"]
        assert in_agreement(dep)


def test_lost_outcomes(any_url: str) -> None:
    with create(any_url) as dep:
        made = [dep.decide([], BASELINE) for _ in range(3)]
        dep.observe(made[1].id, 0.5)
        dep.forget(made[0].id, independent=True)
        dep.forget(made[0].id)
        assert dep.state().observations == 1
        with pytest.raises(OutcomeClosed):
            dep.observe(made[0].id, 0.5)
        with pytest.raises(ContradictoryOutcome):
            dep.forget(made[1].id)
        assert dep.record(made[0].id).outcome == "forgotten"
        assert dep.audit().clean
        assert in_agreement(dep)


@pytest.mark.parametrize("default", [0.0, None])
def test_an_outcome_window_closes_by_itself(any_url: str, default: float | None) -> None:
    now = time.time()
    with create(any_url, outcome_timeout=60.0, timeout_reward=default) as dep:
        dep._transactor.clock = lambda: now + 1
        made = [dep.decide([], BASELINE) for _ in range(3)]
        dep.observe(made[1].id, 0.5)
        dep._transactor.clock = lambda: now + 60
        assert dep.expire() == 0
        dep._transactor.clock = lambda: now + 62
        last = dep.decide([], BASELINE)  # any call that writes closes what is due
        states = [record.outcome for record in dep.decisions()]
        closed = "forgotten" if default is None else "timeout"
        assert states == [closed, "observed", closed, "pending"]
        assert dep.state().observations == (1 if default is None else 3)
        with pytest.raises(OutcomeClosed):
            dep.observe(made[0].id, 0.7)
        if default is not None:
            dep.observe(made[0].id, default)
        dep._transactor.clock = lambda: now - 500  # a clock that is wrong cannot turn the journal's back
        dep.observe(last.id, 0.1)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_something_else_was_executed(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url, reserve=0.0) as dep:
        policy = Policy("refresh", MODEL, alpha=0.1, reserve=0.0)
        rows = BASELINE + 0.1 * rng.normal(size=(50, 3))
        for each in (dep, policy):
            each.learn(rows, rows @ np.array([0.6, 0.3, -0.2]))
        candidates = rivals(rng)
        ours, theirs = dep.decide(candidates, BASELINE), policy.decide(candidates, BASELINE)
        other = np.array([0.2, 1.0, 1.0])
        for _ in range(2):
            dep.executed(ours.id, other)
        policy.executed(theirs.id, other)
        assert dep.state().bank == policy.bank < 0.0
        alarms = [entry.unpack()[0] for entry in entries_of(dep) if entry.kind == "alarm"]
        assert [alarm["source"] for alarm in alarms] == ["ledger"]
        assert dep.state().alarm is None  # a negative bank makes nothing void
        dep.observe(ours.id, 0.1)
        policy.observe(theirs.id, 0.1)
        with pytest.raises(OutcomeClosed):
            dep.executed(ours.id)
        assert np.array_equal(dep.record(ours.id).executed, other)
        assert np.array_equal(evidence_of(dep).flat, policy.evidence.flat)
        assert in_agreement(dep)
        assert dep.audit().clean


def test_an_alarm_against_the_model_is_not_hidden_by_a_negative_bank(memory_url: str) -> None:
    with create(memory_url, reserve=0.0) as dep:
        dep.learn([[1.0, 0.0, 0.0]] * 40, [0.0, 5.0] * 20)  # far more noise than declared
        first = dep.state()
        assert first.alarm is not None
        made = dep.decide(rivals(np.random.default_rng(0)), BASELINE)
        dep.executed(made.id, [0.2, 1.0, 1.0])
        assert dep.state().bank < 0.0
        assert (dep.state().alarm, dep.state().alarm_since) == (first.alarm, first.alarm_since)
        assert dep.audit().clean


def test_many_in_one_commit(any_url: str) -> None:
    rng = np.random.default_rng(0)
    rounds = [(rivals(rng), BASELINE) for _ in range(20)]
    with create(any_url, "many") as many, create(any_url, "single") as single:
        ids = [f"r{n}" for n in range(20)]
        together = many.decide_many(rounds, request_ids=ids, contexts=[{"n": n} for n in range(20)])
        apart = [single.decide(*each) for each in rounds]
        assert [plain(d) for d in together] == [plain(d) for d in apart]
        again = many.decide_many([*rounds[5:], rounds[0]], request_ids=[*ids[5:], "new"])
        assert [d.id for d in again[:-1]] == [d.id for d in together[5:]]
        assert many.state().rounds == 21
        many.observe_many([(d.id, 0.5) for d in together])
        assert many.state().observations == 20
        assert many.record(together[3].id).context == {"n": 3}
        twice = many.decide_many([rounds[0], rounds[0]], request_ids=["twin", "twin"])
        assert twice[0] == twice[1]
        assert many.decide_many([]) == []
        assert in_agreement(many)
        assert many.audit().clean


def test_nothing_safe_leaves_nothing(any_url: str) -> None:
    with create(any_url, reserve=0.2, baseline_nonnegative=False) as dep:
        with pytest.raises(NoSafeAction):
            dep.decide_many([([], 0.1 * BASELINE), ([], 100.0 * BASELINE)])
        assert dep.state().rounds == 0
        dep.decide([], 0.1 * BASELINE)
        assert dep.state().rounds == 1
        assert in_agreement(dep)


def trade_until_unsafe(dep: Deployment) -> None:
    for n in range(100):
        dep.decide([], 0.15 * BASELINE, request_id=f"more-{n}")


def test_a_retry_is_answered_when_nothing_is_safe_any_more(any_url: str) -> None:
    with create(any_url, reserve=0.2, baseline_nonnegative=False) as dep:
        first = dep.decide([], 0.15 * BASELINE, request_id="a")
        with pytest.raises(NoSafeAction):
            trade_until_unsafe(dep)
        head = dep.state().seq
        assert dep.decide([], 0.15 * BASELINE, request_id="a") == first
        again = dep.decide_many([([], 0.15 * BASELINE)], request_ids=["a"])
        assert again == [first]
        assert dep.state().seq == head
        assert in_agreement(dep)


def test_reading_the_past(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url) as dep:
        made = [dep.decide(rivals(rng), BASELINE, context=[n]) for n in range(7)]
        assert [r.decision for r in dep.decisions(limit=3)] == made[:3]
        rest = dep.decisions(after=made[2].id)
        assert [r.decision for r in rest] == made[3:]
        assert [r.context for r in rest] == [[n] for n in range(3, 7)]
        assert dep.explain(made[4].id).summary == made[4].explain().summary
        assert dep.record(made[4].id).to_dict()["id"] == made[4].id
        assert dep.state().to_dict()["rounds"] == 7
        with pytest.raises(UnknownDecision):
            dep.decisions(after="other-3")
        for unknown in ("shop-0", "shop-99", "shop-01", "other-1", "", 7, None):
            with pytest.raises(UnknownDecision):
                dep.explain(unknown)  # type: ignore[arg-type]
            with pytest.raises(UnknownDecision):
                dep.observe(unknown, 0.5)  # type: ignore[arg-type]


def test_deployments_side_by_side(any_url: str) -> None:
    with create(any_url, "b") as b, create(any_url, "a", policy="linucb") as a:
        trade(a, 5)
        trade(b, 5)
        assert Deployment.names(any_url) == ["a", "b"]
        assert np.isnan(a.state().bank)
        assert a.audit().clean
        with pytest.raises(NameTaken):
            create(any_url, "a")
        with pytest.raises(UnknownDeployment):
            Deployment.open(any_url, "c")
        with pytest.raises(UnknownDecision):
            a.observe("b-1", 0.5)


def test_a_closed_object_says_so(any_url: str) -> None:
    dep = create(any_url)
    dep.close()
    dep.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        dep.decide([], BASELINE)
    with pytest.raises(StoreUnavailable, match="closed"):
        dep.audit()


def test_on_arrival(any_url: str) -> None:
    with create(any_url, absorb="on-arrival") as dep:
        trade(dep, 30)
        assert dep.state().waiting == 0
        assert in_agreement(dep)
        assert dep.audit().clean


def test_lazy_import() -> None:
    assert c4b.Deployment is Deployment
    with pytest.raises(AttributeError):
        _ = c4b.NoSuchThing  # type: ignore[attr-defined]


def test_a_refuted_model_is_recorded_and_latches(any_url: str) -> None:
    """Rewards far outside the declared noise: an alarm in the journal, and from then on the baseline."""
    with create(any_url, policy="reserve-c4b+", snapshot_every=5) as dep:
        rng = np.random.default_rng(0)
        for n in range(30):
            made = dep.decide(rivals(rng), BASELINE)
            dep.observe(made.id, 5.0 * (-1) ** n)
        assert dep.state().alarm is not None
        assert dep.decide(rivals(rng), BASELINE).is_baseline
        last = dep.decisions()[-1]
        assert last.decision.alarm == dep.state().alarm
        assert "ALARM" in dep.explain(last.decision.id).summary
        assert in_agreement(dep)
        assert dep.audit().clean


def test_requests_of_several_callers_in_one_commit(any_url: str) -> None:
    """One that cannot be decided gets its error, the others their decisions."""
    rng = np.random.default_rng(4)
    with create(any_url) as dep:
        pools = [rivals(rng) for _ in range(5)]
        asked = [dep.request(pool, BASELINE, f"r-{n}", {"n": n}) for n, pool in enumerate(pools)]
        first = dep.call_each(asked[:3])
        made = [each for each in first if isinstance(each, Decision)]
        assert [each.receipt.seq for each in made if each.receipt] == [1, 2, 3]
        one, two, three = (each.id for each in made)
        before = dep.state().seq
        mixed = dep.call_each([asked[0], dep.request(pools[1], BASELINE, "r-0"), asked[3], asked[4]])
        assert mixed[0] == first[0]
        assert isinstance(mixed[1], ContradictoryRequest)
        later = [each.receipt for each in mixed[2:] if isinstance(each, Decision)]
        assert [receipt.seq for receipt in later if receipt] == [before + 1, before + 2]
        twins = dep.call_each([dep.request(pools[0], BASELINE, "twin")] * 2)
        assert twins[0] == twins[1]
        assert dep.call_each([]) == []

        answers = dep.call_each(
            [dep.reported(one, 0.5), dep.reported("shop-9999", 0.5), dep.reported(two, 0.4)]
        )
        assert [type(each) for each in answers] == [type(None), UnknownDecision, type(None)]
        assert dep.call_each([dep.reported(one, 0.5), dep.reported(three, 0.3)]) == [None, None]
        again = dep.call_each([dep.reported(one, 0.6)])
        assert isinstance(again[0], ContradictoryOutcome)
        assert in_agreement(dep)
        assert dep.audit().clean
    apart = dep.call_each([asked[0], asked[1]])  # closed: the store's fault is everybody's
    assert all(isinstance(error, StoreUnavailable) for error in apart)


def test_decisions_and_outcomes_in_one_commit(any_url: str) -> None:
    rng = np.random.default_rng(5)
    with create(any_url) as dep:
        pools = [rivals(rng) for _ in range(4)]
        asked = [dep.request(pool, BASELINE, f"r-{n}") for n, pool in enumerate(pools)]
        one, two = (dep.decide(round_) for round_ in asked[:2])
        before = dep.state().seq
        answers = dep.call_each([dep.reported(one, 0.4), asked[2], dep.reported("shop-9999", 0.5)])
        assert [type(each) for each in answers] == [type(None), Decision, UnknownDecision]
        assert dep.state().seq == before + 2
        seen(dep).recent = RecentRequests()  # as if the first request were long ago
        answers = dep.call_each([asked[3], dep.reported(two, 0.5), asked[0]])
        assert [type(each) for each in answers] == [Decision, type(None), Decision]
        assert answers[2] == one
        assert dep.state().seq == before + 4
        assert in_agreement(dep)
        assert dep.audit().clean


@pytest.mark.parametrize("policy", ["refresh", "separate", "revalue", "linucb", "reserve-c4b+"])
def test_the_incumbent_offered_again_is_the_baseline(any_url: str, policy: str) -> None:
    with create(any_url, policy=policy) as dep:
        for _ in range(6):
            made = dep.decide([BASELINE], BASELINE)
            assert made.action is None
            dep.observe(made.id, 0.5)
        assert dep.state().fallbacks == 6
        report = dep.audit(sample=3)
        assert report.clean, report
        assert report.fallbacks == 6
        assert in_agreement(dep)


def test_the_baseline_executed_by_its_features_is_the_baseline(any_url: str) -> None:
    rng = np.random.default_rng(0)
    with create(any_url, "one") as one, create(any_url, "two") as two:
        for n in range(8):
            candidates = rivals(rng)
            for dep, features in ((one, None), (two, BASELINE.copy())):
                made = dep.decide(candidates, BASELINE)
                dep.executed(made.id, features)
                dep.observe(made.id, 0.1 * n)
        assert one.state().bank == two.state().bank
        executed = [entry.unpack()[0] for entry in entries_of(two) if entry.kind == "executed"]
        assert executed
        assert all(fields["baseline"] for fields in executed)
        assert two.audit().clean
