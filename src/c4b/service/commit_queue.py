"""Batch the calls to one deployment: calls that arrive during a commit share the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from functools import partial
from typing import Generic, TypeAlias, TypeVar, cast

from anyio import CapacityLimiter, to_thread

from c4b.deployment import Deployment
from c4b.deployment.transactions.commands import ReportedOutcome, numbers_in
from c4b.errors import C4BError
from c4b.policies import Decision, Round
from c4b.policies.rounds.slates import Reward

C = TypeVar("C")
T = TypeVar("T")
_Waiting: TypeAlias = "tuple[C, asyncio.Future[T]]"

MAX_BATCH = 256
"""Largest number of calls in one commit."""
MAX_WEIGHT = 2_000_000
"""Most numbers in the candidates of one commit, unless a single call has more."""


class CommitQueue(Generic[C, T]):
    """Calls that wait for a commit, in order of arrival, many calls to a commit.

    A single call is committed at once. Calls that arrive while a commit is on its way to disk wait, and
    the next commit takes all of them. Under load the speed of the disk therefore limits the number of
    commits, not the number of calls. Each call gets its own result, after the commit that contains it.

    commit: takes a batch of calls and returns one result or error for each of them.
    weight: how much a call adds to a commit, which holds the journal's lock meanwhile.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[C]], list[T | C4BError]],
        executor: Executor,
        weight: Callable[[C], int] = lambda call: 0,
    ) -> None:
        self._commit = commit
        self._weight = weight
        self._executor = executor
        self._waiting: list[_Waiting[C, T]] = []
        self._busy = False

    async def submit(self, call: C) -> T:
        """Return the result of ``call``. A caller that is cancelled does not withdraw its call."""
        return await self.begin(call)

    def begin(self, call: C) -> asyncio.Future[T]:
        """The future of the result of ``call``."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        self._waiting.append((call, result))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._commit_waiting, loop)  # together with what arrives at the same moment
        return result

    def _commit_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand the next batch to a thread, which calls back by itself: to wait for it in the loop would
        take two more turns of the loop."""
        size = self._batch_size()
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        try:
            commit = self._executor.submit(self._commit, [call for call, _ in batch])
        except RuntimeError as error:  # it was shut down
            self._finish(loop, batch, error)
        else:
            commit.add_done_callback(partial(self._committed, loop, batch))

    def _committed(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[_Waiting[C, T]],
        commit: Future[list[T | C4BError]],
    ) -> None:
        """In the thread of the commit: let the loop answer, whatever became of it."""
        results: list[T | C4BError] | Exception
        ended = CancelledError() if commit.cancelled() else commit.exception()
        if ended is None:
            results = commit.result()
        elif isinstance(ended, Exception) and not isinstance(ended, CancelledError):
            results = ended
        else:  # such as SystemExit, which must not end the loop
            results = RuntimeError(f"the commit was ended by {ended!r}")
        with suppress(RuntimeError):  # the loop was closed, and nobody waits
            loop.call_soon_threadsafe(self._finish, loop, batch, results)

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[_Waiting[C, T]],
        results: list[T | C4BError] | Exception,
    ) -> None:
        """Answer the callers, then begin the next commit.

        What they ask for next has often arrived by then and is in it: fewer commits for as many calls. To
        answer while the next commit is computed would not be faster, for both need the interpreter.
        """
        for n, (_, future) in enumerate(batch):
            if future.done():
                continue
            result = results if isinstance(results, Exception) else results[n]
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        loop.call_soon(loop.call_soon, self._commit_next, loop)  # after the answers, and one more read

    def _commit_next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._busy = bool(self._waiting)
        if self._busy:
            self._commit_waiting(loop)

    def _batch_size(self) -> int:
        """How many of the waiting calls the next commit takes: at least one."""
        weight = 0
        for size, (call, _) in enumerate(self._waiting[:MAX_BATCH]):
            weight += self._weight(call)
            if size and weight > MAX_WEIGHT:
                return size
        return min(len(self._waiting), MAX_BATCH)


class QueuedDeployment:
    """A deployment with a commit queue for decisions and outcomes."""

    def __init__(self, deployment: Deployment, executor: Executor) -> None:
        self.deployment = deployment
        self._one_at_a_time = CapacityLimiter(1)
        self._calls: CommitQueue[Round | ReportedOutcome, Decision | None] = CommitQueue(
            deployment.call_each, executor, numbers_in
        )

    async def write(self, call: Callable[..., T], *arguments: object, **options: object) -> T:
        """Run another call that writes, in a thread. They wait for each other here, so that the callers
        of one deployment never take all threads of the service."""
        return await to_thread.run_sync(partial(call, *arguments, **options), limiter=self._one_at_a_time)

    async def decide(self, round_: Round) -> Decision:
        """As ``Deployment.decide``, of a round that ``Deployment.request`` has checked."""
        return cast(Decision, await self.begin_decision(round_))

    def begin_decision(self, round_: Round) -> asyncio.Future[Decision | None]:
        """The future of ``decide``."""
        return self._calls.begin(round_)

    async def observe(self, decision_id: str, reward: Reward) -> None:
        """As ``Deployment.observe``."""
        await self.begin_outcome(decision_id, reward)

    def begin_outcome(self, decision_id: str, reward: Reward) -> asyncio.Future[Decision | None]:
        """The future of ``observe``."""
        return self._calls.begin(self.deployment.reported(decision_id, reward))
