"""Limits of rate in one worker process: requests of a token, failed authorisations of an address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

REMEMBERED = 10_000
"""Keys that a limit remembers. The one that was not seen for longest is forgotten first."""


class RateLimit:
    """Token buckets: each key may have ``rate`` events a second, and at first as many as ``burst``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def allows(self, key: Hashable, rate: float, burst: float) -> bool:
        """Count one event of ``key``; False if it is one too many."""
        now = self._clock()
        left, then = self._buckets.pop(key, (burst, now))
        left = min(left + rate * (now - then), burst)
        allowed = left >= 1.0
        self._buckets[key] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return allowed
