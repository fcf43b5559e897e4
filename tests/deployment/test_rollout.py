"""Shadow, freeze, ramp, close: recorded, replayed, audited, the same for every worker."""

from __future__ import annotations

import os
import signal
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel, policies
from c4b.deployment.summary.running_totals import Sum
from c4b.errors import DecisionsClosed, InvalidInput, NoSafeAction
from c4b.journal.entries import CONTROL, DECIDED
from c4b.policies.catalogue import registry
from support.shop_world import (
    BASELINE,
    THETA,
    create,
    entries_of,
    evidence_of,
    forge,
    fork,
    in_agreement,
    outcome,
    rivals,
    seen,
    trade,
    waited,
)

GOOD = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.9]])
"""The first is certainly better than the incumbent once a little is known."""


def taught(url: str, **options: object) -> Deployment:
    dep = create(url, **options)
    rows = np.random.default_rng(1).normal(size=(400, 3))
    dep.learn(rows, rows @ THETA)
    return dep


def orders(dep: Deployment) -> list[str]:
    return [entry.unpack()[0]["action"] for entry in entries_of(dep) if entry.kind == CONTROL]


def test_a_frozen_deployment_plays_the_incumbent_and_keeps_its_credit(any_url: str) -> None:
    with taught(any_url) as dep:
        assert dep.decide(GOOD, BASELINE).action == 0
        state = dep.freeze("checkout is down", by="ann")
        assert (state.mode, state.orders[0].by, state.orders[0].why) == (
            "frozen", "ann", "checkout is down",
        )  # fmt: skip
        made = dep.decide(GOOD, BASELINE, request_id="r")
        assert made.action is None
        assert (made.held, made.proposed) == ("frozen", 0)
        assert made.bank > made.bank_before  # the incumbent's credit
        assert "frozen" in str(made.explain())
        assert "candidate 0" in str(made.explain())
        assert dep.decide(GOOD, BASELINE, request_id="r") == made == dep.record(made.id).decision
        dep.observe(made.id, 0.6)
        assert dep.state().held == 1
        assert dep.thaw("it is up again", by="ben").mode == "live"
        assert dep.decide(GOOD, BASELINE).action == 0
        assert orders(dep) == ["freeze", "thaw"]
        report = dep.audit()
        assert report.clean
        assert (report.orders, report.held) == (2, 1)
        assert in_agreement(dep)


def test_orders_are_idempotent(any_url: str) -> None:
    with create(any_url) as dep:
        for _ in range(2):
            dep.freeze("first", by="ann")
            dep.ramp(0.5, "half", by="ann")
        assert dep.freeze("second", by="ben").orders[0].why == "first"
        for _ in range(2):
            dep.thaw("over", by="ann")
            dep.ramp(1.0, "full", by="ann")
            dep.go_live("it is live already", by="ann")
        for _ in range(2):
            dep.close_decisions("done", by="ann")
        assert orders(dep) == ["freeze", "ramp", "thaw", "ramp", "close"]
        assert dep.audit().clean
        assert in_agreement(dep)


def test_a_closed_deployment_takes_outcomes_and_nothing_else(any_url: str) -> None:
    with create(any_url) as dep:
        first, second = dep.decide_many([(GOOD, BASELINE)] * 2, ["a", "b"])
        assert dep.close_decisions("replaced", by="ann").mode == "closed"
        for call in (
            lambda: dep.decide(GOOD, BASELINE),
            lambda: dep.decide(GOOD, BASELINE, request_id="new"),
            lambda: dep.decide_many([(GOOD, BASELINE)] * 2, ["a", "new"]),
            lambda: dep.learn([[1.0, 0.0, 0.0]], [0.5]),
            lambda: dep.freeze("too late"),
            lambda: dep.thaw("too late"),
            lambda: dep.ramp(0.5, "too late"),
            lambda: dep.go_live("too late"),
        ):
            with pytest.raises(DecisionsClosed, match="replaced"):
                call()
        assert dep.decide(GOOD, BASELINE, request_id="a") == first  # asked before it was closed
        dep.observe(first.id, 0.5)
        dep.executed(second.id)
        dep.forget(second.id, independent=True)
        assert dep.state().pending == 0
        assert dep.audit().clean
        assert in_agreement(dep)


