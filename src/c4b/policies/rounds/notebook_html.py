"""Decisions and explanations as HTML tables for notebooks. Every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from c4b.policies.rounds.decision import Decision
    from c4b.policies.rounds.explanation import CandidateReport, Explanation

HEADING = (
    *("", "candidate", "score", "bank after", "admissible"),
    *("certified", "estimate", "upper", "why not played"),
)
SHOWN = 50
"""Candidates in a table; the rest is counted."""


def decision(made: Decision) -> str:
    """One decision: what to execute, and what is certified."""
    played = "the baseline" if made.action is None else f"candidate {made.action}"
    rows = [
        ("id", made.id),
        ("execute", played if made.label is None else f"{made.label} ({played})"),
        ("bank", f"{number(made.bank_before)} → {number(made.bank)}"),
        ("certified contrast", number(made.certificate)),
        ("policy", made.policy),
    ]
    if made.alarm is not None:
        rows.append(("alarm", made.alarm))
    return f"<table>{''.join(_row('th', pair[:1], pair[1:]) for pair in rows)}</table>"


def explanation(why: Explanation) -> str:
    """Sentences and a table of the candidates, the chosen one in bold."""
    sentences = (why.summary, why.because, why.rule)
    parts = [f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence]
    lines = [_row("th", HEADING, ())]
    ordered = sorted(why.candidates, key=lambda each: not each.chosen)
    lines += [_candidate(each) for each in ordered[:SHOWN]]
    parts.append(f"<table>{''.join(lines)}</table>")
    if len(ordered) > SHOWN:
        parts.append(f"<p>and {len(ordered) - SHOWN} more candidates</p>")
    return "".join(parts)


def _candidate(each: CandidateReport) -> str:
    cells = (
        str(each.candidate) if each.label is None else f"{each.label} ({each.candidate})",
        number(each.score),
        number(each.margin),
        "yes" if each.admissible else "no",
        number(each.joint),
        number(each.estimate),
        number(each.upper),
        each.reason,
    )
    return _row("th" if each.chosen else "td", ("★" if each.chosen else "", *cells), ())


def _row(tag: str, first: Sequence[str], rest: Sequence[str]) -> str:
    cells = [f"<{tag}>{escape(text)}</{tag}>" for text in first]
    cells += [f"<td>{escape(text)}</td>" for text in rest]
    return f"<tr>{''.join(cells)}</tr>"


def number(value: float) -> str:
    """Four decimals; a dash where there is no number."""
    return f"{value:.4f}" if math.isfinite(value) else "-"
