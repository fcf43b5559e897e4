"""Scores of large pools by several threads: the same decisions, whatever the number of threads."""

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import c4b
from c4b._validate import Array
from c4b.policies.compiled import sliced_scores

DIM = 17
BASELINE = np.eye(DIM)[0]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliced_scores, "LEAST", 300)
    monkeypatch.setattr(sliced_scores, "SLICE", 96)


def policy(seed: int = 0, **terms: float) -> c4b.Policy:
    rng = np.random.default_rng(seed)
    gate = c4b.Policy("reserve-c4b+", c4b.LinearModel(DIM, 0.3, 1.5), **terms)
    rows = np.c_[np.ones(60), rng.normal(size=(60, DIM - 1))]
    gate.learn(rows, 0.8 * rows[:, 0] + 0.3 * rng.normal(size=60))
    return gate


def pool(size: int, seed: int) -> Array:
    return np.c_[np.ones(size), 0.15 * np.random.default_rng(seed).normal(size=(size, DIM - 1))]


def rounds(gate: c4b.Policy) -> list[tuple[int | None, float, bytes, bytes]]:
    """What some decisions were, with every number of every candidate."""
    found = []
    for seed, size in enumerate((300, 301, 959, 960, 2000, 40)):
        decision = gate.decide(pool(size, seed), BASELINE)
        found.append(
            (decision.action, decision.bank, decision.computed.tobytes(), decision.details.tobytes())
        )
        gate.observe(decision.id, 0.7)
    return found


@pytest.mark.parametrize(
    "terms", [{"reserve": 10.0}, {"alpha": 1e-4}], ids=["open", "nothing admissible"]
)
def test_every_number_of_threads_gives_the_same_bits(
    terms: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv(sliced_scores.VARIABLE, threads)
        answers.append(rounds(policy(**terms)))
    assert answers[0] == answers[1] == answers[2]


def test_threads_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = sliced_scores._Helpers.ask
    monkeypatch.setattr(
        sliced_scores._Helpers,
        "ask",
        lambda self, most, n, work: asked.append((most, n)) or ask(self, most, n, work),
    )
    monkeypatch.setenv(sliced_scores.VARIABLE, "3")
    policy(reserve=10.0).decide(pool(299, 0), BASELINE)
    assert asked == []
    policy(reserve=10.0).decide(pool(300, 0), BASELINE)
    assert asked == [(2, 2)]
    monkeypatch.setenv(sliced_scores.VARIABLE, "100000")
    policy(reserve=10.0).decide(pool(300, 0), BASELINE)
    assert asked[1:] == [(99_999, 3)]  # nobody without a slice


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_first_row_that_is_not_finite_is_named(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sliced_scores.VARIABLE, threads)
    gate, candidates = policy(reserve=10.0), pool(900, 0)
    candidates[850, 3], candidates[500, 1] = np.nan, np.inf
    before = gate.gate.ledger.copy()
    with pytest.raises(c4b.errors.InvalidInput, match=r"candidates\[500\]"):
        gate.decide(candidates, BASELINE)
    assert gate.gate.ledger.tobytes() == before.tobytes()
    with pytest.raises(c4b.errors.InvalidInput, match="baseline"):
        gate.decide(pool(900, 0), np.full(DIM, np.nan))


def test_threads_that_decide_share_the_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sliced_scores.VARIABLE, "2")
    alone = rounds(policy(reserve=10.0))
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda _: rounds(policy(reserve=10.0)), range(4)))
    assert all(answer == alone for answer in answers)


def score(size: int, threads: int, work: Callable[[int], None]) -> tuple[Array, int]:
    """What ``score_slices`` leaves and returns; ``work`` is done in each slice before it is written."""
    details = np.zeros(size)

    def decide(first: int, last: int, out: Array, _space: Array) -> tuple[int, int]:
        work(first)
        out[first:last] = 1.0
        return -1, -1

    return details, sliced_scores.score_slices(decide, (), size, details, 8, threads)


def test_whoever_has_a_slice_is_waited_for_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caller, helped, started = threading.current_thread(), threading.Event(), []
    start = threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def work(_first: int) -> None:
        if threading.current_thread() is caller:
            assert helped.wait(60)  # the helper has a slice, too
        elif not helped.is_set():
            helped.set()
            time.sleep(0.2)

    sliced_scores._HELPERS.forget()
    monkeypatch.setattr(threading.Thread, "start", start_one)
    details, bad = score(400, 4, work)
    assert len(started) == 1
    assert details.all()
    assert bad == 400


def test_an_error_in_a_slice_reaches_the_caller() -> None:
    caller, helped = threading.current_thread(), threading.Event()

    def fail_elsewhere(_first: int) -> None:
        if threading.current_thread() is not caller:
            helped.set()
            raise MemoryError("of a helper")
        assert helped.wait(60)

    with pytest.raises(MemoryError, match="of a helper"):
        score(400, 2, fail_elsewhere)
    details, _ = score(400, 2, lambda first: None)  # and nothing is left of it
    assert details.all()


def test_a_forked_process_has_helpers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sliced_scores.VARIABLE, "2")
    here = rounds(policy(reserve=10.0))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, pickle.dumps([one[:2] for one in rounds(policy(reserve=10.0))]))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        assert pickle.load(answer) == [one[:2] for one in here]
    os.waitpid(child, 0)


def test_how_many_threads_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sliced_scores.VARIABLE, raising=False)
    assert 1 <= sliced_scores.thread_limit() <= sliced_scores.MOST
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert sliced_scores.thread_limit() == 1  # a worker among others
    monkeypatch.setenv(sliced_scores.VARIABLE, "7")
    assert sliced_scores.thread_limit() == 7
    for wrong in ("0", "-1", "two", "1.5", "²"):
        monkeypatch.setenv(sliced_scores.VARIABLE, wrong)
        with pytest.raises(c4b.errors.InvalidInput, match=sliced_scores.VARIABLE):
            sliced_scores.thread_limit()
