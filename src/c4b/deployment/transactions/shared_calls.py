"""Threads that call at the same time share a commit.

A thread that finds nobody at work does its call at once. Those that come while a commit is on its way to
disk wait, and one of them then does the calls of all. So the speed of the disk limits the number of
commits, not the number of calls, and a lone thread loses nothing.

Threads whose calls were answered together often call again at once. The first of them waits for the
others, for at most half the time of a commit: else it would commit alone, and they would wait for that.
If they do not come, the next commits wait for nobody.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from c4b._forks import after_fork
from c4b.errors import C4BError, StoreUnavailable

C = TypeVar("C")
T = TypeVar("T")
MOST_CALLS, MOST_WEIGHT = 256, 2_000_000
"""Most calls, and most numbers in their candidates, of one commit; a single call may have more."""
LONGEST = 0.02
"""Most seconds to wait for others, however long a commit takes."""
MOST_PAUSES = 64
"""Most commits for which nobody waits for others, after that was in vain again and again."""

_all: WeakSet[SharedCalls[Any, Any]] = after_fork(lambda each: each.start_anew())


class _Waiting(Generic[C, T]):
    """A call that another thread may do."""

    __slots__ = ("_asleep", "answer", "call", "done")

    def __init__(self, call: C) -> None:
        self.call, self.done = call, False
        self.answer: T | C4BError
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def sleep(self, seconds: float = -1) -> None:
        """Until somebody calls ``wake``, before or from now on."""
        self._asleep.acquire(timeout=seconds)

    def wake(self) -> None:
        with suppress(RuntimeError):  # it was called twice
            self._asleep.release()


class SharedCalls(Generic[C, T]):
    """Calls on one deployment.

    together: does some calls in one commit and returns an answer or an error for each. weight: how many
    numbers a call adds to a commit.
    """

    def __init__(
        self,
        together: Callable[[Sequence[C]], Sequence[T | C4BError]],
        weight: Callable[[C], int] = lambda call: 0,
    ) -> None:
        self._together, self._weight = together, weight
        self._waiting: deque[_Waiting[C, T]] = deque()
        self._turn = threading.Lock()
        self._gathering: _Waiting[C, T] | None = None
        self._callers = 1  # who seem to call again and again
        self._patience = 0.0  # seconds to wait for them
        self._pauses = self._in_vain = 0
        _all.add(self)

    def __call__(self, call: C) -> T:
        if self._callers == 1 and self._turn.acquire(blocking=False):
            try:
                return _result(self._done([call])[0])
            finally:
                self._turn.release()
                self._wake_next()
        mine: _Waiting[C, T] = _Waiting(call)
        self._waiting.append(mine)  # one operation, which no other thread can come between
        try:
            while not mine.done:
                if self._turn.acquire(blocking=False):
                    try:
                        if not mine.done:
                            self._gather(mine)
                            self._do(self._next())
                    finally:
                        self._turn.release()
                        self._wake_next()
                else:
                    gathering = self._gathering
                    if gathering is not None and len(self._waiting) >= self._callers:
                        gathering.wake()
                    mine.sleep()
        except BaseException:
            with suppress(ValueError):  # it is being done
                self._waiting.remove(mine)
            self._wake_next()
            raise
        return _result(mine.answer)

    def _wake_next(self) -> None:
        """Whoever waits finds the turn free now, or finds somebody who will do this later."""
        if self._waiting:
            with suppress(IndexError):
                self._waiting[0].wake()

    def _gather(self, mine: _Waiting[C, T]) -> None:
        """Wait for those who seem to call again."""
        if len(self._waiting) >= self._callers:
            return
        if self._pauses:
            self._pauses -= 1
            return
        deadline = monotonic() + self._patience
        self._gathering = mine
        try:
            while len(self._waiting) < self._callers and (left := deadline - monotonic()) > 0.0:
                mine.sleep(left)
        finally:
            self._gathering = None
        came = len(self._waiting) >= self._callers
        self._pauses = self._in_vain = 0 if came else min(2 * self._in_vain + 1, MOST_PAUSES)

    def _next(self) -> list[_Waiting[C, T]]:
        """The calls of the next commit, in order of arrival: at least one."""
        batch, weight = list[_Waiting[C, T]](), 0
        with suppress(IndexError):  # no more, or a thread that was interrupted took its call back
            while len(batch) < MOST_CALLS:
                weight += self._weight(self._waiting[0].call)
                if batch and weight > MOST_WEIGHT:
                    break
                batch.append(self._waiting.popleft())
        return batch

    def _do(self, batch: list[_Waiting[C, T]]) -> None:
        answers: Sequence[T | C4BError] = []
        try:
            answers = self._done([each.call for each in batch])
        finally:
            for n, each in enumerate(batch):
                each.answer = answers[n] if n < len(answers) else _interrupted()
                each.done = True
                each.wake()

    def _done(self, calls: list[C]) -> Sequence[T | C4BError]:
        started = monotonic()
        try:
            return self._together(calls)
        finally:
            self._patience = min((monotonic() - started) / 2, LONGEST)
            self._callers = len(calls) + len(self._waiting)

    def start_anew(self) -> None:
        """In a child process: threads that were in a call at the fork exist in the parent only."""
        self._waiting, self._turn = deque(), threading.Lock()
        self._callers, self._gathering = 1, None


def _result(answer: T | C4BError) -> T:
    if isinstance(answer, C4BError):
        raise answer
    return answer


def _interrupted() -> StoreUnavailable:
    return StoreUnavailable(
        "the thread that committed this call together with its own was interrupted; it is not known "
        "whether it was recorded: ask again with the same request_id, or report the outcome again"
    )
