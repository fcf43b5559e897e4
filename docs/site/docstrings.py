"""Docstrings as Markdown: ``Parameters`` becomes a list, and ``:class:`X``` becomes ``X``."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|mod|attr|data):`~?([^`]+)`")
_SECTION = re.compile(r"^(Parameters|Returns|Format 1)\n-{3,}\n", re.MULTILINE)
_DOCTEST = re.compile(r"(?:^>>> .*\n(?:^(?!\s*$).*\n?)*)", re.MULTILINE)


def as_markdown(text: str) -> str:
    """The docstring, so that a Markdown renderer shows what its author meant."""
    text = _ROLE.sub(r"`\1`", text)
    head, *rest = _SECTION.split(text)
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        listed, _, tail = body.partition("\n\n")
        items = re.sub(r"^(\w[\w, ]*): ", r"- **\1**: ", textwrap.dedent(listed), flags=re.MULTILINE)
        head += f"**{title}**\n\n{items}\n\n{tail}"
    return _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", head)


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring when it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
