"""``c4b serve``, ``c4b demo`` and ``c4b token``: the service and who may use it."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from c4b.cli import demo as shop
from c4b.cli.output import table
from c4b.deployment import Limits
from c4b.errors import InvalidInput, rebuild
from c4b.service import tokens
from c4b.service.monitoring import grafana
from c4b.service.serving import server
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
STORE = "sqlite:///c4b.db"
_SETTINGS = Settings(STORE)
_OPTIONS = {"url": "--store", "seconds": "--timeout", "name": "--deployment", "id": "TOKEN"}


@contextmanager
def _by_option() -> Iterator[None]:
    """A mistake in an argument names the option that it came from."""
    try:
        yield
    except InvalidInput as error:
        option = _OPTIONS.get(error.argument) or f"--{error.argument.replace('_', '-')}"
        raise rebuild(type(error), option, error.shown, error.remedy) from error


def serve(
    store: Store = STORE,
    host: Annotated[str, typer.Option(help="Address to listen on; without tokens this machine's.")] = (
        "127.0.0.1"
    ),
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes; any number is safe.")] = 1,
    body_bytes: Annotated[int, typer.Option(help="Largest request, in bytes.")] = _SETTINGS.body_bytes,
    candidates: Annotated[int, typer.Option(help="Most candidates in a decision.")] = (
        _SETTINGS.limits.candidates
    ),
    dimension: Annotated[int, typer.Option(help="Most features of a new deployment.")] = (
        _SETTINGS.dimension
    ),
    timeout: Annotated[float, typer.Option(help="Seconds for one request.")] = _SETTINGS.seconds,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate (PEM): serve https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve deployments over HTTP, with a dashboard at / and the API described at /docs."""
    with _by_option():
        limits = Limits(candidates=candidates, batch=_SETTINGS.limits.batch)
        settings = Settings(store, body_bytes, dimension, timeout, limits)
        server.run(settings, host, port, workers, log_level, tls_cert, tls_key)


def demo(
    port: Port = 8000,
    store: Annotated[
        str | None, typer.Option(help="Keep it in this store; without one it is thrown away.")
    ] = None,
    pace: Annotated[float, typer.Option(min=0.0, help="Seconds between two visitors.")] = 0.5,
) -> None:
    """Start the service with a simulated shop that sends traffic; open the address it prints."""
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="c4b-demo-") as folder:
        settings = Settings(store or f"sqlite:///{folder}/demo.db")
        visitors: list[threading.Thread] = []

        def begin(url: str) -> None:
            visitors.append(
                threading.Thread(target=shop.trade, args=(url, None, stop, pace), daemon=True)
            )
            visitors[0].start()

        advice = "The demo is for this machine only; to serve others, use c4b serve."
        try:
            with _by_option():
                server.run(settings, "127.0.0.1", port, 1, "warning", advice=advice, begin=begin)
        finally:
            stop.set()
            for thread in visitors:
                thread.join(5.0)


def show_grafana() -> None:
    """Print a Grafana dashboard over the service's /metrics, as JSON to import."""
    typer.echo(json.dumps(grafana.dashboard(), indent=1))


app = typer.Typer(no_args_is_help=True, help="Create, list and revoke the service's tokens.")


@app.command()
def create(
    scope: Annotated[str, typer.Option(help="read: look. decide: also decide. admin: also create.")],
    deployment: Annotated[str | None, typer.Option(help="For this one only, not for all.")] = None,
    label: Annotated[str, typer.Option(help="Who it is for.")] = "",
    store: Store = STORE,
) -> None:
    """Make a token. It is printed once, on standard output; the store keeps only a hash."""
    with _by_option():
        made = tokens.create(store, scope, deployment, label)
    typer.echo(made)
    typer.echo("c4b: keep it now, it cannot be shown again", err=True)


@app.command("list")
def list_tokens(
    store: Store = STORE,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List tokens, without their secrets."""
    with _by_option():
        found = [token.to_dict() for token in tokens.listed(store)]
    if as_json:
        typer.echo(json.dumps(found))
        return
    heading = ["id", "scope", "deployment", "label", "created", "revoked"]
    rows = [["" if token[key] is None else str(token[key]) for key in heading] for token in found]
    table("", heading, rows, left=len(heading))


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="The token's id, as `c4b token list` shows it.")],
    store: Store = STORE,
) -> None:
    """End a token's life, within a second, in every worker."""
    with _by_option():
        ended = tokens.revoke(store, token)
    typer.echo(json.dumps(ended.to_dict()))
