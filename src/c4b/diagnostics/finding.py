"""One answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was asked, whether the rows speak against it, and what to do then."""

    question: str
    good: bool
    """The rows do not contradict it. That is no proof."""
    said: str
    """The numbers, in a sentence."""
    remedy: str
    """What to do; empty if nothing."""
