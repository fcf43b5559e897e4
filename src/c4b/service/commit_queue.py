"""One deployment in one worker: whoever asks while a commit is under way shares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from c4b.deployment import Deployment
from c4b.errors import C4BError
from c4b.policies.decision import Decision
from c4b.policies.round import Round

C = TypeVar("C")
T = TypeVar("T")

TOGETHER = 256
"""Calls in one commit at most."""


class Line(Generic[C, T]):
    """Calls that wait for a commit, served in order of arrival, many at a time.

    A lone call is served at once. While one commit is on its way to disk others queue up, and the next
    commit takes them all: under load the disk's speed limits commits, not calls. Safe because each call
    still gets its own answer from ``serve``, after the commit that contains it.
    """

    def __init__(self, serve: Callable[[Sequence[C]], list[T | C4BError]], executor: Executor) -> None:
        self._serve = serve
        self._executor = executor
        self._waiting: list[tuple[C, asyncio.Future[T]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, call: C) -> T:
        """The answer to ``call``. Whoever goes away while waiting does not take the call back."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer))
        if self._serving is None:
            self._serving = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                try:
                    answers = await loop.run_in_executor(
                        self._executor, self._serve, [call for call, _ in some]
                    )
                except Exception as error:  # noqa: BLE001 (nobody else would hear of it)
                    for _, future in some:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, future), answer in zip(some, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, C4BError):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            self._serving = None


class Desk:
    """A deployment, its line of decisions and its line of outcomes."""

    def __init__(self, deployment: Deployment, executor: Executor) -> None:
        self.deployment = deployment
        self._decisions: Line[Round, Decision] = Line(deployment.decide_each, executor)
        self._outcomes: Line[tuple[str, float], None] = Line(deployment.observe_each, executor)

    async def decide(
        self, candidates: object, baseline: object, request_id: str | None, context: object
    ) -> Decision:
        """As ``Deployment.decide``; arguments are checked before they queue up."""
        checked = self.deployment.request(candidates, baseline, request_id, context)
        return await self._decisions.ask(checked)

    async def observe(self, decision_id: str, reward: float) -> None:
        await self._outcomes.ask((decision_id, reward))
