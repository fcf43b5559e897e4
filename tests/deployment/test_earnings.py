"""What was earned: the certified uplift never exceeds the truth while theta is in the confidence set."""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.deployment.summary import running_totals
from c4b.errors import InvalidInput
from support.same_state import plain_part

DIM = 3
_numbers = itertools.count()


def store() -> str:
    """A store of its own."""
    return f"memory://earnings-{next(_numbers)}"


class World(NamedTuple):
    """A world that knows its theta, and the true means of what was executed."""

    policy: str
    signed: bool = False
    misspecification: float = 0.0
    clicks: bool = False
    reserve: float = 1.0


WORLDS = [
    World("reserve-c4b+"),
    World("refresh"),
    World("separate"),
    World("linucb", reserve=0.0),
    World("clucb"),
    World("maximin"),
    World("clicks", clicks=True),
    World("reserve-c4b+", misspecification=0.02),
    World("refresh", signed=True, reserve=5.0),
]


class Play:
    """One episode: every mean is known here, and nowhere else."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, np.random.default_rng(seed)
        epsilon = world.misspecification
        self.model = (
            LinearModel.bounded(DIM, norm_bound=1.0)
            if world.clicks
            else LinearModel(DIM, noise=0.1, norm_bound=1.0, misspecification=epsilon)
        )
        self.theta = np.array([0.5, *self.random.uniform(-0.3, 0.3, DIM - 1)])
        self.dep = Deployment.create(
            store(), "shop", self.model, world.policy, 0.1, world.reserve, not world.signed
        )
        rows = self._features(40)
        self.dep.learn(rows, [self._reward(self._mean(row)) for row in rows])
        self.gains: list[float] = []  # true mean executed less true mean of the incumbent, by decision
        self.bases: list[float] = []
        self.open: list[tuple[str, float]] = []
        self.was_covered = True

    def _features(self, count: int) -> np.ndarray[Any, Any]:
        rest = self.random.uniform(-0.5, 0.5, (count, DIM - 1))
        return np.column_stack([np.ones(count), rest])

    def _mean(self, features: np.ndarray[Any, Any]) -> float:
        bend = self.world.misspecification * math.sin(40.0 * features[1])
        return float(features @ self.theta) + bend

    def _reward(self, mean: float) -> float:
        if self.world.clicks:
            return float(self.random.random() < mean)
        return mean + 0.1 * float(self.random.standard_normal())

    def step(self) -> None:
        candidates, baseline = self._features(6), self._features(1)[0]
        base = self._mean(baseline)
        told = base if self.world.policy == "clucb" else None
        made = self.dep.decide(candidates, baseline, baseline_mean=told)
        mean = base if made.action is None else self._mean(candidates[made.action])
        if self.random.random() < 0.1:  # somebody shows something else
            other = self._features(1)[0] if self.random.random() < 0.5 else None
            self.dep.executed(made.id, other, independent=True)
            mean = base if other is None else self._mean(other)
        self.gains.append(mean - base)
        self.bases.append(base)
        self.open.append((made.id, self._reward(mean)))
        while self.open and self.random.random() < 0.6:
            self.dep.observe(*self.open.pop(0))
        self.was_covered &= self.covered()

    def covered(self) -> bool:
        state = self.dep._transactor.read(lambda journal, state: state)
        return bool(state.gate.covers(self.theta))

    def truth(self, start: int, stop: int) -> tuple[float, float]:
        return sum(self.gains[start:stop]), sum(self.bases[start:stop])


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.policy}-{w.misspecification}-{w.signed}")
def test_what_is_certified_is_true_wherever_theta_is_covered(world: World) -> None:
    checked, positive = 0, 0
    for seed in range(2):
        play = Play(world, seed)
        for n in range(1, 91):
            play.step()
            if n % 30 or not play.was_covered:
                continue
            for last in (None, 10, 50):
                found = play.dep.earnings(last=last)
                gain, base = play.truth(n - found.decisions, n)
                assert found.certified <= gain + 1e-9
                assert gain >= found.certified_share * base - 1e-9 or math.isnan(found.certified_share)
                assert not found.uplift < found.certified
                checked += 1
                positive += found.certified > 0.0
            for point in play.dep.earnings_course():
                assert point.certified <= play.truth(0, point.round)[0] + 1e-9
        found = play.dep.earnings()
        assert found.decisions == 90
        if world.policy not in ("linucb", "clucb", "maximin"):  # what the promise says is certified, too
            mean = 0.3 if world.clicks else 0.4  # at least that is known of the incumbent
            assert found.certified_share >= -0.1 - world.reserve / (mean * 90)
        play.dep.close()
    assert checked >= 9  # covered episodes were seen
    assert positive or world.clicks or world.misspecification or world.policy in ("separate", "clucb")


def test_by_hand() -> None:
    """One ellipsoid, two dimensions: the bounds are those of the closed form."""
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, "linucb", 0.1) as dep:
        dep.learn([[1.0, 0.0], [1.0, 1.0], [1.0, 0.5]] * 30, [0.5, 0.8, 0.65] * 30)
        made = dep.decide([[1.0, 1.0]], [1.0, 0.0])
        dep.decide([[1.0, 0.5]], [1.0, 0.0])
        dep.observe(made.id, 0.9)
        found = dep.earnings()
        gate = dep._transactor.read(lambda journal, state: state).gate
        assert (found.decisions, found.fallbacks, found.outcomes, found.earned) == (2, 0, 1, 0.9)
        assert found.uplift == pytest.approx(np.array([0.0, 1.5]) @ gate.estimate)
        assert found.incumbent == pytest.approx(np.array([2.0, 0.0]) @ gate.estimate)
        assert found.certified == pytest.approx(gate.evidence.lower([0.0, 1.5]))
        share = found.certified_share
        assert gate.evidence.lower([-2.0 * share, 1.5]) == pytest.approx(0.0, abs=1e-9)
        assert share >= found.certified / gate.evidence.upper([2.0, 0.0])  # joint beats separate
        assert 0.0 < found.certified < found.uplift


def test_the_incumbent_alone_earns_exactly_what_it_earns() -> None:
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, "refresh") as dep:
        assert dep.earnings().decisions == 0
        assert dep.earnings_course() == []
        dep.decide([], [1.0, 0.0])
        found = dep.earnings()
        assert (found.uplift, found.certified, found.certified_share) == (0.0, 0.0, 0.0)


def test_an_alarm_voids_what_was_certified_and_says_since_when() -> None:
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, alpha=0.1, reserve=5.0) as dep:
        dep.learn([[1.0, 0.0], [1.0, 1.0]] * 50, [0.3, 0.9] * 50)
        first = dep.decide([[1.0, 1.0]], [1.0, 0.0])
        dep.observe(first.id, 0.9)
        assert dep.earnings().certified > 0.0
        while dep.state().alarm is None:
            last = dep.decide([[1.0, 1.0]], [1.0, 0.0])
            dep.observe(last.id, -5.0)
        found, status = dep.earnings(), dep.state()
        assert math.isnan(found.certified)
        assert math.isnan(found.certified_share)
        assert found.void == status.alarm
        assert found.to_dict()["certified"] is None
        assert status.alarm_after == last.id
        assert status.alarm_decisions == status.rounds
        assert status.alarm_since is not None
        assert dep.record(first.id).alarm_later == status.alarm_since
        later = dep.record(dep.decide([[1.0, 1.0]], [1.0, 0.0]).id)
        assert later.alarm_later is None
        assert later.because.startswith("Latch:")


def test_windows_of_time_and_of_decisions() -> None:
    model = LinearModel(1, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model) as dep:
        now = [1000.0]
        dep._transactor.clock = lambda: now[0]
        for _ in range(300):
            now[0] += 60.0
            dep.decide([], [1.0])
        assert dep.earnings(seconds=30.0).decisions == 1
        assert 55 <= dep.earnings(seconds=3600.0).decisions <= 66
        assert 95 <= dep.earnings(last=100).decisions <= 105
        assert dep.earnings(last=1000).decisions == dep.earnings(seconds=1e6).decisions == 300
        for wrong in ({"seconds": 0.0}, {"last": 0}, {"seconds": 1.0, "last": 1}):
            with pytest.raises(InvalidInput):
                dep.earnings(**wrong)  # type: ignore[arg-type]


def test_an_interrupted_answer_loses_nothing_and_adds_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, "refresh", reserve=1.0) as dep:
        for _ in range(20):
            dep.observe(dep.decide([[1.0, 0.1]], [1.0, 0.0]), 0.5)

        def interrupted(*sums: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(running_totals, "add_up", interrupted)
            with pytest.raises(KeyboardInterrupt):
                dep.earnings()
        found = dep.earnings()
        assert (found.decisions, found.outcomes, found.earned) == (20, 20, 10.0)


def test_taken_back_decisions_leave_no_trace() -> None:
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, "refresh", baseline_nonnegative=False) as dep:
        dep.learn([[1.0, 0.0]] * 50, [0.5] * 50)
        for _ in range(70):
            dep.decide([[1.0, 0.1]], [1.0, 0.0], labels=["red"])
        state = dep._transactor.read(lambda journal, state: state)
        before, kept = deepcopy(plain_part(state)), dep.items()
        rounds = [([[1.0, 0.1]], [1.0, 0.0])] * 40 + [([[1.0, 0.1]], [math.inf, 0.0])]
        with pytest.raises(InvalidInput):
            dep.decide_many(rounds, labels=[["red"]] * 20 + [["new"]] * 21)
        state = dep._transactor.read(lambda journal, state: state)
        assert plain_part(state) == before
        assert repr(dep.items()) == repr(kept)


def test_a_gate_without_a_set_certifies_the_promise_alone() -> None:
    model = LinearModel(2, noise=0.1, norm_bound=1.0)
    with Deployment.create(store(), "shop", model, "c-squarecb", 0.1, 0.0, seed=1) as dep:
        dep.learn([[1.0, 0.0], [1.0, 0.5]] * 60, [0.5, 0.75] * 60)
        for _ in range(60):
            made = dep.decide([[1.0, 0.5]], [1.0, 0.0], baseline_mean=0.5)
            dep.observe(made, 0.5 if made.is_baseline else 0.75)
        found = dep.earnings()
        assert found.decisions > found.fallbacks
        assert found.certified_share == -0.1
        assert math.isnan(found.certified)
        assert math.isnan(dep.earnings(last=30).certified_share)  # a window has no bank of its own


def test_a_bank_that_counts_on_the_rest_of_a_phase_is_no_money_yet() -> None:
    """``clucb2t`` plays what later rounds of the phase will pay for. Without noise the set holds."""
    theta, baseline, bad = np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    rows = np.tile(np.eye(2), (300, 1))
    model, uplift = LinearModel(2, noise=0.01, norm_bound=1.001), 0.0
    with Deployment.create(store(), "shop", model, "clucb2t", 0.5, 1.0, baseline_floor=1.0) as dep:
        dep.learn(rows, rows @ theta)
        plays = 0
        for n in range(45):
            made = dep.decide([bad], baseline, baseline_mean=1.0)
            reward = float((baseline if made.is_baseline else bad) @ theta)
            plays += not made.is_baseline
            dep.observe(made.id, reward)
            uplift += reward - 1.0
            earnings = dep.earnings()
            assert earnings.certified <= uplift
            assert not earnings.certified_share > uplift / (n + 1)
            assert all(point.certified <= 0.0 for point in dep.earnings_course())
        assert plays > 3