def test_a_ramp_allows_no_more_than_its_share_of_any_stretch(any_url: str) -> None:
    with taught(any_url) as dep:
        dep.ramp(0.3, "careful", by="ann")
        left = [not made.is_baseline for made in dep.decide_many([(GOOD, BASELINE)] * 200)]
        sums = np.concatenate([[0], np.cumsum(left)])
        for length in range(1, 200):
            assert (sums[length:] - sums[:-length]).max() <= 0.3 * length + 1
        assert (sums <= 0.3 * np.arange(201)).all()
        assert sums[-1] == 60
        dep.ramp(1.0, "full", by="ann")
        assert all(made.action == 0 for made in dep.decide_many([(GOOD, BASELINE)] * 20))
        assert dep.audit().clean
        assert in_agreement(dep)
        for share in (0.0, -0.1, 1.1, float("nan"), 1e-9, "half"):
            with pytest.raises(InvalidInput, match="share"):
                dep.ramp(share, "wrong")  # type: ignore[arg-type]


def test_what_a_ramp_saves_up_is_bounded(memory_url: str) -> None:
    """A long time without a candidate does not allow a burst later."""
    with taught(memory_url) as dep:
        dep.ramp(0.1, "careful", by="ann")
        dep.decide_many([(GOOD[:0], BASELINE)] * 300)
        later = dep.decide_many([(GOOD, BASELINE)] * 20)
        assert sum(not made.is_baseline for made in later) <= 3
        assert dep.audit().clean


def test_shadow_learns_and_spends_nothing_until_it_goes_live(any_url: str) -> None:
    with taught(any_url, mode="shadow", snapshot_every=7) as dep:
        rng, open_ = np.random.default_rng(2), []
        for n in range(30):
            made = dep.decide(GOOD, BASELINE, request_id=f"{n}")
            assert made.action is None
            assert (made.held, made.proposed) == ("shadow", 0)
            assert made.bank == made.bank_before == 0.5
            open_.append(made.id)
            if n % 3:
                dep.observe(open_.pop(0), outcome(GOOD, None, rng))
        dep.executed(open_[-1], [1.0, 0.1, 0.0], independent=True)  # evidence, not money
        before = dep.state()
        assert (before.mode, before.bank, before.held) == ("shadow", 0.5, 30)
        known = evidence_of(dep).estimate.copy()
        after = dep.go_live("the plan looks right", by="ann")
        assert (after.mode, after.bank, after.observations) == ("live", 0.5, before.observations)
        assert np.array_equal(evidence_of(dep).estimate, known)
        live = dep.decide(GOOD, BASELINE)
        assert (live.action, live.bank_before) == (0, 0.5)
        dep.observe_many([(id_, outcome(GOOD, None, rng)) for id_ in open_])  # of shadow rounds, late
        dep.executed(live.id)
        assert dep.decide(GOOD, BASELINE).action == 0
        assert dep.audit().clean
        assert in_agreement(dep)


def test_shadow_goes_live_exactly_like_a_new_deployment_with_that_history(memory_url: str) -> None:
    """The ledger begins when it goes live: the same decisions, banks and certificates, to the bit."""
    rng = np.random.default_rng(3)
    with create(memory_url, "a", mode="shadow") as shadow, create(memory_url, "b") as fresh:
        rewards = []
        for _ in range(40):
            made = shadow.decide(rivals(rng), BASELINE)
            rewards.append(outcome(GOOD, None, rng))
            shadow.observe(made.id, rewards[-1])
        fresh.learn(np.tile(BASELINE, (40, 1)), rewards)
        shadow.go_live("enough", by="ann")
        for _ in range(60):
            candidates = rivals(rng)
            one, other = shadow.decide(candidates, BASELINE), fresh.decide(candidates, BASELINE)
            assert one.action == other.action
            assert np.allclose(one.numbers, other.numbers, rtol=1e-9)
            reward = outcome(candidates, one.action, rng)
            shadow.observe(one.id, reward)
            fresh.observe(other.id, reward)
        assert shadow.audit().clean


TERMS = {"horizon": 1000, "seed": 1}


