"""The power is lost at any moment: whatever the disk did not write by then, nothing acknowledged is lost.

SQLite's writes and syncs under the real journal are traced; see ``support.traced_sqlite``. Then the files
are made again as they may be after a loss at some event, and the deployment is opened as always.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from c4b import Deployment
from c4b.errors import StoreUnavailable, UnknownDeployment
from c4b.journal.sql import sql_connections
from c4b.policies import Decision
from support.power_loss import WAYS, Disk, write
from support.shop_world import BASELINE, create, in_agreement, outcome, rivals
from support.traced_sqlite import Event, Trace

LOSSES = int(os.environ.get("C4B_LOSSES", "80"))
ROUNDS = 60
ACKNOWLEDGED = "acknowledged"


class Promise(NamedTuple):
    """One answer: a decision, or that its outcome is recorded."""

    made: Decision
    request_id: str
    reward: float | None


class History(NamedTuple):
    events: list[Event]
    promises: list[Promise]
    """In the order of the events ``ACKNOWLEDGED``, after the first, which is of ``create``."""


@contextmanager
def settings(*pragmas: str) -> Iterator[None]:
    """Connections of the store with other settings than its own."""
    prepare = sql_connections._prepare_sqlite

    def changed(connection: Any, record: object) -> None:
        prepare(connection, record)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql_connections, "_prepare_sqlite", changed)
        yield


OFTEN = "wal_autocheckpoint=50"
"""Pages; as many as the store says would need megabytes of entries."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    with settings(OFTEN):
        return traced(tmp_path_factory.mktemp("traced"))


def traced(folder: Path) -> History:
    """Calls with answers. In the middle all connections are closed, which removes the log."""
    url, trace, promises = f"sqlite:///{folder}/shop.db", Trace(), list[Promise]()
    rng = np.random.default_rng(0)

    def promised(made: Decision, request_id: str, reward: float | None) -> None:
        promises.append(Promise(made, request_id, reward))
        trace.mark(ACKNOWLEDGED)

    with trace.on():
        dep = create(url, snapshot_every=15)
        trace.mark(ACKNOWLEDGED)
        for n in range(ROUNDS):
            candidates = rivals(rng)
            made = dep.decide(candidates, BASELINE, request_id=f"r-{n}")
            promised(made, f"r-{n}", None)
            if n % 3:
                reward = outcome(candidates, made.action, rng)
                dep.observe(made.id, reward)
                promised(made, f"r-{n}", reward)
            if n == ROUNDS - 20:
                dep.close()
                dep = Deployment.open(url, "shop")
        dep.close()
    return History(trace.events, promises)


def losses(history: History, number: int, seed: int) -> Iterator[tuple[str, dict[str, bytes], int]]:
    """How the power was lost, the files afterwards, and how many answers had been given."""
    rng, disk, answered, events = random.Random(seed), Disk(), 0, history.events
    rare = [
        n for n, event in enumerate(events) if event.kind != "write" or not event.path.endswith("-wal")
    ]
    moments = Counter(rng.choices(rare, k=number // 2) + rng.choices(range(len(events)), k=number // 2))
    for n, event in enumerate(events):
        for _ in range(moments[n]):
            way = rng.choice(WAYS)
            yield f"{way}, at event {n}", disk.lost(way, rng), answered
        if event.kind == ACKNOWLEDGED:
            answered += 1
        else:
            disk.do(event)


def check(files: dict[str, bytes], answered: int, history: History, folder: Path) -> None:
    """Everything that was acknowledged is there, and the deployment goes on."""
    write(files, folder)
    url = f"sqlite:///{folder}/shop.db"
    try:
        dep = Deployment.open(url, "shop")
    except (StoreUnavailable, UnknownDeployment):
        assert not answered, "the deployment is gone"
        return
    with dep:
        records = {each.decision.id: each for each in dep.decisions(limit=ROUNDS)}
        promises = history.promises[: max(answered - 1, 0)]
        for promise in promises:
            record = records[promise.made.id]
            assert (record.decision, record.request_id) == (promise.made, promise.request_id)
            assert promise.reward is None or record.reward == promise.reward
        again = dep.decide([], BASELINE)
        assert again.id not in records
        assert in_agreement(dep)
        if answered % 8 == 0:
            assert dep.audit(sample=0).clean


def failures(history: History, number: int, seed: int, folder: Path) -> list[str]:
    found = []
    for n, (what, files, answered) in enumerate(losses(history, number, seed)):
        (folder / str(n)).mkdir()
        try:
            check(files, answered, history, folder / str(n))
        except Exception as error:  # noqa: BLE001 (whatever it is, the loss has found it)
            found.append(f"{what}: {type(error).__name__}: {error}")
    return found


def test_nothing_acknowledged_is_lost(history: History, tmp_path: Path) -> None:
    assert failures(history, LOSSES, seed=LOSSES, folder=tmp_path) == []


def test_the_trace_holds_what_may_go_wrong(history: History) -> None:
    kinds = Counter((event.kind, Path(event.path).suffix) for event in history.events)
    assert kinds["sync", ".db-wal"] >= len(history.promises)
    assert kinds["sync", ".db"] > 5, "the log was never checkpointed"
    assert kinds["delete", ".db-wal"] == 2
    begun = [e for e in history.events if e.kind == "write" and e.path.endswith("-wal") and not e.place]
    assert len(begun) > 5, "the log was never begun again"


def test_a_store_that_does_not_sync_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "traced").mkdir()
    with settings(OFTEN, "synchronous=NORMAL"):
        history = traced(tmp_path / "traced")
    assert failures(history, 20, seed=0, folder=tmp_path)
