"""Run the service: uvicorn, one process or several."""

from __future__ import annotations

import ipaddress
import os
import resource
import shlex
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import uvicorn
from sqlalchemy import make_url
from uvicorn.supervisors import Multiprocess

from c4b.errors import InvalidInput, UnknownName
from c4b.service import app, tokens
from c4b.service import open_deployments as shelf
from c4b.service.monitoring import request_log as logs
from c4b.service.serving import listen_address as address
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
    advice: str | None = None,
    begin: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until asked to stop (SIGTERM, SIGINT); a worker that dies is replaced.

    advice: for whoever wants to serve others and has no token; usually how to make one.
    begin: called with the service's address once that is taken.
    """
    if log_level not in LEVELS:
        raise UnknownName("log_level", log_level, f"must be one of {', '.join(LEVELS)}")
    _check_tls(tls_cert, tls_key)
    with address.taken(host, port) as sockets:
        app.prepare(settings.store)
        check_host(settings.store, host, advice)
        logs.plainly("c4b: preparing (the first time on a machine this compiles for about half a minute)")
        shelf.warm()
        os.environ[VARIABLE] = settings.to_json()
        _many_connections()
        config = uvicorn.Config(
            "c4b.service.app:from_environment",
            factory=True,
            workers=workers,
            http="c4b.service.serving.http_protocol:PatientProtocol",
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
        address.listen(sockets, host)
        name = f"[{host}]" if ":" in host else host
        url = f"{'https' if config.is_ssl else 'http'}://{name}:{address.number(sockets)}"
        logs.plainly(f"c4b: serving {url}/ (dashboard) and /docs (API); stop with Ctrl-C")
        begin(url)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when it is done
        with _shared_metrics() if workers > 1 else nullcontext(), suppress(KeyboardInterrupt):
            _answer(config, sockets)


def _answer(config: uvicorn.Config, sockets: list[socket.socket]) -> None:
    if config.workers > 1:
        Multiprocess(config, sockets).run()
        return
    server = uvicorn.Server(config)
    server.run(sockets)
    if not server.started:
        sys.exit(3)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """A folder in which workers add up what they measure."""
    with tempfile.TemporaryDirectory(prefix="c4b-metrics-") as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        yield


def _check_tls(cert: Path | None, key: Path | None) -> None:
    if cert is None and key is None:
        return
    if cert is None or key is None:
        missing = "tls_cert" if cert is None else "tls_key"
        raise InvalidInput(missing, None, "a certificate and its key come together")
    for argument, path in (("tls_cert", cert), ("tls_key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise InvalidInput(argument, str(path), f"cannot be read ({error.strerror})") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except (ssl.SSLError, ValueError) as error:
        remedy = f"must be a certificate (PEM) whose key (PEM) is {str(key)!r} ({error})"
        raise InvalidInput("tls_cert", str(cert), remedy) from error


def check_host(store: str, host: str, advice: str | None = None) -> None:
    """Without tokens listen to this machine only, and say so."""
    if tokens.listed(store):
        return
    if not loopback(host):
        remedy = (
            "without tokens the service listens to this machine only (127.0.0.1); "
            f"make one first: {creation(store)}"
        )
        raise InvalidInput("host", host, remedy)
    logs.plainly(
        "c4b: no token is configured: everybody on this machine, and nobody else, may do everything. "
        + (advice or f"To serve others: {creation(store)}")
    )


def creation(store: str) -> str:
    """The command that makes a token in ``store``; a password in its address is not shown.

    >>> creation("sqlite:///shop.db")
    'c4b token create --scope admin --store sqlite:///shop.db'
    """
    url = make_url(store)
    secret = [key for key in url.query if "password" in key]
    command = "c4b token create --scope admin --store "
    if url.password is None and not secret:
        return command + shlex.quote(store)
    shown = url.difference_update_query(secret).render_as_string(hide_password=True)
    return f"{command}{shlex.quote(shown)}, with the password in it"


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _many_connections() -> None:
    """As many open files as the system allows: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
