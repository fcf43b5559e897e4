"""The result of one diagnostic test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one test: the question, the answer and the remedy."""

    question: str
    good: bool
    """Whether the rows do not contradict the assumption. This is no proof."""
    said: str
    """The numbers, in a sentence."""
    remedy: str
    """What to do; empty if nothing is needed."""
