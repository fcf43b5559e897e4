"""Eight processes write to one SQLite file: none of them waits much longer than the others."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from c4b import Deployment
from c4b.journal.sql.sqlite_queue import SQLiteQueue
from support.shop_world import BASELINE, create, fork, in_agreement, rivals, trade, waited

pytestmark = pytest.mark.slow
WRITERS, ROUNDS = 8, 150


def test_eight_writers_take_turns(tmp_path: Path) -> None:
    """Between two decisions of one, all others have about one round each; without a queue five and more
    happen in one of a hundred cases."""
    url = f"sqlite:///{tmp_path}/shop.db"

    def work(number: int) -> None:
        candidates, entries = rivals(np.random.default_rng(number)), []
        with Deployment.open(url, "shop") as dep:
            for _ in range(ROUNDS):
                made = dep.decide(candidates, BASELINE)
                dep.observe(made.id, 0.5)
                assert made.receipt is not None
                entries.append(made.receipt.seq)
        (tmp_path / f"{number}.json").write_text(json.dumps(entries))

    with create(url) as dep:
        trade(dep, 3)
        writers = [fork(lambda number=n: work(number)) for n in range(WRITERS)]  # type: ignore[misc]
        assert [waited(pid) for pid in writers] == [0] * WRITERS
        entries = [json.loads((tmp_path / f"{n}.json").read_text()) for n in range(WRITERS)]
        assert sum(map(len, entries)) == WRITERS * ROUNDS
        between = np.sort(np.concatenate([np.diff(own) for own in entries]))
        assert between[int(0.99 * len(between))] < 4 * 2 * WRITERS
        assert dep.state().rounds == WRITERS * ROUNDS + 3
        assert in_agreement(dep)


def test_a_queue_that_cannot_be_used(tmp_path: Path) -> None:
    """Its file cannot be made: writers wait as SQLite makes them."""
    (tmp_path / "shop.db-queue").mkdir()
    url = f"sqlite:///{tmp_path}/shop.db"
    with create(url) as dep, Deployment.open(url, "shop") as other:
        trade(dep, 5)
        trade(other, 5, seed=1)
        assert dep.state().rounds == 10


def test_a_queue_is_beside_its_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a process that goes elsewhere before its first decision, or knows the file by a link."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir(), elsewhere.mkdir()
    monkeypatch.chdir(here)
    with create("sqlite:///shop.db") as dep:
        (elsewhere / "link.db").symlink_to(here / "shop.db")
        monkeypatch.chdir(elsewhere)
        with Deployment.open("sqlite:///link.db", "shop") as other:
            trade(dep, 3)
            trade(other, 3, seed=1)
        assert dep.state().rounds == 6
    assert [path.name for path in elsewhere.iterdir()] == ["link.db"]


def test_a_queue_is_left_by_whoever_ends(tmp_path: Path) -> None:
    """A process that dies as the next one does not keep the others waiting."""
    queue = SQLiteQueue(str(tmp_path / "shop.db"))
    waited(fork(lambda: SQLiteQueue(str(tmp_path / "shop.db")).enter(time.monotonic() + 5.0)))
    assert queue.enter(time.monotonic() + 5.0)
    assert not queue.enter(time.monotonic() + 0.05)  # another thread has to wait
    queue.leave()
    assert queue.enter(time.monotonic() + 5.0)
    queue.leave()
    queue.close()
