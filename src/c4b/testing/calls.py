"""Requirements on the calls: their results, their possible order and the errors that they raise."""

from __future__ import annotations

import gc
import math
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from c4b.errors import C4BError, ContradictoryOutcome, LaterOutcomeKnown
from c4b.policies import CompiledGate, Played, Policy
from c4b.policies.catalogue import registry
from c4b.policies.gate_run import GateRun
from c4b.policies.rounds.round import BASELINE_MEAN, Round
from c4b.testing.kit import Factory, requirement
from c4b.testing.world import SLACK, World, answer_of, decided, lived, state

ROUNDS = 40


@requirement("decides before any data")
def _before_data(make: Factory, seed: int) -> str | None:
    policy = make()
    world, gate = World.of(policy, seed), policy.gate
    for x in (world.baseline(), world.baseline()):
        if not isinstance(gate, CompiledGate):
            continue
        reach = policy.model.norm_bound * float(np.linalg.norm(x))  # some theta of norm S attains it
        low, high = gate.evidence.lower(x), gate.evidence.upper(x)
        least = 0.0 if world.one_hot else -reach * (1.0 - SLACK)  # an arm's mean is not negative
        assert low <= least, "the interval is too narrow without data"
        assert high >= reach * (1.0 - SLACK), "the interval is too narrow without data"
    for decision, _ in decided(policy, world, world.rounds(5)):
        assert math.isfinite(decision.bank) == policy.spec.gated, f"bank is {decision.bank}"
    return None


@requirement("plays the baseline when there are no candidates")
def _no_candidates(make: Factory, seed: int) -> str | None:
    policy, world, _ = lived(make, seed)
    baseline = world.baseline()
    for decision, _executed in decided(policy, world, [(np.empty((0, len(baseline))), baseline)]):
        assert decision.action is None
        assert decision.is_baseline
        assert len(decision.explain()) == 0
    return None


@requirement("says what it does")
def _says_what_it_does(make: Factory, seed: int) -> str | None:
    policy, world, _ = lived(make, seed)
    seen = set()
    told = BASELINE_MEAN in registry.needs(policy.spec)  # a told mean may be worth more than one set
    for decision, _executed in decided(policy, world, world.rounds(ROUNDS)):
        seen.add(decision.id)
        assert repr(decision.bank) == repr(policy.bank), "decision.bank is not the policy's bank"
        chosen = [c.candidate for c in decision.explain() if c.chosen]
        assert chosen == ([] if decision.is_baseline else [decision.action])
        for c in decision.explain():
            below = c.joint < c.separate - SLACK * max(1.0, abs(c.separate))
            assert told or not below, "joint below separate"
            if c.chosen and policy.spec.gated:
                assert c.admissible, f"candidate {c.candidate} was played with margin {c.margin}"
                assert c.margin == decision.bank, "the bank is not the margin of what was played"
        policy.observe(decision.id, 0.0)
    assert len(seen) == policy.rounds - 12 or not policy.baseline_nonnegative, "ids are not unique"
    return None


@requirement("is deterministic")
def _deterministic(make: Factory, seed: int) -> str | None:
    stories = []
    for _ in range(2):
        policy = make()
        world, answers = World.of(policy, seed), []
        for decision, executed in decided(policy, world, world.rounds(ROUNDS)):
            answers.append(answer_of(decision))
            policy.observe(decision.id, world.reward(executed))
        stories.append((answers, state(policy)))
    assert stories[0] == stories[1], "the same calls gave another result"
    return None


@requirement("continues bit for bit after save and load")
def _save_load(make: Factory, seed: int) -> str | None:
    policy, world, ids = lived(make, seed)
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "state")
        loaded = type(policy).load(Path(folder) / "state")
    assert state(loaded) == state(policy), "the loaded state differs"
    assert loaded.pending == policy.pending, "pending ids differ"
    rewards, rounds = world.rng.normal(size=len(ids)).tolist(), world.rounds(10)
    answers = []
    for each in (policy, loaded):
        for id_, reward in zip(reversed(ids), rewards, strict=True):
            each.observe(id_, reward)
        answers.append(
            ([answer_of(decision) for decision, _ in decided(each, world, rounds)], state(each))
        )
    assert answers[0] == answers[1], "the two continue differently"
    return None


@requirement("absorbs delayed outcomes in the order of decisions")
def _delays(make: Factory, seed: int) -> str | None:
    if make().absorb != "in-order":
        return "outcomes are absorbed on arrival"
    states = []
    for reverse in (False, True):
        policy, world, ids = lived(make, seed)
        outcomes = list(zip(ids, world.rng.normal(size=len(ids)).tolist(), strict=True))
        if reverse:
            for id_, reward in outcomes[:0:-1]:
                before = policy.gate.fingerprint()
                policy.observe(id_, reward)
                assert policy.gate.fingerprint() == before, "absorbed ahead of an earlier one"
            policy.observe(*outcomes[0])
        else:
            policy.observe_many(outcomes)
        states.append(state(policy))
    assert states[0] == states[1], "the order of arrival changed the state"
    return None


@requirement("does not care how candidates are ordered or repeated")
def _order(make: Factory, seed: int) -> str | None:
    world = World.of(make(), seed)
    baseline = world.baseline()
    pool = world.pool(baseline, 9)
    order = world.rng.permutation(9)
    found = []
    for candidates in (pool, pool[order], np.vstack([pool, pool[:4]])):
        policy, _, _ids = lived(make, seed)
        for decision, executed in decided(policy, world, [(candidates, baseline)]):
            found.append((executed.tobytes(), *map(repr, decision[2:5])))
    assert len(set(found)) <= 1, "another order or a duplicate changed what is played or banked"
    return None


