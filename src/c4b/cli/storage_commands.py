"""``c4b deploy erase``, ``archive``, ``unarchive``, ``succeed``: what a store keeps, what comes next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from c4b.cli.console.answers import AsJson, answer
from c4b.cli.deploy_commands import Name, Url, app
from c4b.cli.rollout_commands import By, Reason
from c4b.deployment import Deployment
from c4b.errors import InvalidInput

Before = Annotated[datetime | None, typer.Option(help="Only what was decided before this time, in UTC.")]


@app.command()
def erase(
    url: Url,
    name: Name,
    request_id: Annotated[
        str | None, typer.Option(help="Request id of the decision whose context is erased.")
    ] = None,
    before: Before = None,
    as_json: AsJson = False,
) -> None:
    """Erase contexts, which may contain personal data: of one request, or older than a time."""
    if (request_id is None) == (before is None):
        raise InvalidInput("--request-id", request_id, "give either --request-id or --before")
    with Deployment.open(url, name) as dep:
        if request_id is not None:
            erased = dep.erase_context(request_id)
        else:
            assert before is not None
            erased = dep.erase_contexts(before.replace(tzinfo=UTC))
        answer({"erased": erased}, as_json)


@app.command()
def archive(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="The Parquet file to write; keep it.")],
    reason: Reason,
    before: Before = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Move closed entries to a file. `c4b deploy audit --archive FILE` includes it.

    If no entries are closed, nothing is written; the command prints 0 entries and no path.
    """
    limit = None if before is None else before.replace(tzinfo=UTC)
    with Deployment.open(url, name) as dep:
        entries = dep.archive(path, reason, limit, by)
    answer({"path": str(path) if entries else None, "entries": entries}, as_json)


@app.command()
def unarchive(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="A file that `archive` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Bring archived entries back into the store."""
    answer({"entries": Deployment.unarchive(url, name, path)}, as_json)


@app.command()
def succeed(
    url: Url,
    predecessor: Annotated[str, typer.Argument(help="The deployment to close.")],
    name: Annotated[str, typer.Argument(help="Name of its successor.")],
    reason: Reason,
    reserve: Annotated[
        float | None, typer.Option(help="At most what is certified to be left, which is the default.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="If not given, the predecessor's.")] = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Close a deployment and start its successor, with what it learned and the rest of its reserve.

    The successor has the same model and settings; to change them, call `Deployment.successor` in
    Python. Repeat the command if it was interrupted.
    """
    options: dict[str, Any] = {} if policy is None else {"policy": policy}
    with Deployment.successor(
        url, predecessor, name, reason, reserve=reserve, by=by, **options
    ) as dep:  # fmt: skip
        answer(dep.state().to_dict(), as_json)
