"""Threads that call at the same time share a commit; each gets its own answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from c4b import Deployment, LinearModel
from c4b.deployment.transactions.shared_calls import MOST_WEIGHT, SharedCalls
from c4b.errors import C4BError, InvalidInput, StoreUnavailable

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
POOL, BASELINE = [[1.0, 0.1], [1.0, -0.1]], [1.0, 0.0]


class Gatherer:
    """The first call waits until ``others`` are waiting; what is done together is noted."""

    def __init__(self, others: int, weight: int = 0) -> None:
        self.others, self.batches = others, list[list[int]]()
        self.calls: SharedCalls[int, int] = SharedCalls(self.together, lambda call: weight)
        self.first_is_in, self.go = threading.Event(), threading.Event()

    def together(self, calls: Sequence[int]) -> list[int | C4BError]:
        if not self.first_is_in.is_set():
            self.first_is_in.set()
            self.go.wait(30)
        self.batches.append(list(calls))
        if 13 in calls:
            raise KeyboardInterrupt
        return [InvalidInput("call", each, "is odd") if each % 2 else -each for each in calls]

    def run(self, calls: Sequence[int]) -> list[object]:
        def one(call: int) -> object:
            try:
                return self.calls(call)
            except BaseException as error:  # noqa: BLE001 (the answer of that thread)
                return type(error)

        with ThreadPoolExecutor(len(calls) + 1) as threads:
            first = threads.submit(one, 0)
            assert self.first_is_in.wait(30)
            waiting = []
            for n, call in enumerate(calls):
                waiting.append(threads.submit(one, call))
                while len(self.calls._waiting) <= n:
                    pass
            self.go.set()
            return [first.result(), *(each.result() for each in waiting)]


def test_who_waits_is_done_in_one_commit() -> None:
    gatherer = Gatherer(5)
    assert gatherer.run([2, 4, 5, 6]) == [0, -2, -4, InvalidInput, -6]
    assert gatherer.batches == [[0], [2, 4, 5, 6]]


def test_heavy_calls_are_not_all_taken_at_once() -> None:
    gatherer = Gatherer(4, weight=MOST_WEIGHT // 2)
    assert gatherer.run([2, 4, 6]) == [0, -2, -4, -6]
    assert gatherer.batches == [[0], [2, 4], [6]]


def test_an_interrupted_thread_leaves_no_other_waiting() -> None:
    answers = Gatherer(3).run([2, 13, 4])
    assert answers[0] == 0
    assert sorted(map(str, answers[1:])) == sorted(
        map(str, [KeyboardInterrupt, StoreUnavailable, StoreUnavailable])
    )


def test_a_thread_that_is_interrupted_while_it_waits_leaves_no_other_waiting() -> None:
    gatherer = Gatherer(2)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(gatherer.calls, 0)
            assert gatherer.first_is_in.wait(30)

            def interrupted() -> int:
                while len(gatherer.calls._waiting) < 1:
                    pass
                os.kill(os.getpid(), signal.SIGUSR1)
                return gatherer.calls(4)

            last = threads.submit(interrupted)
            with pytest.raises(KeyboardInterrupt):
                gatherer.calls(2)
            gatherer.go.set()
            assert (first.result(), last.result()) == (0, -4)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert gatherer.batches == [[0], [4]]


def test_each_call_is_done_once() -> None:
    done: list[int] = []

    def together(calls: Sequence[int]) -> list[int | C4BError]:
        time.sleep(0.0002 * (calls[0] % 3))
        done.extend(calls)
        return [-call for call in calls]

    shared: SharedCalls[int, int] = SharedCalls(together)

    def work(thread: int) -> list[int]:
        answers = []
        for n in range(150):
            answers.append(shared(1000 * thread + n))
            if n % (1 + thread) == 0:
                time.sleep(0.0001 * thread)
        return answers

    with ThreadPoolExecutor(8) as threads:
        answers = [each for found in threads.map(work, range(8)) for each in found]
    asked = [1000 * thread + n for thread in range(8) for n in range(150)]
    assert answers == [-call for call in asked]
    assert sorted(done) == asked


def test_threads_of_a_deployment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with Deployment.create(url, "shop", MODEL, policy="refresh", reserve=5.0) as dep:
        dep.learn([BASELINE] * 10, [1.0] * 10)

        def visits(thread: int) -> list[str]:
            ids = []
            for n in range(12):
                decision = dep.decide(POOL, BASELINE, request_id=f"{thread}-{n // 2}")
                ids.append(decision.id)
                dep.observe(decision, 1.0)
                if n == 5:
                    with pytest.raises(InvalidInput):
                        dep.observe(f"{decision.id}x", 1.0)
            return ids

        with ThreadPoolExecutor(8) as threads:
            found = [each for ids in threads.map(visits, range(8)) for each in ids]
        assert len(set(found)) == 48  # each request was asked twice
        assert dep.state().rounds == 48
        assert dep.state().pending == 0
        assert dep.audit().clean


def test_a_child_does_not_wait_for_threads_of_its_parent(tmp_path: Path) -> None:
    with Deployment.create(f"sqlite:///{tmp_path}/shop.db", "shop", MODEL, policy="refresh") as dep:
        dep.decide(POOL, BASELINE)
        with dep._calls._turn:
            child = os.fork()
            if child == 0:
                os._exit(0 if dep.decide(POOL, BASELINE).id else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert dep.state().rounds == 2