@requirement("the incumbent offered again is the baseline")
def _incumbent_again(make: Factory, seed: int) -> str | None:
    if make().model.misspecification:
        return "with misspecification equal features may have different means"
    policy, world, _ = lived(make, seed)
    for _ in range(ROUNDS):
        baseline = world.baseline()
        for decision, _executed in decided(policy, world, [(np.stack([baseline, baseline]), baseline)]):
            assert decision.is_baseline, "a candidate with the baseline's features was played as another"
    return None


@requirement("bad input changes nothing")
def _bad_input(make: Factory, seed: int) -> str | None:
    policy, world, ids = lived(make, seed)
    dim, one = policy.model.dim, ids[-1]
    baseline = world.baseline()
    nan, wide = np.full(dim, np.nan), np.ones(dim + 1)
    mean = world.told(policy, baseline)
    wrong_mean = 0.5 if mean is None else None  # not asked for, or missing
    bad: list[Callable[[], Any]] = [
        lambda: policy.decide([nan], baseline, mean),
        lambda: policy.decide([wide], baseline, mean),
        lambda: policy.decide([baseline], nan, mean),
        lambda: policy.decide([baseline], np.full(dim, np.inf), mean),
        lambda: policy.decide([baseline], baseline, wrong_mean),
        lambda: policy.decide([baseline], baseline, math.nan),
        lambda: policy.decide_many([Round([], baseline, mean), Round([nan], baseline, mean)]),
        lambda: policy.observe(one, math.nan),
        lambda: policy.observe(one, math.inf),
        lambda: policy.observe("unknown", 0.5),
        lambda: policy.observe_many([(one, 0.5), ("unknown", 0.5)]),
        lambda: policy.executed(one, wide),
        lambda: policy.forget("unknown"),
        lambda: policy.learn([baseline], [0.5]),  # too late
    ]
    for n, call in enumerate(bad):
        before = state(policy)
        try:
            call()
        except C4BError:
            assert state(policy) == before, f"refused call {n} changed the state"
        else:
            raise AssertionError(f"bad call {n} was accepted")
    return None


@requirement("a repeated outcome is harmless, a contradiction is not")
def _repetition(make: Factory, seed: int) -> str | None:
    policy, _world, ids = lived(make, seed)
    for id_ in ids:
        policy.observe(id_, 0.25)
        before = state(policy)
        policy.observe(id_, 0.25)
        policy.observe_many([(id_, 0.25)])
        assert state(policy) == before, "reporting the same outcome again changed the state"
        try:
            policy.observe(id_, 0.75)
        except ContradictoryOutcome:
            assert state(policy) == before, "a contradiction changed the state"
        else:
            raise AssertionError("a contradiction was accepted")
    return None


@requirement("refuses what a later outcome may have caused")
def _late_reports(make: Factory, seed: int) -> str | None:
    for name in ("forget", "executed"):
        policy, world, ids = lived(make, seed)
        policy.observe(ids[-1], 0.25)
        number = policy.rounds - len(ids)
        other = next(x for x in world.others() if not policy._run.is_recorded(number, x))
        reported = (ids[0],) if name == "forget" else (ids[0], other)
        before = state(policy)
        try:
            getattr(policy, name)(*reported)
        except LaterOutcomeKnown:
            assert state(policy) == before, f"a refused {name} changed the state"
        else:
            raise AssertionError(f"{name} was accepted after a later outcome without an assertion")
        getattr(policy, name)(*reported, independent=True)
        after = state(policy)
        assert after != before, f"{name} with the assertion did nothing"
        if name == "forget":
            policy.forget(ids[0])
            assert state(policy) == after, "forgetting again changed the state"
    return None


def _size(policy: Policy) -> int:
    return sum(array.nbytes for array in policy.state()[1].values())


@requirement("takes over recorded decisions without deciding again")
def _recharge(make: Factory, seed: int) -> str | None:
    policy, copy = make(), make()
    world, run = World.of(policy, seed), GateRun(copy.gate, policy.absorb == "in-order")
    history = world.history(10)
    policy.learn(*history)
    copy.gate.learn(*history)
    rounds = world.rounds(ROUNDS)
    for number, (pool, baseline) in enumerate(rounds):
        for decision, executed in decided(policy, world, [(pool, baseline)]):
            mean = world.told(policy, baseline)
            played = Played(executed.copy(), baseline, decision.is_baseline, mean)
            run.recharge(decision.bank, played)
            if number % 7 == 3:
                policy.executed(decision.id)
                run.amend(run.rounds - 1, None, policy.bank)
            reward = world.reward(executed)
            policy.observe(decision.id, reward)
            run.report(run.rounds - 1, reward)
    ours, theirs = policy.gate.snapshot(), copy.gate.snapshot()
    same = {name for name in ours if ours[name].tobytes() == theirs[name].tobytes()}
    assert same == set(ours), f"{sorted(set(ours) - same)} differ"
    return None


WARM_UPS = 3
"""Runs through all rounds before memory is compared: at first NumPy keeps small buffers."""


@requirement("memory does not grow with rounds")
def _memory(make: Factory, seed: int) -> str | None:
    policy, world, ids = lived(make, seed)
    policy.observe_many([(id_, 0.0) for id_ in ids])
    rounds, repeats = world.rounds(100), 10

    def live() -> int:
        for decision, _ in decided(policy, world, rounds):
            policy.observe(decision.id, 0.0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    size = _size(policy)
    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        for _ in range(WARM_UPS):
            first = live()
        for _ in range(repeats):
            last = live()
    finally:
        if not tracing:
            tracemalloc.stop()
    assert last - first < 8 * repeats * len(rounds), "the policy holds more memory every round"
    assert _size(policy) == size, "the state grows"
    return None
