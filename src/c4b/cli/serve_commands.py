"""``c4b serve``, ``c4b demo``, ``c4b grafana`` and ``c4b token``: run the service, manage its tokens."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from c4b.cli import demo as simulated_shop
from c4b.cli.console.output import print_table
from c4b.deployment import Limits
from c4b.errors import InvalidInput, rebuild
from c4b.service.access import tokens
from c4b.service.monitoring import grafana
from c4b.service.settings import Settings

Store = Annotated[
    str,
    typer.Option(
        envvar="C4B_STORE",
        show_envvar=True,
        help="sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/DATABASE for several machines.",
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="TCP port.")]
DEFAULT_STORE = "sqlite:///c4b.db"
_DEFAULTS = Settings(DEFAULT_STORE)
_OPTION_OF_ARGUMENT = {"url": "--store", "seconds": "--timeout", "name": "--deployment", "id": "TOKEN"}


@contextmanager
def _errors_name_options() -> Iterator[None]:
    """Replace the argument in an error message by the option that it came from."""
    try:
        yield
    except InvalidInput as error:
        option = _OPTION_OF_ARGUMENT.get(error.argument) or f"--{error.argument.replace('_', '-')}"
        raise rebuild(type(error), option, error.shown, error.remedy) from error


def serve(
    store: Store = DEFAULT_STORE,
    host: Annotated[
        str, typer.Option(help="Address to listen on; a local one while there are no tokens.")
    ] = ("127.0.0.1"),
    port: Port = 8000,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Number of worker processes; any number is safe.")
    ] = 1,
    body_bytes: Annotated[
        int, typer.Option(help="Largest request body, in bytes.")
    ] = _DEFAULTS.body_bytes,
    candidates: Annotated[int, typer.Option(help="Largest number of candidates in a decision.")] = (
        _DEFAULTS.limits.candidates
    ),
    dimension: Annotated[int, typer.Option(help="Largest number of features of a new deployment.")] = (
        _DEFAULTS.dimension
    ),
    timeout: Annotated[
        float, typer.Option(help="Time limit of one request, in seconds.")
    ] = _DEFAULTS.seconds,
    connections: Annotated[
        int, typer.Option(help="Largest number of connections of a worker to the store.")
    ] = (_DEFAULTS.connections),
    failures_per_minute: Annotated[
        int,
        typer.Option(help="Requests without a valid token that an address may send before it gets 429."),
    ] = _DEFAULTS.failures_per_minute,
    witness: Annotated[
        Path | None,
        typer.Option(help="File for the ends of journals, on another machine; see `deploy witness`."),
    ] = None,
    witness_seconds: Annotated[
        float, typer.Option(help="Seconds between two witnesses.")
    ] = _DEFAULTS.witness_seconds,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate (PEM): serve https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve deployments over HTTP. The dashboard is at /, the documentation of the API at /docs."""
    from c4b.service.serving import server  # noqa: PLC0415 (FastAPI is slow to load; others need none)

    with _errors_name_options():
        limits = Limits(candidates=candidates, batch=_DEFAULTS.limits.batch)
        file = None if witness is None else str(witness.absolute())
        settings = Settings(
            store,
            body_bytes,
            dimension,
            timeout,
            connections,
            failures_per_minute,
            file,
            witness_seconds,
            limits,
        )
        server.run(settings, host, port, workers, log_level, tls_cert, tls_key)


def demo(
    port: Port = 8000,
    store: Annotated[
        str | None, typer.Option(help="Store of the demo; if not given, a temporary one.")
    ] = None,
    pace: Annotated[float, typer.Option(min=0.0, help="Seconds between two visitors of a page.")] = 0.5,
) -> None:
    """Start the service with a simulated shop that sends traffic; open the address it prints."""
    from c4b.service.serving import server  # noqa: PLC0415 (FastAPI is slow to load; others need none)

    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="c4b-demo-") as folder:
        settings = Settings(store or f"sqlite:///{folder}/demo.db")
        threads: list[threading.Thread] = []

        def start_traffic(url: str) -> None:
            arguments = (url, None, stop, pace)
            threads.append(
                threading.Thread(target=simulated_shop.send_traffic, args=arguments, daemon=True)
            )
            threads[0].start()

        advice = "The demo is for this machine only; to serve others, use c4b serve."
        try:
            with _errors_name_options():
                server.run(
                    settings,
                    "127.0.0.1",
                    port,
                    1,
                    "warning",
                    token_advice=advice,
                    on_listening=start_traffic,
                )
        finally:
            stop.set()
            for thread in threads:
                thread.join(5.0)


def show_grafana() -> None:
    """Print a Grafana dashboard for the service's /metrics, as JSON to import."""
    typer.echo(json.dumps(grafana.dashboard(), indent=1))


app = typer.Typer(no_args_is_help=True, help="Create, list and revoke the service's tokens.")


@app.command()
def create(
    scope: Annotated[str, typer.Option(help="read, decide (includes read) or admin (includes decide).")],
    deployment: Annotated[str | None, typer.Option(help="Restrict the token to this deployment.")] = None,
    label: Annotated[str, typer.Option(help="A note, e.g. who uses the token.")] = "",
    expires: Annotated[
        float | None, typer.Option(help="Days for which it is valid; if not given, until it is revoked.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests a second that each worker accepts with it.")
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Create a token. It is printed once, on standard output; the store keeps only a hash."""
    with _errors_name_options():
        token = tokens.create(store, scope, deployment, label, expires, rate)
    typer.echo(token)
    typer.echo("c4b: keep it now, it cannot be shown again", err=True)


@app.command("list")
def list_tokens(
    store: Store = DEFAULT_STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List tokens, without their secrets."""
    with _errors_name_options():
        listed = [token.to_dict() for token in tokens.listed(store)]
    if as_json:
        typer.echo(json.dumps(listed))
        return
    heading = ["id", "scope", "deployment", "label", "created", "revoked", "expires", "rate"]
    rows = [["" if token[key] is None else str(token[key]) for key in heading] for token in listed]
    print_table("", heading, rows, left=len(heading))


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="The token's id, as `c4b token list` shows it.")],
    store: Store = DEFAULT_STORE,
) -> None:
    """Revoke a token. Every worker refuses it within a second."""
    with _errors_name_options():
        revoked = tokens.revoke(store, token)
    typer.echo(json.dumps(revoked.to_dict()))
