"""The deployments that one worker has open."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from c4b.deployment import Deployment
from c4b.evidence.model import LinearModel
from c4b.journal.sql_store import Store
from c4b.policies.policy import Policy
from c4b.service.commit_queue import Desk
from c4b.service.settings import Settings


class Shelf:
    """Opens a deployment when it is first asked for, and keeps it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings.store)
        self.writers = ThreadPoolExecutor(max(4, os.cpu_count() or 1), "c4b-writer")
        self._desks: dict[str, Desk] = {}
        self._turn = threading.Lock()

    def desk(self, name: str) -> Desk | None:
        """The desk of a deployment that is open already."""
        return self._desks.get(name)

    def open(self, name: str) -> Desk:
        """The desk of a deployment that exists; may wait for the store."""
        found = self._desks.get(name)
        if found is None:
            with self._turn:
                found = self._desks.get(name)
                if found is None:
                    opened = Deployment.open(self.settings.store, name, self.settings.limits)
                    found = self._desks[name] = Desk(opened, self.writers)
        return found

    def names(self) -> list[str]:
        return Deployment.names(self.settings.store)

    def close(self) -> None:
        """Finish what is being written, then give the connections back."""
        self.writers.shutdown(wait=True)
        for desk in self._desks.values():
            desk.deployment.close()
        self.store.close()


def warm() -> None:
    """Load the compiled kernels now, not at the first request."""
    policy = Policy("reserve-c4b+", LinearModel(dim=2, noise=0.1, norm_bound=1.0))
    policy.learn([[1.0, 0.0]], [0.5])
    policy.observe(policy.decide([[1.0, 0.1]], [1.0, 0.0]).id, 0.5)
