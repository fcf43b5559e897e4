"""Run the service: uvicorn, one process or several."""

from __future__ import annotations

import ipaddress
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import uvicorn

from c4b.errors import InvalidInput, UnknownName
from c4b.service import app, logs, shelf, tokens
from c4b.service.settings import VARIABLE, Settings

GRACE = 30
"""Seconds that requests under way get to finish when the service is asked to stop."""


LEVELS = ("debug", "info", "warning", "error")


def run(
    settings: Settings,
    host: str,
    port: int,
    workers: int = 1,
    log_level: str = "info",
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> None:
    """Serve until asked to stop (SIGTERM, SIGINT); a worker that dies is replaced."""
    if log_level not in LEVELS:
        raise UnknownName("log_level", log_level, f"must be one of {', '.join(LEVELS)}")
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("tls_key", tls_key, "a certificate and its key come together")
    app.prepare(settings.store)
    check_host(settings.store, host)
    logs.plainly("c4b: preparing (the first time on a machine this compiles for about half a minute)")
    shelf.warm()
    scheme = "http" if tls_cert is None else "https"
    logs.plainly(f"c4b: serving {scheme}://{host}:{port}/ (dashboard) and /docs (API); stop with Ctrl-C")
    os.environ[VARIABLE] = settings.to_json()
    _many_connections()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when it is done
    with _shared_metrics() if workers > 1 else nullcontext():
        uvicorn.run(
            "c4b.service.app:from_environment",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            http="c4b.service.protocol:PatientProtocol",
            ws="none",
            lifespan="on",
            log_config=logs.configuration(log_level),
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE,
            timeout_worker_healthcheck=10,  # a worker killed while it starts holds the others up so long
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
        )


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """A folder in which workers add up what they measure."""
    with tempfile.TemporaryDirectory(prefix="c4b-metrics-") as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        yield


def check_host(store: str, host: str) -> None:
    """Without tokens listen to this machine only, and say so."""
    if tokens.listed(store):
        return
    if not loopback(host):
        remedy = (
            "without tokens the service listens to this machine only (127.0.0.1); "
            "make one first: c4b token create --scope admin"
        )
        raise InvalidInput("host", host, remedy)
    logs.plainly(
        "c4b: no token is configured: everybody on this machine, and nobody else, may do everything. "
        "To serve others: c4b token create --scope admin"
    )


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _many_connections() -> None:
    """As many open files as the system allows: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