@pytest.mark.parametrize("policy", ["reserve-c4b+", "contrast", "revalue", "clucb", "c-squarecb"])
def test_every_kind_of_policy_can_be_held(memory_url: str, policy: str) -> None:
    needs = registry.needs(policies.get(policy))
    terms = {name: value for name, value in TERMS.items() if name in needs}
    mean = float(BASELINE @ THETA) if "baseline_mean" in needs else None
    rng = np.random.default_rng(5)

    def some(dep: Deployment, rounds: int) -> None:
        for _ in range(rounds):
            candidates = rivals(rng)
            made = dep.decide(candidates, BASELINE, baseline_mean=mean)
            if rng.random() < 0.8:
                dep.observe(made.id, outcome(candidates, made.action, rng))

    with create(memory_url, policy=policy, mode="shadow", snapshot_every=9, **terms) as dep:
        some(dep, 12)
        dep.go_live("now", by="ann")
        some(dep, 12)
        dep.freeze("stop", by="ann")
        some(dep, 8)
        dep.ramp(0.4, "slowly", by="ann")
        dep.thaw("on", by="ann")
        some(dep, 12)
        assert dep.audit().clean
        assert in_agreement(dep)


def test_no_bank_certifies_shadow_rounds_that_executed_something_else(
    memory_url: str,
) -> None:
    """What was executed instead of the incumbent in shadow is charged to no ledger."""

    def bank_of_all_rounds(dep: Deployment) -> float:
        summary = seen(dep).summary
        assert summary is not None
        return summary.totals.now.item(Sum.BANK)

    with create(memory_url, mode="shadow") as dep:
        made = dep.decide_many([(GOOD, BASELINE)] * 2)
        dep.executed(made[0].id)  # the incumbent, as decided
        dep.go_live("now", by="ann")
        assert bank_of_all_rounds(dep) == 0.5
        dep.executed(made[1].id, [0.0, 0.0, 2.0])  # of a round in shadow, reported late
        assert np.isnan(bank_of_all_rounds(dep))
        dep.decide(GOOD, BASELINE)
        assert np.isnan(bank_of_all_rounds(dep))
        assert in_agreement(dep)
        assert dep.audit().clean


def test_clicks_in_shadow(memory_url: str) -> None:
    """Its ledger sums rewards; the rounds in shadow are evidence for it and no rounds of its own."""
    model = LinearModel.bounded(3, 1.0, (0.0, 1.0))
    rng = np.random.default_rng(6)
    with Deployment.create(memory_url, "shop", model, "clicks", 0.1, 0.5, mode="shadow") as dep:
        for n in range(60):
            if n == 30:
                dep.go_live("now", by="ann")
            candidates = rivals(rng)
            made = dep.decide(candidates, BASELINE)
            chance = outcome(candidates, made.action, rng)
            dep.observe(made.id, float(rng.random() < min(max(chance, 0.0), 1.0)))
        assert dep.audit().clean
        assert in_agreement(dep)


def test_a_baseline_that_is_not_certified_is_not_played_by_order(memory_url: str) -> None:
    with create(memory_url, reserve=0.0, baseline_nonnegative=False) as dep:
        dep.freeze("stop", by="ann")
        with pytest.raises(NoSafeAction):
            dep.decide(GOOD, BASELINE)
        assert dep.state().rounds == 0
        assert in_agreement(dep)


@pytest.mark.parametrize(
    ("number", "fields", "finding"),
    [
        (3, {"held": None}, "held by None"),
        (3, {"proposed": 1}, "chooses candidate 1"),
        (3, {"action": 0}, "although it is held"),
        (2, {"action": "thaw"}, "changes nothing"),
        (2, {"action": "close"}, "after the deployment was closed"),
        (2, {"why": ""}, "without who or why"),
        (5, {"held": "frozen", "proposed": None}, "held by 'frozen'"),
    ],
)
def test_orders_that_were_not_followed_are_found(
    sqlite_url: str, number: int, fields: dict[str, object], finding: str
) -> None:
    """The hashes are made again, so that only the content can tell."""
    with taught(sqlite_url) as dep:
        dep.freeze("stop", by="ann")
        dep.decide(GOOD, BASELINE)
        dep.thaw("on", by="ann")
        dep.decide(GOOD, BASELINE)
        forge(dep, number, lambda old, arrays: old.update(fields))
        report = dep.audit()
    assert not report.clean
    assert finding in str(report)


def worker(url: str, seed: int) -> None:
    """Decides, observes and orders for ever."""
    rng = np.random.default_rng(seed)
    with Deployment.open(url, "shop", snapshot_every=5) as dep:
        for n in range(10_000):
            made = dep.decide(rivals(rng), BASELINE, request_id=f"{seed}-{n}")
            dep.observe(made.id, 0.5)
            order = int(rng.integers(12))
            if order < 2:
                (dep.freeze, dep.thaw)[order](f"{seed}-{n}", by=f"{seed}")
            elif order == 2:
                dep.ramp(float(rng.choice([0.1, 0.5, 1.0])), f"{seed}-{n}", by=f"{seed}")
            elif order == 3:
                dep.go_live(f"{seed}-{n}", by=f"{seed}")


