"""Calls share commits, within bounds: a commit holds the journal's lock while it decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from c4b.errors import C4BError
from c4b.service import commit_queue
from c4b.service.commit_queue import CommitQueue


@pytest.mark.parametrize(
    ("weights", "batches"),
    [
        ([1] * 9, [[1], [1] * 8]),
        ([1, 60, 60, 60], [[1], [60], [60], [60]]),
        ([1, 40, 40, 40, 40], [[1], [40, 40], [40, 40]]),
        ([1, 500, 10, 10], [[1], [500], [10, 10]]),
    ],
)
def test_heavy_calls_do_not_share_a_commit(
    weights: list[int], batches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_queue, "MAX_WEIGHT", 100)
    committed: list[list[int]] = []
    all_are_there = threading.Event()

    def commit(calls: Sequence[int]) -> list[int | C4BError]:
        all_are_there.wait(60)  # the first commit: until every other call waits
        committed.append(list(calls))
        return list(calls)

    async def work() -> list[int]:
        with ThreadPoolExecutor(1) as executor:
            queue = CommitQueue[int, int](commit, executor, lambda call: call)
            calls = [asyncio.create_task(queue.submit(weight)) for weight in weights[:1]]
            await asyncio.sleep(0.1)
            calls += [asyncio.create_task(queue.submit(weight)) for weight in weights[1:]]
            await asyncio.sleep(0)
            all_are_there.set()
            return await asyncio.gather(*calls)

    assert asyncio.run(work()) == weights
    assert committed == batches


@pytest.mark.parametrize(
    ("raised", "told"), [(OSError("the disk"), OSError), (SystemExit("the thread"), RuntimeError)]
)
def test_whatever_a_commit_raises_reaches_every_caller_and_the_next_commit_is_made(
    raised: BaseException, told: type[Exception]
) -> None:
    def commit(calls: Sequence[int]) -> list[int | C4BError]:
        if 13 in calls:
            raise raised
        return list(calls)

    async def work() -> tuple[list[int | BaseException], int]:
        with ThreadPoolExecutor(1) as executor:
            queue = CommitQueue[int, int](commit, executor)
            async with asyncio.timeout(60):
                failed = await asyncio.gather(queue.submit(13), queue.submit(1), return_exceptions=True)
                return failed, await queue.submit(2)

    failed, next_ = asyncio.run(work())
    assert [type(each) for each in failed] == [told, told]
    assert next_ == 2


def test_after_the_last_commit_callers_are_told() -> None:
    async def work() -> None:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        await CommitQueue[int, int](list, executor).submit(1)

    with pytest.raises(RuntimeError, match="shutdown"):
        asyncio.run(work())
