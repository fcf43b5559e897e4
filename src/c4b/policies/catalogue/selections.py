"""Selection rules by name: which of the admissible candidates may be played, and which is.

docs/theory.md, section "Choice". A later rule of a family says only what it changes. Earlier ones stay,
because deployments that began with them go on with them.
"""

from __future__ import annotations

from typing import NamedTuple

from c4b.policies.catalogue.choice_rule import BANK_COMPETES, BASELINE_COMPETES, COUNTERWEIGHTS, SAVES_UP


class Selection(NamedTuple):
    """The numbers of one rule. Without any, the best-scored admissible candidate is played."""

    propose: bool = False
    """Only the best-scored candidate of all is tested."""
    always_optimistic: bool = False
    """Every round scores by the UCB."""
    thrift: float = 0.0
    """Where there are such, the choice is among candidates that leave this share of the bank, or six
    rounds of baseline credit: what is not spent on one bold play keeps the gate open for the next."""
    competes: int = 0
    """What a candidate must beat that promises no more than the baseline; 0: nothing. See
    ``c4b.policies.catalogue.choice_rule``."""
    trust: float = 0.0
    """Half-widths added to the middle of x(a) - x(b) where the baseline competes. Not 0: after a
    baseline-only history the middle of an unknown candidate is 0, and it should be tried."""
    hope: float = 0.0
    """c: where no candidate promises more than the baseline, one that could be better is tried while
    the t rounds so far seem to have lost or gained less than c units of
    ``c4b.policies.catalogue.choice_rule.leeway`` in rewards of the baseline; 0: none is."""
    hopes_trust: float = 0.0
    """q: a candidate could be better if x(a) - x(b), scored with q half-widths, is above 0."""
    saving: float = 0.0
    """Share of all that alpha has granted in t rounds, alpha t rewards of the baseline, less what seems
    lost or gained so far, that learning about one candidate may cost by
    ``choice_rule.cost_of_learning``; then it is tried before there is any leeway."""
    ambition: float = 0.0
    """Share of what the best-scored candidate could gain: one that takes from the bank and is not
    surely better must be able to gain as much, so that nothing is spent that is saved for a trial. And
    with it only features that differ from the baseline's count in a cost of learning, and what was
    cheap stays so."""
    endures: bool = False
    """What learning may cost goes on to grow once there is leeway, with t^(3/4); and q is for 5
    features or more, for d it is q sqrt(5/d), at most 1: a half-width has about sqrt(d) standard
    errors."""
    unfunded: float = 0.0
    """Share of the leeway that ``c4b.policies.catalogue.choice_rule.fund`` goes without."""
    shuffles: bool = False
    """Candidates whose scores are equal, such as arms that nobody has tried, are ordered by the data, as
    if at random; else the first of the list comes first."""
    careful: bool = False
    """What is expected of a candidate is by a prior whose variance the data say: ``c4b.evidence.belief``.
    And a candidate that is played for what it leaves in the bank saves rounds of the baseline: what the
    best-scored candidate is expected to gain in them must be more than what this one is expected to
    lose."""
    lessons: float = 0.0
    """Plays that one play of the best-scored candidate counts as, because it teaches. Then what a play
    saves is counted in plays of that candidate, by what these take from the bank, instead of rounds of
    the baseline; and what actions have in common is as much in the baseline as in the mean of all
    candidates. 0: as before."""
    patience: float = 0.0
    """Hope tries a candidate only if learning whether it is better takes no more plays than so many times
    the rounds that there were; 0: any number."""


_COMPETITIVE = Selection(thrift=0.9, competes=BASELINE_COMPETES, trust=0.02)
_HOPEFUL = _COMPETITIVE._replace(hope=4.0, hopes_trust=0.5)
_HOPEFUL_2 = _HOPEFUL._replace(saving=0.5)
_HOPEFUL_3 = _HOPEFUL_2._replace(ambition=0.2)
_HOPEFUL_4 = _HOPEFUL_3._replace(saving=0.75, endures=True)
_HOPEFUL_5 = _HOPEFUL_4._replace(thrift=0.0, competes=SAVES_UP, unfunded=0.75)
_HOPEFUL_6 = _HOPEFUL_5._replace(shuffles=True)
_HOPEFUL_7 = _HOPEFUL_6._replace(careful=True)

SELECTIONS = {
    # the best-scored admissible candidate
    "filter": Selection(),
    "thrifty": Selection(thrift=0.9),
    # only the best-scored candidate is tested
    "propose": Selection(propose=True),
    # propose, with the baseline in the pool: it is played if no candidate has a higher UCB
    "pooled": Selection(propose=True, always_optimistic=True, competes=BASELINE_COMPETES),
    # thrifty; and a candidate that promises no more than the baseline, and leaves no more in the bank
    # than playing the baseline, is not played
    "competitive": _COMPETITIVE,
    # competitive; but such a candidate is played, too, if it leaves more than there is in the bank and
    # could be better than the baseline: what it teaches costs nothing that is certified
    "curious": _COMPETITIVE._replace(competes=BANK_COMPETES),
    # curious without thrift; and where the best-scored candidate is not admissible though it promises
    # more than the baseline, the lowest-scored one is played of those that leave more than the baseline
    "balanced": _COMPETITIVE._replace(thrift=0.0, competes=COUNTERWEIGHTS),
    # competitive; but where nobody promises more than the baseline, what could be better is tried
    "hopeful": _HOPEFUL,
    # and what is cheap to learn is tried at once
    "hopeful-2": _HOPEFUL_2,
    # and what is saved for a trial is not spent on what could gain little
    "hopeful-3": _HOPEFUL_3,
    # and what is cheap grows with time; and with few features more could be better
    "hopeful-4": _HOPEFUL_4,
    # a smaller fund and no thrift; but where the best-scored candidate is not admissible though it
    # promises more than the baseline, the best-scored one is played of those that leave more than the
    # baseline
    "hopeful-5": _HOPEFUL_5,
    # and of candidates that nothing tells apart not always the first of the list is tried first
    "hopeful-6": _HOPEFUL_6,
    # and less is expected of candidates where the data show little; and what is played for what it leaves
    # in the bank costs no more than is gained in the rounds of the baseline that it saves
    "hopeful-7": _HOPEFUL_7,
    # and a play that saves is worth plays of the best-scored candidate, not rounds of the baseline; and
    # nothing is hoped for that cannot be learned in time
    "hopeful-8": _HOPEFUL_7._replace(lessons=3.0, patience=4.0),
}
