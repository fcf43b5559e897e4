"""Scores of very large pools by several threads, a slice of the candidates at a time.

A candidate's score has the same bits in whatever company it is computed, so it matters to nobody how many
threads there are. Kernels run without the interpreter's lock.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from c4b._compilation.cache_lines import new_space
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.policies.compiled.compiled_round import NOT_FINITE

VARIABLE = "C4B_THREADS"
"""The environment variable that limits the threads of one decision."""
MOST = 4
"""Threads without a limit: beyond them memory is the bottleneck."""
LEAST = 20_000
"""Candidates from which it pays."""
SLICE = 8192
"""Candidates that a thread takes at a time. Many slices, so that nobody waits long for a slow thread."""


def thread_limit() -> int:
    """Threads that one decision may have: C4B_THREADS, or as many as there are processors, MOST at most.

    One in a process of :mod:`multiprocessing`, as the workers of a service and of an audit are: others
    like it share the machine.
    """
    text = os.environ.get(VARIABLE)
    if text:
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise InvalidInput(VARIABLE, text, "must be a whole number of at least 1")
        return int(text)
    if multiprocessing.parent_process() is not None:
        return 1
    known = getattr(os, "sched_getaffinity", None)
    return min(len(known(0)) if known else os.cpu_count() or 1, MOST)


class _Helpers:
    """Threads that help whoever decides. A process that was forked starts with none."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: after a fork the threads are the parent's, and so is whoever held the lock."""
        self._lock = threading.Lock()
        self._executors: dict[int, ThreadPoolExecutor] = {}

    def ask(self, most: int, count: int, work: Callable[[], None]) -> None:
        """Let ``count`` of ``most`` threads do ``work``; fewer where no more can be started, or where the
        interpreter is about to end."""
        with self._lock:
            executor = self._executors.get(most)
            if executor is None:
                executor = self._executors[most] = ThreadPoolExecutor(most, "c4b-scores")
        with suppress(RuntimeError):
            for _ in range(count):
                executor.submit(work)


_HELPERS = _Helpers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HELPERS.forget)


def score_slices(
    decide: Callable[..., Any], given: tuple[Any, ...], size: int, details: Array, room: int, threads: int
) -> int:
    """Write the scores of all candidates into ``details`` (ROWS, K) by calls of the kernel ``decide``
    with ``given``, each in ``room`` numbers of its own. Returns the first row that is not finite, or
    K."""
    starts, turn = iter(range(0, size, SLICE)), threading.Condition()
    at_work, bad, failures = 0, size, list[BaseException]()

    def work() -> None:
        nonlocal at_work, bad
        with turn:
            at_work += 1  # before a slice is taken: whoever has one is waited for
        try:
            space = None
            while True:
                with turn:
                    first = next(starts, size)
                if first >= size:
                    return
                space = new_space(room) if space is None else space
                found = decide(*given, first, min(first + SLICE, size), details, space)
                if found[0] == NOT_FINITE:
                    with turn:
                        bad = min(bad, found[1])
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            with turn:
                at_work -= 1
                turn.notify_all()

    _HELPERS.ask(threads - 1, min(threads, math.ceil(size / SLICE)) - 1, work)
    work()
    with turn:
        turn.wait_for(lambda: at_work == 0)
    if failures:
        raise failures[0]
    return bad
