"""Describes in sentences how a policy chooses among admissible candidates, and why it chose as it did.

Everything is read from what a decision records: scores, margins, bank and alarm. Nothing here decides.
"""

from __future__ import annotations

import math

import numpy as np

from c4b.policies.catalogue.choice_rule import BASELINE_COMPETES, COUNTERWEIGHTS, SAVES_UP, Rule
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.registry import PolicySpec
from c4b.policies.compiled.compiled_choice import CUSHION
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision, candidate_name

ADMISSIBLE = "A candidate is admissible if the bank after playing it is certified to be at least 0."
NO_NOISE = 0.0
"""The noise that sentences assume: none of them depends on it."""


BELIEVING = ("constrained", "unbiased", "several-ridges")
"""Confidence sets beside which something is believed of theta; with others, scores are by intervals."""


def rule_in_words(spec: PolicySpec, dim: int, confidence: str | None = None) -> str:
    """How ``spec`` orders admissible candidates of ``dim`` features, with this confidence set."""
    if not isinstance(spec, Composition):
        return f"{ADMISSIBLE} Among these, {spec.name} chooses by its own rule: {spec.summary}."
    rule = _rule(spec, dim, confidence)
    if not spec.gated:
        return f"There is no gate. The score is {_score(rule)}; the highest score is played."
    sentences = [ADMISSIBLE, f"The score is {_score(rule)}."]
    if spec.selection == "pooled":
        sentences.append(
            "Only the candidate with the highest score is tested, and only if its score is above the "
            "baseline's; otherwise the baseline is played."
        )
        return " ".join(sentences)
    if rule.propose:
        sentences.append(
            "Only the candidate with the highest score is tested; if it is not admissible, the baseline "
            "is played."
        )
    elif rule.thrift:
        sentences.append(
            "Thrift: the candidate with the highest score is played among those that leave "
            f"{rule.thrift:.0%} of the bank, or {CUSHION:g} rounds of baseline credit if that is less; "
            "if there are none, among all admissible candidates."
        )
    else:
        sentences.append("The admissible candidate with the highest score is played.")
    if rule.competes in (BASELINE_COMPETES, SAVES_UP):
        sentences.append(
            "A candidate that promises no more than the baseline and leaves no more in the bank"
            f"{', or less than is due,' if rule.careful else ''} is passed over."
        )
        if rule.believes:
            view = "a more cautious expectation" if rule.careful else "the posterior expectation"
            sentences.append(f"It promises more only if both its interval and {view} say so.")
    elif rule.competes:
        sentences.append(
            "A candidate that promises no more than the baseline and leaves no more in the bank is "
            "passed over, unless it could be better and takes nothing from the bank."
        )
    if rule.competes == COUNTERWEIGHTS:
        sentences.append(
            "Counterweight: if the best-scored candidate promises more than the baseline but is not "
            "admissible, the lowest-scored candidate is played among those that leave more in the bank "
            "than the baseline would."
        )
    if rule.competes == SAVES_UP and rule.careful:
        sentences.append(
            "Saving up: if the best-scored candidate promises more than the baseline but is not "
            "admissible, the admissible candidate is played that brings it nearest: by what it earns, "
            "undoes or teaches."
        )
        worth = (
            "replaces so many rounds of saving that the best-scored candidate is expected to gain more "
            "in them"
        )
        if rule.lessons:
            worth = (
                "pays for so many plays of the best-scored candidate that these are expected to gain "
                f"more. One of these plays counts as {rule.lessons:g}, because it teaches"
            )
        sentences.append(
            "Due: a candidate that is expected to earn less than the baseline is played for what it "
            f"saves, or brings nearer, only if that is worth its cost: if it {worth}."
        )
    elif rule.competes == SAVES_UP:
        sentences.append(
            "Saving up: if the best-scored candidate promises more than the baseline but is not "
            "admissible, the best-scored candidate is played among those that leave more in the bank "
            "than the baseline would."
        )
    leeway = f"alpha sqrt(t) - {rule.reluctance:.2g}"
    if rule.hope:
        fund = f"{1.0 - rule.unfunded:g} ({leeway})" if rule.unfunded else leeway
        sentences.append(
            "Fund: a candidate that is not certified to be better than the baseline is also passed over "
            f"if it would leave less than {fund} rewards of the baseline in the bank, or less than the "
            "present bank if that is smaller."
        )
        sentences.append(
            "Hope: if no candidate promises more, the best-scored candidate that could be better is "
            "tried, as long as the estimated loss or gain of the t rounds so far is less than "
            f"{rule.hope:g} ({leeway}) rewards of the baseline{_in_time(rule)}."
        )
    if rule.saving:
        sentences.append(
            f"Before alpha sqrt(t) is above {rule.reluctance:.2g}, it is tried if learning whether it is "
            "better is cheap: if the estimated cost of the plays that this takes is at most "
            f"{rule.saving:g} of all that alpha has granted so far, less the estimated loss or gain."
        )
        if rule.persists:
            price = "the amount that was granted until then"
            if rule.endures:
                price += ", which grows further with the power 3/4 of the number of rounds"
            sentences.append(
                "Plays are needed for each feature in which it differs from the baseline. Later, it is "
                f"tried if the cost is at most {price}."
            )
    if rule.ambition:
        sentences.append(
            "Ambition: a candidate that takes from the bank and is not certified to be better is also "
            f"passed over if it could gain less than {rule.ambition:g} of what the best-scored candidate "
            "could gain. This holds as long as that candidate would be played and the baseline saves "
            "enough for it in as many rounds as there have been."
        )
    unthrifty = ", without thrift" if rule.thrift else ""
    if rule.optimism:
        bound = "by the upper bound"
        if rule.boldest > 1:
            bound = (
                f"one in {rule.boldest} by the upper bound, the others by the middle plus "
                f"{max(1.0 - rule.restraint, rule.boldness):.2g} of the half-width"
            )
        sentences.append(
            f"About {rule.optimism:g} ({leeway}) of the first t rounds are optimistic, and one in "
            f"{rule.period}: they score {bound}{unthrifty}, so that no candidate is ignored forever."
        )
    elif rule.period:
        sentences.append(
            f"One round in {rule.period} is optimistic: it scores by the upper bound{unthrifty}, so that "
            "no candidate is ignored forever."
        )
    if rule.latches:
        sentences.append("Latch: once the data refute the model, only the baseline is played.")
    return " ".join(sentences)