@pytest.mark.slow
def test_eight_workers_with_orders_and_kills(url: str) -> None:
    """Orders, decisions and SIGKILLs in any order: one serial journal that replays and audits clean."""
    rng = np.random.default_rng(0)
    with create(url, mode="shadow", snapshot_every=5) as dep:
        trade(dep, 2)
        pids = [fork(lambda seed=seed: worker(url, seed)) for seed in range(8)]
        for kill in range(8):
            threading.Event().wait(float(rng.uniform(0.1, 0.3)))
            os.kill(pids[kill], signal.SIGKILL)
            waited(pids[kill])
            if kill < 4:
                pids.append(fork(lambda seed=100 + kill: worker(url, seed)))
        dep.close_decisions("enough", by="ann")
        for pid in pids[8:]:
            waited(pid)  # each ends with DecisionsClosed
        last = max(entry.seq for entry in entries_of(dep) if entry.kind == CONTROL)
        assert DECIDED not in {entry.kind for entry in entries_of(dep)[last:]}
        assert [action for action in orders(dep) if action == "close"] == ["close"]
        steps = [action for action in orders(dep) if action in ("freeze", "thaw")]
        assert all(one != other for one, other in pairwise(steps))
        assert seen(dep).rollout.controls == len(orders(dep))
        assert dep.audit(sample=2).clean
        assert in_agreement(dep)


FIELD = {"c-squarecb": {"seed": 3}, "c-fastcb": {"seed": 3}, "budget-first": {"horizon": 50}}


@pytest.mark.parametrize("policy", FIELD)
def test_what_was_earned_in_shadow_is_no_credit(memory_url: str, policy: str) -> None:
    """The ledger begins when it goes live, also for gates that count what plays have earned."""
    options: Any = {"mode": "shadow", "alpha": 0.1, "reserve": 0.5, **FIELD[policy]}
    model = LinearModel(dim=2, noise=0.05, norm_bound=1.0)
    with Deployment.create(memory_url, "shop", model, policy, **options) as dep:
        for _ in range(30):
            made = dep.decide([[0.0, 1.0]], [1.0, 0.0], baseline_mean=0.3)
            dep.executed(made.id, [0.0, 1.0])
            dep.observe(made.id, 0.9)
        dep.go_live("enough seen")
        dep.freeze("only the incumbent")
        dep.observe(dep.decide([[0.0, 1.0]], [1.0, 0.0], baseline_mean=0.3).id, 0.3)
        assert dep.state().bank <= 0.5 + 0.1 * 0.3
        assert dep.audit().clean
        assert in_agreement(dep)


def test_outcomes_in_shadow_do_not_stand_for_open_ones(memory_url: str) -> None:
    """Budget-first plays only when every outcome of the ledger's rounds is known."""
    model = LinearModel(dim=2, noise=0.05, norm_bound=1.0)
    options: Any = {"mode": "shadow", "reserve": 1000.0, "horizon": 20}
    with Deployment.create(memory_url, "shop", model, "budget-first", **options) as dep:
        for _ in range(10):
            dep.observe(dep.decide([[0.0, 1.0]], [0.1, 0.0], baseline_mean=0.03).id, 0.03)
        dep.go_live("enough seen")
        first, second = (dep.decide([[0.0, 1.0]], [0.1, 0.0], baseline_mean=0.03) for _ in range(2))
        assert (first.action, second.action) == (0, None)
        assert dep.audit().clean


def test_arms_refuse_other_features_in_shadow(memory_url: str) -> None:
    model = LinearModel(dim=2, noise=0.05, norm_bound=1.0)
    with Deployment.create(memory_url, "shop", model, "cucb-unknown", mode="shadow") as dep:
        made = dep.decide([[0.0, 1.0]], [1.0, 0.0])
        with pytest.raises(InvalidInput, match="unit vector"):
            dep.executed(made.id, [0.2, 0.1])
        dep.executed(made.id, [0.0, 1.0])
        dep.observe(made.id, 0.5)
        assert dep.audit().clean
