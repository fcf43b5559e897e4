"""Results of a study as an HTML table for notebooks. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import student

if TYPE_CHECKING:
    from c4b.study.results.results import Results

SHOWN = 60
"""Rows of a table; the rest is counted."""


def results_table(results: Results) -> str:
    """Mean reward ratio of every method in every setting, with 95 % intervals over episodes."""
    methods = [method.label for method in results.study.methods]
    settings = range(min(len(results.study.settings), SHOWN))
    rows = [
        [results.describe(n), *(_interval(results, n, method) for method in methods)] for n in settings
    ]
    rest = len(results.study.settings) - SHOWN
    more = f"<p>and {rest} more settings</p>" if rest > 0 else ""
    title = f"<p><b>{escape(results.study.name)}</b>: mean reward ratio, 95 % interval over episodes</p>"
    return f"{title}{_table(['setting', *methods], rows)}{more}"


def _interval(results: Results, setting: int, method: str) -> str:
    if not results.study.plays(setting, method):
        return ""
    found = student(results.values(setting, method, Metric.REWARD_RATIO))
    return f"{found.mean:.4f} [{found.low:.4f}, {found.high:.4f}]"


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"<tr>{_cells('th', heading)}</tr>"] if heading else []
    lines += [f"<tr>{_cells('th', row[:1])}{_cells('td', row[1:])}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
