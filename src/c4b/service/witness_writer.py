"""The service's own witness: the ends of its journals, written to a file at regular intervals."""

from __future__ import annotations

import threading

from c4b.errors import C4BError
from c4b.service.monitoring.request_log import logger
from c4b.service.open_deployments import OpenDeployments


class WitnessWriter:
    """A thread of one worker that adds a line for every open deployment with new entries.

    The file should lie where who can change the store cannot: on another machine, or in append-only
    storage. A journal that does not continue its last witness is reported in the log and not witnessed
    any more; a worker that has yet to open it refuses it.
    """

    def __init__(self, deployments: OpenDeployments, path: str, seconds: float) -> None:
        self._deployments, self._path, self._seconds = deployments, path, seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="c4b-witness", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            self.write()

    def write(self) -> None:
        """Witness every deployment that is open here."""
        for deployment in self._deployments.opened():
            try:
                deployment.witness(self._path)
            except C4BError as error:
                logger.error("witness", extra={"fields": {"name": deployment.name, "error": str(error)}})

    def stop(self) -> None:
        """Write what is new, and end."""
        self._stopped.set()
        self._thread.join()
        self.write()