def _in_time(rule: Rule) -> str:
    if not rule.patience:
        return ""
    return (
        f", and learning whether it is better takes at most {rule.patience:g} times as many plays as "
        "there have been rounds, or is cheap"
    )


def _score(rule: Rule) -> str:
    if rule.by_certificate:
        return "the certified lower bound of the contrast"
    if rule.believes:
        return (
            "the posterior expectation of the candidate's reward, from the data and a Gaussian prior, "
            f"plus {rule.believes:.2g} standard deviations"
        )
    if rule.boldness == 1.0:
        return "the upper bound of the candidate's reward (UCB)"
    if rule.boldness == 0.0:
        return "the middle of the interval of the candidate's reward"
    return (
        f"the middle of the interval of the candidate's reward plus {rule.boldness:.2g} of its half-width"
    )


def _shown(score: float) -> str:
    """An arm of which nothing is known has a score beyond all others."""
    return f"{score:.4f}" if abs(score) < 1e9 else f"{score:.0e}"


def _rule(spec: Composition, dim: int, confidence: str | None) -> Rule:
    """The rule, without what only a belief can say if there is none."""
    rule = spec.rule(dim, NO_NOISE)
    believes = confidence is None or confidence in BELIEVING
    return rule if believes else rule._replace(believes=0.0, careful=False, lessons=0.0)


