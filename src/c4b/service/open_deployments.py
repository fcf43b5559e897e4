"""The deployments that one worker process has open."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from c4b.deployment import Deployment
from c4b.evidence.model import LinearModel
from c4b.journal.sql.sql_backend import SqlBackend
from c4b.service.commit_queue import QueuedDeployment
from c4b.service.settings import Settings


class OpenDeployments:
    """Opens each deployment at its first use and keeps it open."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.backend = SqlBackend(settings.store, connections=settings.connections)
        """One pool of connections for all deployments."""
        self.writers = ThreadPoolExecutor(settings.connections, "c4b-writer")
        self._by_name: dict[str, QueuedDeployment] = {}
        self._opening: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, name: str) -> QueuedDeployment | None:
        """Return a deployment that is open already, or None. Never waits."""
        return self._by_name.get(name)

    def open(self, name: str) -> QueuedDeployment:
        """Return an existing deployment and open it if necessary. May wait for the store."""
        queued = self._by_name.get(name)
        if queued is None:
            with self._opening[name]:  # one that takes long to open delays no other
                queued = self._by_name.get(name)
                if queued is None:
                    deployment = Deployment.open(self.backend, name, self.settings.limits)
                    if self.settings.witness is not None:
                        deployment.check_witness(self.settings.witness)
                    queued = self._by_name[name] = QueuedDeployment(deployment, self.writers)
        return queued

    def opened(self) -> list[Deployment]:
        """Return the deployments that are open."""
        return [queued.deployment for queued in list(self._by_name.values())]

    def names(self) -> list[str]:
        """Return the names of all deployments in the store.

        From an SQLite file that is opened anew: open connections do not notice that it was removed.
        """
        if self.backend.store.url.get_backend_name() == "sqlite":
            return Deployment.names(self.settings.store)
        return self.backend.names()

    def close(self) -> None:
        """Finish pending writes, then close all connections."""
        self.writers.shutdown(wait=True)
        for queued in self._by_name.values():
            queued.deployment.close()
        self.backend.close()


def load_kernels() -> None:
    """Compile or load the kernels of the default policy before the first request needs them."""
    model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    with Deployment.create(f"memory://{uuid.uuid4().hex}", "kernels", model) as dep:
        dep.learn([[1.0, 0.0]], [0.5])
        decision = dep.decide([[1.0, 0.1]], [1.0, 0.0])
        dep.executed(decision.id, [1.0, 0.05])
        dep.observe(decision.id, 0.5)
