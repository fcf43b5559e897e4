"""Real service processes for tests: ``c4b serve`` on a free port of this machine."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

C4B = [sys.executable, "-c", "from c4b.cli.main import main; main()"]


class Service:
    """One ``c4b serve`` process. Its log is a file."""

    def __init__(
        self,
        store: str,
        log: Path,
        *arguments: str,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.log = log
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with log.open("ab") as out:
            command = [*C4B, "serve", "--store", store, "--port", str(self.port), *arguments]
            variables = {**os.environ, **(environment or {})}
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=variables)
        self.wait()

    def wait(self, seconds: float = 600.0) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + seconds
        with self.http(timeout=5.0) as http:  # one client: to make one takes longer than to ask
            while time.monotonic() < deadline and self.process.poll() is None:
                with suppress(httpx.TransportError):
                    if http.get("/readyz").status_code == 200:
                        return
                time.sleep(0.05)
        self.process.kill()
        self.process.wait()
        raise AssertionError(f"the service did not get ready:\n{self.log.read_text()[-4000:]}")

    def logged(self) -> list[str]:
        """The complete lines of the log, without one that is just being written."""
        whole, _, _ = self.log.read_text().rpartition("\n")
        return whole.splitlines()

    def http(self, token: str | None = None, **options: Any) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        settings: dict[str, Any] = {"timeout": 180.0, "headers": headers, "trust_env": False, **options}
        return httpx.Client(base_url=self.url, **settings)

    def workers(self) -> list[int]:
        """Process ids of the workers: the children, or the process itself."""
        pids = []
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):  # it died just now
                if "spawn_main" in " ".join(child.cmdline()):
                    pids.append(child.pid)
        return pids or [self.process.pid]

    def stop(self, how: int = signal.SIGTERM, seconds: float = 120.0) -> int:
        """Stop it and return its exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
        return self.process.wait(seconds)


def free_port() -> int:
    """A port below those that the system gives to outgoing connections, so that it stays free."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving(
    store: str, log: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Run a service for the time of a ``with`` block."""
    service = Service(store, log, *arguments, environment=environment)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()
