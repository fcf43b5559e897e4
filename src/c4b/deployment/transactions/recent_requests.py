"""The last request ids of a journal: what recognises a retry when the store's index of ids is damaged.

A store finds request ids by an index, which no hash covers. A damaged or lost index would let a repeated
request be decided a second time. The state therefore remembers the last ids by itself. Like everything in
a state they follow from the entries, whose hashes are checked.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

REMEMBERED = 10_000
"""Request ids that are recognised without the store's index: the retry window."""


class RecentRequests:
    """Numbers of the entries of the last request ids, oldest first, by a fingerprint of the id.

    A fingerprint only says where to look: the entry holds the id itself.
    """

    def __init__(self, since: int = -1) -> None:
        """since: number of the entry after which ids are remembered, for states of early snapshots."""
        self.since = since
        self._numbers: dict[int, int] = {}

    def add(self, request_id: str, seq: int) -> None:
        self._numbers[_fingerprint(request_id)] = seq

    def find(self, request_id: str) -> int | None:
        """The number of the entry that probably has this id; None if none of the last ones has it."""
        return self._numbers.get(_fingerprint(request_id))

    def trim(self) -> None:
        """Forget old ids, many at a time. Not while a decision may still be taken back."""
        if len(self._numbers) >= 2 * REMEMBERED:
            self._numbers = dict(islice(self._numbers.items(), len(self._numbers) - REMEMBERED, None))

    def undo(self, seq: int) -> None:
        """Forget the ids of the entries after number ``seq``."""
        while self._numbers and next(reversed(self._numbers.values())) > seq:
            self._numbers.popitem()

    def array(self, since: int = -1) -> npt.NDArray[np.int64]:
        """The last ids of the entries after ``since`` as rows (fingerprint, number), shape (n, 2)."""
        count = min(len(self._numbers), REMEMBERED)
        array = np.empty((count, 2), dtype=np.int64)
        for column, values in enumerate((self._numbers, self._numbers.values())):
            last = islice(values, len(self._numbers) - count, None)
            array[:, column] = np.fromiter(last, np.int64, count)
        return array[array[:, 1] > since]

    @classmethod
    def restored(cls, array: npt.NDArray[np.int64], since: int) -> RecentRequests:
        recent = cls(since)
        recent._numbers = dict(array.tolist())
        return recent


@lru_cache(1024)
def _fingerprint(request_id: str) -> int:
    digest = hashlib.blake2b(request_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
