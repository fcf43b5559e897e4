"""The entry point of the command ``c4b``."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import Annotated

import typer

import c4b
from c4b import policies
from c4b._compilation import compile_cache, compile_notice
from c4b.cli import diagnose_command, log_commands, plan_command, study_commands
from c4b.cli.console import shell_words
from c4b.cli.console.output import console, print_table
from c4b.cli.console.stop_signals import StoppableCommands
from c4b.errors import C4BError
from c4b.policies.catalogue.promise import Kind
from c4b.study.engine import run as study_engine

app = typer.Typer(
    cls=StoppableCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Conservative bandits: learn online, never fall below a set fraction of the incumbent.",
    epilog="Start with [bold]c4b reproduce[/bold], then [bold]c4b study init[/bold] for your own.",
)
app.command("reproduce")(study_commands.reproduce)
app.add_typer(study_commands.app, name="study")
app.command("offpolicy")(log_commands.offpolicy)
app.command("replay")(log_commands.replay)
app.command("diagnose")(diagnose_command.diagnose)
app.command("plan")(plan_command.plan)
if find_spec("sqlalchemy") is not None:  # the extra ``deploy`` is installed
    from c4b.cli import deploy_commands, rollout_commands, storage_commands

    assert rollout_commands  # these two add commands to those of deploy_commands
    assert storage_commands
    app.add_typer(deploy_commands.app, name="deploy")
if find_spec("fastapi") is not None:  # the extra ``service`` is installed
    from c4b.cli import serve_commands

    app.command("serve")(serve_commands.serve)
    app.command("demo")(serve_commands.demo)
    app.command("grafana")(serve_commands.show_grafana)
    app.add_typer(serve_commands.app, name="token")


@app.command("policies")
def list_policies() -> None:
    """List the registered policies and their parts."""
    rows = []
    for name in policies.names():
        spec = policies.get(name)
        parts = ["-", "-", "-"]
        if isinstance(spec, policies.Composition):
            parts = [spec.certificate if spec.gated else "-", spec.ledger, spec.selection]
        rows.append([name, *parts, _described(spec)])
    print_table("", ["name", "certificate", "ledger", "selection", "what it does"], rows, left=5)


def _described(spec: policies.Composition | policies.GateFactory) -> str:
    """The summary, with needs and a promise that is not the usual one."""
    needs = f"; needs {', '.join(sorted(spec.needs))}" if spec.needs else ""
    usual = spec.promise.kind in (Kind.EVERY_ROUND, Kind.NONE)
    return f"{spec.summary}{needs}{'' if usual else f'; promises {spec.promise}'}"


@app.command("compile")
def compile_now(
    study: Annotated[
        bool, typer.Option(help="Also compile what studies need; takes about as long again.")
    ] = True,
) -> None:
    """Compile all kernels now, so that no later call waits for the compiler.

    Use it for images and install steps. Kernels that are already in the cache are not compiled again. The
    cache is beside the package, or where NUMBA_CACHE_DIR says, and serves every installation of the same
    source on the same kind of processor. Kernels that a wheel contains are for an older kind of
    processor: they are compiled as well.
    """
    started = time.monotonic()
    compile_cache.KernelCache.uses_carried = False
    with console.status("compiling, about a minute"):
        c4b.warm_up()
        if study:
            study_engine.warm_up()
    console.print(f"compiled in {time.monotonic() - started:.1f} s: {compile_cache.FOLDER}")


def _print_version(requested: bool) -> None:
    if requested:
        console.print(f"reserve-c4b {c4b.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command. A known error becomes one line on stderr and exit code 2."""
    compile_notice.NOTICE.silent = True  # commands show progress of their own
    try:
        app(prog_name="c4b")
    except C4BError as error:
        command = typer.main.get_command(app)
        typer.echo(f"c4b: {shell_words.in_shell_words(error, command, sys.argv[1:])}", err=True)
        sys.exit(2)
    except OSError as error:  # e.g. a full disk, or a folder without permission to write
        typer.echo(f"c4b: {error}", err=True)
        sys.exit(2)
    except MemoryError as error:  # e.g. a number of features or of rounds with some zeros too many
        typer.echo(f"c4b: there is not enough memory for this ({error})", err=True)
        sys.exit(2)
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(130)
