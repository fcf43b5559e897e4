"""Fills in the parts of the reference that the program itself knows: its commands and its routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from c4b.cli.main import app
from c4b.service.app import create
from c4b.service.settings import Settings


def on_config(config: Any) -> None:
    """Leave out of the navigation what is not written yet. A page that it misses is an error anyway."""
    docs = Path(config.docs_dir)
    for section in config.nav:
        for pages in section.values():
            if isinstance(pages, list):
                pages[:] = [
                    page for page in pages if all((docs / path).exists() for path in page.values())
                ]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    for name, make in {"commands": commands, "routes": routes}.items():
        marker = f"<!-- generated: {name} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, "\n".join(make()))
    return markdown


def cell(text: object) -> str:
    return " ".join(str(text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def commands() -> Iterator[str]:
    """A section for each command."""
    yield from _command(typer.main.get_command(app), "c4b")


def _command(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _command(inner, f"{path} {name}")
        return
    positional = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([path, *(p.name.upper() for p in positional)])
    yield f"## {path}\n\n```text\n{usage} [OPTIONS]\n```\n\n{_help(command.help or '')}\n"
    if command.params:
        yield "| parameter | meaning |\n|---|---|"
        for parameter in command.params:
            names = parameter.name.upper() if parameter in positional else ", ".join(parameter.opts)
            yield f"| `{names}` | {cell(getattr(parameter, 'help', ''))} |"
    yield ""


def _help(text: str) -> str:
    """The terminal's bold examples as code."""
    return re.sub(
        r"\[bold\](.*?)\[/bold\]", lambda found: f"`{' '.join(found[1].split())}`", text, flags=re.S
    )


def routes() -> Iterator[str]:
    """A table of routes, and the fields of every body."""
    api = create(Settings("sqlite:///documentation.db")).openapi()
    yield "| route | what it does |\n|---|---|"
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            yield f"| `{method.upper()} {path}` | {cell(route.get('summary'))} |"
    for name, schema in sorted(api["components"]["schemas"].items()):
        if "properties" not in schema:
            continue
        yield f"\n### {name}\n\n{schema.get('description', '')}\n"
        yield "| field | type | meaning |\n|---|---|---|"
        for field, about in schema["properties"].items():
            required = "" if field in schema.get("required", []) else " (optional)"
            yield f"| `{field}`{required} | {cell(_type(about))} | {cell(about.get('description'))} |"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
