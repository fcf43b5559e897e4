"""Errors at every call that ``decide`` and ``observe`` make: of memory, of input and output, of a driver.

Afterwards the same object goes on: a repeated call is done once, nothing waits for a lock that nobody
holds, and the state is the one that follows from the entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from c4b import Deployment
from c4b.errors import StoreUnavailable
from c4b.journal import memory_backend
from c4b.journal.sql import sql_connections
from support.injected_errors import Calls, watched
from support.same_state import same_bits
from support.shop_world import replayed, seen
from support.simulation import BASELINE, MODEL, registry_of_cheap

POOL = [[1.0, 0.1]] * 2
MEMORY = "memory://errors"
STRIDE = {MEMORY: 2, "sqlite": 3}
"""One call site of so many is tried; all of them were, once."""


@pytest.mark.parametrize(
    ("store", "kind"),
    [(s, k) for s in STRIDE for k in ("memory", "files", "driver") if (s, k) != (MEMORY, "driver")],
)
@pytest.mark.parametrize("method", ["decide", "observe"])
def test_an_error_at_every_call(
    store: str, kind: str, method: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_connections, "WAIT", 5)
    monkeypatch.setattr(memory_backend, "WAIT", 5)
    monkeypatch.setattr(memory_backend, "_stores", {})
    url = sqlite_url if store == "sqlite" else store
    stride = 1 if kind == "driver" else STRIDE[store]
    with (
        registry_of_cheap(),
        Deployment.create(url, "shop", MODEL, "cheap", reserve=1e6, snapshot_every=7) as dep,
    ):
        sites = failing_calls(dep, kind, method, stride)
        assert sites > (3 if kind == "driver" else 100 // stride)
        assert dep.audit(sample=0).clean


def failing_calls(dep: Deployment, kind: str, method: str, stride: int) -> int:
    """Call ``method`` with an error at each of its calls; returns how many there are."""
    for tried in range(10_000):
        calls = Calls(kind, 1 + tried * stride)
        call = prepared(dep, method, f"r-{tried}")
        before, began = dep.state().seq, time.monotonic()
        try:
            with watched(calls):
                call()
        except (MemoryError, OSError, StoreUnavailable):
            pass
        if calls.where is None:
            return tried
        call()
        assert time.monotonic() - began < 20.0, calls.where
        assert dep.state().seq == before + 1, calls.where
        assert same_bits(seen(dep), replayed(dep)), calls.where
    raise AssertionError("it never ends")


def prepared(dep: Deployment, method: str, key: str) -> Callable[[], object]:
    if method == "decide":
        return lambda: dep.decide(POOL, BASELINE, request_id=key)
    id_ = dep.decide(POOL, BASELINE, request_id=key).id
    return lambda: dep.observe(id_, 0.5)
