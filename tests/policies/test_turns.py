"""Threads that share a policy, copies of it, and processes that were forked from it."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.errors import C4BError
from support.evidence_internals import inside
from support.shop_world import fork, waited

MODEL = c4b.LinearModel(5, 0.1, 1.0)
BASELINE = np.full(5, 0.3)
THREADS, ROUNDS = 8, 60


@pytest.mark.parametrize("name", ["reserve-c4b+", "refresh"])
@pytest.mark.parametrize("as_lists", [False, True])
def test_threads_that_share_a_policy(name: str, as_lists: bool) -> None:
    """The ledger and the evidence are those of the plays that were made, and no id is given twice."""
    policy = c4b.Policy(name, MODEL, alpha=0.2, reserve=5.0)
    plays: list[tuple[str, np.ndarray, float]] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(ROUNDS):
            pool = BASELINE + 0.1 * rng.normal(size=(40, 5))
            made = policy.decide(pool.tolist() if as_lists else pool, BASELINE)
            reward = 0.3 + 0.1 * float(rng.normal())
            plays.append((made.id, BASELINE if made.action is None else pool[made.action], reward))
            policy.observe(made.id, reward)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS)))
    assert policy.rounds == len({id_ for id_, _, _ in plays}) == THREADS * ROUNDS
    assert policy.pending == ()
    features = np.array([x for _, x, _ in plays])
    prefix = features.sum(axis=0) - 0.8 * len(plays) * BASELINE
    assert policy.prefix == pytest.approx(prefix, rel=1e-9)
    known = inside(policy.evidence)
    assert known.gram == pytest.approx(features.T @ features, rel=1e-9)
    assert known.moment == pytest.approx(features.T @ [reward for _, _, reward in plays], rel=1e-9)


def test_a_policy_saved_while_other_threads_use_it_and_save_it(tmp_path: Path) -> None:
    policy, path, done = c4b.Policy("reserve-c4b+", MODEL, reserve=5.0), tmp_path / "p", threading.Event()
    pool = BASELINE + 0.1 * np.random.default_rng(1).normal(size=(6, 5))

    def play() -> None:
        while not done.is_set():
            policy.observe(policy.decide(pool, BASELINE), 0.3)

    def save(_: int) -> None:
        for _ in range(20):
            policy.save(path)
            c4b.Policy.load(path)

    with ThreadPoolExecutor(3) as threads:
        playing = threads.submit(play)
        try:
            list(threads.map(save, range(2)))
        finally:
            done.set()
        playing.result()
    assert [file.name for file in tmp_path.iterdir()] == ["p"]


def test_a_state_that_was_taken_stays_as_it_is() -> None:
    policy = c4b.Policy("refresh", MODEL, reserve=1.0)
    _, arrays = policy.state()
    before = {name: array.copy() for name, array in arrays.items()}
    policy.observe(policy.decide([BASELINE + 0.01], BASELINE), 0.5)
    assert all(np.array_equal(arrays[name], before[name], equal_nan=True) for name in before)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_copy_shares_nothing(how: Callable[[c4b.Policy], c4b.Policy]) -> None:
    policy = c4b.Policy("refresh", MODEL, reserve=1.0)
    made = policy.decide([BASELINE + 0.01], BASELINE)
    other = how(policy)
    other.observe(made.id, 0.5)
    second = other.decide([BASELINE - 0.01], BASELINE)
    assert (policy.rounds, len(policy.pending)) == (1, 1)
    assert (other.rounds, len(other.pending)) == (2, 1)
    policy.observe(made.id, 0.5)
    assert policy.decide([BASELINE - 0.01], BASELINE) == second


def test_a_fork_in_the_middle_of_a_call() -> None:
    """The child has half a decision, and no thread that would finish it."""
    whole, half = (c4b.Policy("refresh", MODEL, reserve=1.0) for _ in range(2))
    inside, leave = threading.Event(), threading.Event()

    def call() -> None:
        with half._turn:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait()

    def child() -> None:
        whole.decide([], BASELINE)
        with pytest.raises(C4BError, match="forked while another thread"):
            half.decide([], BASELINE)
        with pytest.raises(C4BError, match="forked while another thread"):
            half.learn([BASELINE], [0.5])

    try:
        assert waited(fork(child)) == 0
    finally:
        leave.set()
        thread.join()
    half.decide([], BASELINE)


@pytest.mark.parametrize("name", ["reserve-c4b+", "refresh", "budget-first"])
def test_a_pickle_carries_no_kernel(name: str) -> None:
    """A kernel that comes with a pickle is compiled anew, for a minute, in each process that reads it."""
    horizon = 100 if name == "budget-first" else None
    written = pickle.dumps(c4b.Policy(name, MODEL, reserve=1.0, horizon=horizon))
    assert b"numba" not in written
    assert b"c4b.evidence.absorption" not in written


@pytest.mark.parametrize("confidence", ["several-ridges", "adaptive", "nested"])
@pytest.mark.parametrize("made_again", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_a_copy_knows_its_own_outcomes(
    made_again: Callable[[c4b.Policy], c4b.Policy], confidence: str
) -> None:
    first = c4b.Policy("refresh", c4b.LinearModel(2, 0.1, 1.0, confidence=confidence), reserve=1.0)
    first.learn([[1.0, 0.0]] * 3, [0.5] * 3)
    again = made_again(first)
    assert again.gate.fingerprint() == first.gate.fingerprint()
    again.learn([[1.0, 0.0]], [0.9])
    assert (first.gate.observations, again.gate.observations) == (3, 4)
    assert again.gate.fingerprint() != first.gate.fingerprint()
