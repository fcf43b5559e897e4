"""Batch the calls to one deployment: calls that arrive during a commit share the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from anyio import CapacityLimiter, to_thread

from c4b.deployment import Deployment
from c4b.errors import C4BError
from c4b.policies import Decision, Round
from c4b.policies.slates import Reward

C = TypeVar("C")
T = TypeVar("T")

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
        self._waiting: list[tuple[C, asyncio.Future[T]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, call: C) -> T:
        """Return the result of ``call``. A caller that is cancelled does not withdraw its call."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, result))
        if self._worker is None:
            self._worker = asyncio.create_task(self._commit_waiting())
        return await result

    async def _commit_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                size = self._batch_size()
                batch, self._waiting = self._waiting[:size], self._waiting[size:]
                try:
                    results = await loop.run_in_executor(
                        self._executor, self._commit, [call for call, _ in batch]
                    )
                except Exception as error:  # noqa: BLE001 (the callers get it)
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, future), result in zip(batch, results, strict=True):
                    if future.done():
                        continue
                    if isinstance(result, C4BError):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
        finally:
            self._worker = None

    def _batch_size(self) -> int:
        """How many of the waiting calls the next commit takes: at least one."""
        weight = 0
        for size, (call, _) in enumerate(self._waiting[:MAX_BATCH]):
            weight += self._weight(call)
            if size and weight > MAX_WEIGHT:
                return size
        return min(len(self._waiting), MAX_BATCH)


class QueuedDeployment:
    """A deployment with one commit queue for decisions and one for outcomes."""

    def __init__(self, deployment: Deployment, executor: Executor) -> None:
        self.deployment = deployment
        self._one_at_a_time = CapacityLimiter(1)
        self._decisions: CommitQueue[Round, Decision] = CommitQueue(
            deployment.decide_each, executor, lambda round_: np.size(round_.candidates)
        )
        self._outcomes: CommitQueue[tuple[str, Reward], None] = CommitQueue(
            deployment.observe_each, executor
        )

    async def write(self, call: Callable[..., T], *arguments: object, **options: object) -> T:
        """Run another call that writes, in a thread. They wait for each other here, so that the callers
        of one deployment never take all threads of the service."""
        return await to_thread.run_sync(partial(call, *arguments, **options), limiter=self._one_at_a_time)

    async def decide(self, round_: Round) -> Decision:
        """As ``Deployment.decide``, of a round that ``Deployment.request`` has checked."""
        return await self._decisions.submit(round_)

    async def observe(self, decision_id: str, reward: Reward) -> None:
        """As ``Deployment.observe``."""
        await self._outcomes.submit((decision_id, reward))
