"""Run the service with uvicorn, in one process or in several."""

from __future__ import annotations

import ipaddress
import os
import resource
import shlex
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import uvicorn
from sqlalchemy import make_url
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from c4b.errors import InvalidInput, UnknownName
from c4b.service import app, temporary_folders
from c4b.service.access import tokens
from c4b.service.monitoring import request_log
from c4b.service.open_deployments import load_kernels
from c4b.service.serving import listen_address
from c4b.service.settings import SETTINGS_VARIABLE, Settings

SHUTDOWN_SECONDS = 30
"""Seconds in which requests may finish when the service is stopped."""

STARTUP_FAILURE = 3
"""uvicorn's exit code of a process that did not start."""

LOG_LEVELS = ("debug", "info", "warning", "error")


def run(
    settings: Settings,
    host: str,
    port: int,
    workers: int = 1,
    log_level: str = "info",
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    token_advice: str | None = None,
    on_listening: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT. A worker that dies is replaced.

    token_advice: shown while no token exists, instead of the command that creates one.
    on_listening: called with the service's URL once its sockets listen.
    """
    if log_level not in LOG_LEVELS:
        raise UnknownName("log_level", log_level, f"must be one of {', '.join(LOG_LEVELS)}")
    _check_tls(tls_cert, tls_key)
    with stoppable() as stop_if_told, listen_address.bound_sockets(host, port) as sockets:
        for concern in app.create_tables(settings.store):
            request_log.print_notice(f"c4b: {concern}")
        check_host(settings.store, host, token_advice)
        request_log.print_notice(
            "c4b: preparing (the first time on a machine this compiles for about half a minute)"
        )
        load_kernels()
        stop_if_told()
        os.environ[SETTINGS_VARIABLE] = settings.to_json()
        _raise_file_limit()
        config = configuration("c4b.service.app:from_environment", workers, log_level, tls_cert, tls_key)
        listen_address.listen(sockets, host)
        name = f"[{host}]" if ":" in host else host
        url = f"{'https' if config.is_ssl else 'http'}://{name}:{listen_address.port_of(sockets)}"
        request_log.print_notice(f"c4b: serving {url}/ (dashboard) and /docs (API); stop with Ctrl-C")
        on_listening(url)
        with _shared_metrics() if workers > 1 else nullcontext(), suppress(KeyboardInterrupt):
            _serve(config, sockets)


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """From here on SIGTERM ends the process: uvicorn raises the signal again at its end.

    Python ignores the exit, and only prints it, in code that cannot raise, as in a finalizer. What this
    gives ends the process if that has happened.
    """
    told = False

    def stop(*_: object) -> None:
        nonlocal told
        told = True
        sys.exit(0)

    def stop_if_told() -> None:
        if told:
            sys.exit(0)

    def print_unless_exit(ignored: sys.UnraisableHookArgs) -> None:
        if not isinstance(ignored.exc_value, SystemExit):
            before(ignored)

    before, sys.unraisablehook = sys.unraisablehook, print_unless_exit
    signal.signal(signal.SIGTERM, stop)
    try:
        yield stop_if_told
    finally:
        sys.unraisablehook = before


def configuration(
    application: str | ASGIApp,
    workers: int = 1,
    log_level: str = "info",
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> uvicorn.Config:
    """How uvicorn runs the service. ``application``: it, or where the function is that makes it."""
    return uvicorn.Config(
        application,
        factory=isinstance(application, str),
        workers=workers,
        http="c4b.service.serving.http_protocol:TimeLimitedProtocol",
        ws="none",
        lifespan="on",
        log_config=request_log.configuration(log_level),
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=10,  # the others wait so long for a worker killed while it starts
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )


def _serve(config: uvicorn.Config, sockets: list[socket.socket]) -> None:
    if config.workers > 1:
        supervisor = Multiprocess(config, sockets)
        supervisor.run()
        if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
            sys.exit(STARTUP_FAILURE)  # uvicorn ends as if it had been asked to
        return
    server = uvicorn.Server(config)
    server.run(sockets)
    if not server.started:
        sys.exit(STARTUP_FAILURE)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Create the folder in which the workers share their metrics."""
    folder = temporary_folders.new_folder("metrics")
    try:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        yield
    finally:
        temporary_folders.remove(folder)


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


def check_host(store: str, host: str, token_advice: str | None = None) -> None:
    """While no token exists, refuse to listen on a public address, and print a notice."""
    if tokens.listed(store):
        return
    if not _is_loopback(host):
        remedy = (
            "without tokens the service listens to this machine only (127.0.0.1); "
            f"make one first: {token_command(store)}"
        )
        raise InvalidInput("host", host, remedy)
    request_log.print_notice(
        "c4b: no token is configured: everybody on this machine, and nobody else, may do everything. "
        + (token_advice or f"To serve others: {token_command(store)}")
    )


def token_command(store: str) -> str:
    """Return the command that creates a token in ``store``, without the password in its address.

    >>> token_command("sqlite:///shop.db")
    'c4b token create --scope admin --store sqlite:///shop.db'
    """
    url = make_url(store)
    passwords = [key for key in url.query if "password" in key]
    command = "c4b token create --scope admin --store "
    if url.password is None and not passwords:
        return command + shlex.quote(store)
    shown = url.difference_update_query(passwords).render_as_string(hide_password=True)
    return f"{command}{shlex.quote(shown)}, with the password in it"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _raise_file_limit() -> None:
    """Allow as many open files as the system permits, because each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