def because(
    decision: Decision,
    spec: PolicySpec,
    dim: int,
    before_any_play: bool = False,
    confidence: str | None = None,
) -> str:
    """Why this action was chosen, in one or two sentences; empty if the summary already says it.

    before_any_play: no candidate was played in any round before this one.
    """
    if not isinstance(spec, Composition) or decision.propensity is not None:
        return ""
    rule = _rule(spec, dim, confidence)
    if decision.alarm and rule.latches and decision.action is None:
        return (
            f"Latch: the data contradict the model ({decision.alarm}), so certificates are void and only "
            "the baseline is played, even if candidates have a margin of at least 0."
        )
    if decision.action is not None:
        return _because_played(decision, rule, decision.action, spec.gated)
    admissible = sum(margin >= 0.0 for margin in decision.details[CandidateField.MARGIN].tolist())
    if before_any_play and not admissible and decision.details.shape[1] and not _lacks_margins(decision):
        return (
            "Forced phase: no candidate has been played yet. Data about the baseline alone cannot "
            "certify another action, so the baseline is played until its credit and the reserve cover "
            "the worst case that the model allows for a candidate."
        )
    return ""


def _lacks_margins(decision: Decision) -> bool:
    """Whether the choice needed not all margins, and only those that it needed are known."""
    return bool(np.isnan(decision.details[CandidateField.MARGIN]).any())


def _because_played(decision: Decision, rule: Rule, played: int, gated: bool) -> str:
    scores = decision.details[CandidateField.SCORE].tolist()
    margins = decision.details[CandidateField.MARGIN].tolist()
    ucbs = decision.details[CandidateField.UCB].tolist()
    named = f"a score of {_shown(scores[played])}"
    if not gated:
        return f"It has the highest score of all, {_shown(scores[played])}."
    admissible = [k for k, margin in enumerate(margins) if margin >= 0.0]
    higher = [k for k in admissible if scores[played] < scores[k] < math.inf]
    optimistic = (
        "This was an optimistic round, which scores by the upper bound. "
        if rule.period > 1 and all(s == u for s, u in zip(scores, ucbs, strict=True) if math.isfinite(s))
        else ""
    )
    if higher and rule.competes == COUNTERWEIGHTS:
        return (
            f"Counterweight: the best-scored candidate is not admissible yet. This one, with {named}, "
            f"leaves {margins[played]:.4f} in the bank of {decision.bank_before:.4f}, more than the "
            "baseline would: it offsets the uncertainty that earlier plays left and gives information "
            "about the same direction."
        )
    if higher and rule.competes == SAVES_UP:
        why = (
            " and is played to bring it nearer"
            if rule.careful
            else ", more than the baseline would, and has the highest score of those that do"
        )
        return (
            f"Saving up: the best-scored candidate is not admissible yet. This one, with {named}, leaves "
            f"{margins[played]:.4f} in the bank of {decision.bank_before:.4f}{why}."
        )
    if higher and rule.thrift:
        best = max(higher, key=lambda k: scores[k])
        return (
            f"Thrift: {candidate_name(decision.labels, best)} has a higher score ({scores[best]:.4f}) "
            f"but would leave only {margins[best]:.4f} in the bank of {decision.bank_before:.4f}; this "
            f"one, with {named}, leaves {margins[played]:.4f}."
        )
    if _lacks_margins(decision):
        return f"{optimistic}It has {named}, the highest of the admissible candidates."
    others = [scores[k] for k in admissible if k != played and math.isfinite(scores[k])]
    if not others and rule.hope and len(admissible) > 1:
        return (
            f"{optimistic}It has {named}; all other admissible candidates promise too little compared "
            "with the baseline and were passed over."
        )
    if not others:
        return f"{optimistic}It has {named} and is the only candidate to choose from."
    rest = f"the highest of {len(others) + 1} admissible candidates; the next has"
    return f"{optimistic}It has {named}, {rest} {_shown(max(others))}."
