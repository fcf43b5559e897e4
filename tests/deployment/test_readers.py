"""Readers do not wait for a writer of the same process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from c4b import Deployment
from c4b.deployment.transactions.commands import Commands
from c4b.errors import StoreUnavailable
from c4b.service import open_deployments
from c4b.service.open_deployments import OpenDeployments
from c4b.service.settings import Settings
from support.shop_world import BASELINE, create, in_agreement, trade

SOON = 5.0
"""Seconds; a call that waits for the writer would wait for a minute."""


@contextmanager
def writer_under_way(dep: Deployment) -> Iterator[None]:
    """Another thread is in a call and has the lock."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(commands: Commands) -> None:
        inside.set()
        go_on.wait(60)

    dep._transactor._alone = 0
    thread = threading.Thread(target=lambda: dep._transactor.write(wait))
    thread.start()
    assert inside.wait(60)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


def test_questions_are_answered_meanwhile(any_url: str) -> None:
    with create(any_url) as dep:
        trade(dep, 10)
        sound, records = dep.state(), dep.decisions()
        with writer_under_way(dep):
            began = time.monotonic()
            for _ in range(3):
                assert dep.state() == sound
            assert [r.to_dict() for r in dep.decisions()] == [r.to_dict() for r in records]
            assert dep.audit().clean
            assert time.monotonic() - began < SOON
        trade(dep, 5, seed=1)
        with writer_under_way(dep):
            assert dep.state().rounds == 15  # with what was committed since
        assert dep.state().rounds == 15
        assert in_agreement(dep)
    with pytest.raises(StoreUnavailable):
        dep.state()


def test_a_deployment_that_takes_long_to_open_delays_no_other(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("slow", "fast"):
        create(sqlite_url, name).close()
    go_on, opened = threading.Event(), Deployment.open

    class Slow(Deployment):
        @classmethod
        def open(cls, url: object, name: str, *options: object) -> Deployment:  # type: ignore[override]
            if name == "slow":
                go_on.wait(60)
            return opened(url, name, *options)  # type: ignore[arg-type]

    monkeypatch.setattr(open_deployments, "Deployment", Slow)
    deployments = OpenDeployments(Settings(sqlite_url))
    thread = threading.Thread(target=lambda: deployments.open("slow"))
    thread.start()
    began = time.monotonic()
    deployments.open("fast").deployment.decide([], BASELINE)
    assert time.monotonic() - began < SOON
    go_on.set()
    thread.join()
    deployments.close()
