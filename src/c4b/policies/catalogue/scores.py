"""Scores by name: in which order a selection looks at candidates. Any order is sound.

docs/theory.md, section "Choice". Earlier scores stay, because deployments that began with them go on with
them.
"""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """The middle of a reward's interval and ``boldness`` half-widths; and which rounds add more."""

    boldness: float
    """Half-widths, 1: the UCB. Where some rounds are optimistic this is for 5 features; for d it is
    sqrt(5/d) times as much, at most 1: a half-width has about sqrt(d) standard errors."""
    period: int = 0
    """m: one round of m takes the UCB and keeps no cushion, so that no candidate is ignored for ever;
    0: no round does."""
    optimism: float = 0.0
    """a: so do a more of the first rounds for each unit of their leeway: who may lose more tries more,
    and most of it early."""
    restraint: float = 0.0
    boldest: int = 0
    """r and n: of n such rounds the first takes the UCB, the others 1 - r half-widths. A half-width is
    several standard errors: it takes a whole one to try what is unknown, too much for what was
    tried."""
    believes: float = 0.0
    """In rounds that are not optimistic: standard deviations that are added to what
    ``c4b.evidence.belief`` expects, instead of half-widths to a middle; 0: nothing is believed. And
    where the baseline competes, a candidate of which no more is expected than of the baseline promises
    no more, whatever the set says. For 5 features or more; for d it is sqrt(5/d) times as much: with
    few features it pays to look further. With a set that keeps no eigenbasis of A, nothing is
    believed."""


_MEASURED = Score(0.4, period=1024, optimism=8.0)
_MEASURED_2 = _MEASURED._replace(restraint=0.5, boldest=2)

CERTIFICATE = "certificate"
"""The name of the score that is the contrast's lower bound."""
SCORES = {
    "ucb": Score(1.0),
    "blend": Score(0.5),
    "mean": Score(0.0),
    "patient": Score(0.4, period=32),
    CERTIFICATE: Score(1.0),
    "keen": Score(0.2, period=32),
    "measured": _MEASURED,
    "measured-2": _MEASURED_2,
    "believed": _MEASURED_2._replace(believes=2.0),
}
