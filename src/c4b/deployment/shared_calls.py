"""Threads that call at the same time share a commit.

A thread that finds nobody at work does its call at once. Those that come while a commit is on its way to
disk wait, and one of them then does the calls of all. So the speed of the disk limits the number of
commits, not the number of calls, and a lone thread loses nothing.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from c4b.errors import C4BError, StoreUnavailable

C = TypeVar("C")
T = TypeVar("T")
MOST_CALLS, MOST_WEIGHT = 256, 2_000_000
"""Most calls, and most numbers in their candidates, of one commit; a single call may have more."""

_all: WeakSet[SharedCalls[Any, Any]] = WeakSet()
"""Those of this process, for the moment after a fork."""


class _Waiting(Generic[C, T]):
    """A call that another thread may do."""

    __slots__ = ("answer", "call", "done")

    def __init__(self, call: C) -> None:
        self.call, self.done = call, False
        self.answer: T | C4BError

    def result(self) -> T:
        if isinstance(self.answer, C4BError):
            raise self.answer
        return self.answer


class SharedCalls(Generic[C, T]):
    """Calls of one kind on one deployment.

    alone: does one call, or raises. together: does several in one commit and returns an answer or an
    error for each. weight: how many numbers a call adds to a commit.
    """

    def __init__(
        self,
        alone: Callable[[C], T],
        together: Callable[[Sequence[C]], list[T | C4BError]],
        weight: Callable[[C], int] = lambda call: 0,
    ) -> None:
        self._alone, self._together, self._weight = alone, together, weight
        self._waiting: deque[_Waiting[C, T]] = deque()
        self._turn = threading.Lock()
        _all.add(self)

    def __call__(self, call: C) -> T:
        if not self._waiting and self._turn.acquire(blocking=False):
            try:
                return self._alone(call)
            finally:
                self._turn.release()
        mine: _Waiting[C, T] = _Waiting(call)
        self._waiting.append(mine)  # one operation, which no other thread can come between
        with self._turn:
            while not mine.done:
                self._do(self._next())
        return mine.result()

    def _next(self) -> list[_Waiting[C, T]]:
        """The calls of the next commit, in order of arrival: at least one."""
        batch, weight = [self._waiting.popleft()], 0
        weight += self._weight(batch[0].call)
        while self._waiting and len(batch) < MOST_CALLS:
            weight += self._weight(self._waiting[0].call)
            if weight > MOST_WEIGHT:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _do(self, batch: list[_Waiting[C, T]]) -> None:
        answers: list[T | C4BError] = []
        try:
            answers = self._together([each.call for each in batch])
        finally:
            for n, each in enumerate(batch):
                each.answer = answers[n] if n < len(answers) else _interrupted()
                each.done = True

    def start_anew(self) -> None:
        """In a child process: threads that were in a call at the fork exist in the parent only."""
        self._waiting, self._turn = deque(), threading.Lock()


def _interrupted() -> StoreUnavailable:
    return StoreUnavailable(
        "the thread that committed this call together with its own was interrupted; it is not known "
        "whether it was recorded: ask again with the same request_id, or report the outcome again"
    )


def _after_fork() -> None:
    for calls in list(_all):
        calls.start_anew()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_after_fork)
