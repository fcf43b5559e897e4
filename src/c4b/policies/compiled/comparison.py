"""A candidate beside the baseline: what it promises, what it could gain, and whether it is worth trying.

docs/theory.md, section "Choice". [low, high] is the set's interval of (x(a) - x(b)) @ theta; a belief, if
there is one, has a mean and a standard deviation of it. ``contrasts`` (CONTRASTS, K) holds these four for
every candidate, or (CONTRASTS, 0) nothing. They come from a pool, so they may differ in last bits from
those of a candidate alone: where that could decide, the candidate alone is computed. scratch is (d,).
"""

from c4b._compilation.jit import called, inlined
from c4b._validate import LARGEST, Array
from c4b.evidence.belief import Belief, believes, deviation, expected
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import Region
from c4b.policies.catalogue.choice_rule import Rule, cost_of_learning, plays_to_learn

LOW, HIGH, EXPECTED, DEVIATION = 0, 1, 2, 3
"""Rows of ``contrasts``."""
CONTRASTS = 4
INFINITY = float("inf")


@inlined
def usable(rows: Array, k: int) -> bool:
    """Whether a row can be absorbed without an overflow."""
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) <= LARGEST:
            return False
    return True


@inlined
def scored(trust: float, low: float, high: float) -> float:
    """The middle of an interval and ``trust`` half-widths."""
    return 0.5 * ((1.0 + trust) * high + (1.0 - trust) * low)


@inlined
def write_contrast(candidates: Array, k: int, baseline: Array, scratch: Array) -> None:
    """x(a) - x(b) into scratch."""
    for i in range(len(scratch)):
        scratch[i] = candidates[k, i] - baseline[i]


@inlined
def contrast_interval(
    region: Region, candidates: Array, k: int, baseline: Array, scratch: Array
) -> tuple[float, float]:
    """[low, high]; leaves x(a) - x(b) in scratch."""
    write_contrast(candidates, k, baseline, scratch)
    return interval(region, scratch)


@inlined
def exceeds(
    region: Region,
    trust: float,
    than: float,
    candidates: Array,
    k: int,
    baseline: Array,
    contrasts: Array,
    scratch: Array,
) -> bool:
    """Whether x(a) - x(b), scored like a candidate with ``trust`` half-widths, is more ``than`` that."""
    if than == -INFINITY:
        return True
    if contrasts.shape[1] > 0:
        low, high = contrasts[LOW, k], contrasts[HIGH, k]
        known, scale = scored(trust, low, high) - than, abs(low) + abs(high) + abs(than)
        if 1e-9 * scale < abs(known) < INFINITY:
            more: bool = known > 0.0
            return more
    low, high = contrast_interval(region, candidates, k, baseline, scratch)
    return scored(trust, low, high) > than


@inlined
def is_expected(region: Region, belief: Belief, rule: Rule, contrast: Array) -> bool:
    """Whether belief, if there is one, expects more of a candidate than of the baseline, or nearly so:
    with ``trust`` of ``believes`` standard deviations. What is quite unknown should be tried."""
    if not believes(belief):
        return True
    mean = expected(belief, contrast)
    if mean > 0.0:
        return True
    return mean + rule.trust * rule.believes * deviation(region, belief, contrast) > 0.0


@inlined
def expects_more(
    region: Region,
    belief: Belief,
    rule: Rule,
    candidates: Array,
    k: int,
    baseline: Array,
    contrasts: Array,
    scratch: Array,
) -> bool:
    """``is_expected`` of a candidate's contrast."""
    if not believes(belief):
        return True
    if contrasts.shape[1] > 0:
        mean, spread = contrasts[EXPECTED, k], rule.believes * contrasts[DEVIATION, k]
        known = mean + rule.trust * spread
        if 1e-9 * (abs(mean) + spread) < abs(known) < INFINITY:
            more: bool = known > 0.0
            return more
    write_contrast(candidates, k, baseline, scratch)
    return is_expected(region, belief, rule, scratch)


@inlined
def promises(
    region: Region,
    belief: Belief,
    rule: Rule,
    candidates: Array,
    k: int,
    baseline: Array,
    contrasts: Array,
    scratch: Array,
) -> bool:
    """Whether a candidate promises more than the baseline: by the set, and by what is believed."""
    return exceeds(region, rule.trust, 0.0, candidates, k, baseline, contrasts, scratch) and expects_more(
        region, belief, rule, candidates, k, baseline, contrasts, scratch
    )


@inlined
def due(
    belief: Belief, exchange: float, candidates: Array, k: int, baseline: Array, scratch: Array
) -> float:
    """What a candidate must leave in the bank above the baseline's margin, to be played for that: what it
    is expected to lose, at ``exchange`` for each unit."""
    if not exchange > 0.0:
        return 0.0
    write_contrast(candidates, k, baseline, scratch)
    loss = -expected(belief, scratch)
    return exchange * loss if loss > 0.0 else 0.0


@called
def possible_gain(
    region: Region, belief: Belief, rule: Rule, candidates: Array, k: int, baseline: Array, scratch: Array
) -> float:
    """What a candidate could gain: what is believed and ``believes`` standard deviations, or the middle
    of the set's interval and ``hopes_trust`` half-widths."""
    if believes(belief):
        write_contrast(candidates, k, baseline, scratch)
        mean = expected(belief, scratch)
        return mean + rule.believes * deviation(region, belief, scratch)
    low, high = contrast_interval(region, candidates, k, baseline, scratch)
    return scored(rule.hopes_trust, low, high)


@inlined
def could_gain(
    region: Region,
    belief: Belief,
    rule: Rule,
    than: float,
    candidates: Array,
    k: int,
    baseline: Array,
    contrasts: Array,
    scratch: Array,
) -> bool:
    """Whether ``possible_gain`` is more ``than`` that."""
    if than == -INFINITY:
        return True
    if contrasts.shape[1] > 0:
        first, second = contrasts[LOW, k], contrasts[HIGH, k]
        known, scale = (
            scored(rule.hopes_trust, first, second) - than,
            abs(first) + abs(second) + abs(than),
        )
        if believes(belief):
            first, second = contrasts[EXPECTED, k], rule.believes * contrasts[DEVIATION, k]
            known, scale = first + second - than, abs(first) + second + abs(than)
        if 1e-9 * scale < abs(known) < INFINITY:
            more: bool = known > 0.0
            return more
    return possible_gain(region, belief, rule, candidates, k, baseline, scratch) > than


@called
def is_worth_trying(
    region: Region,
    belief: Belief,
    rule: Rule,
    patience: float,
    allowance: float,
    candidates: Array,
    k: int,
    baseline: Array,
    contrasts: Array,
    scratch: Array,
) -> bool:
    """Whether a candidate could be better than the baseline, and learning about it takes no more plays
    than ``patience`` or costs no more than ``allowance``: by the set, and by what is believed."""
    known, features = contrasts.shape[1] > 0, len(scratch)
    if rule.persists:
        for i in range(len(scratch)):
            features -= candidates[k, i] == baseline[i]
    low, high, clear = 0.0, 0.0, False
    if known:
        low, high = contrasts[LOW, k], contrasts[HIGH, k]
        gain = scored(rule.hopes_trust, low, high)
        clear = _is_clear(
            rule, patience, allowance, gain, 0.5 * (low + high), abs(low) + abs(high), features
        )
    if not clear:
        low, high = contrast_interval(region, candidates, k, baseline, scratch)
    gain, middle = scored(rule.hopes_trust, low, high), 0.5 * (low + high)
    if not _pays(rule, patience, allowance, gain, middle, features):
        return False
    if not believes(belief):
        return True
    clear = False
    if known:
        middle, spread = contrasts[EXPECTED, k], rule.believes * contrasts[DEVIATION, k]
        gain = middle + spread
        clear = _is_clear(rule, patience, allowance, gain, middle, abs(middle) + spread, features)
    if not clear:
        gain = possible_gain(region, belief, rule, candidates, k, baseline, scratch)
        middle = expected(belief, scratch)
    return _pays(rule, patience, allowance, gain, middle, features)


@inlined
def _pays(
    rule: Rule, patience: float, allowance: float, gain: float, middle: float, features: int
) -> bool:
    """Whether a candidate that could gain so much, and seems to gain ``middle``, is worth trying."""
    return gain > 0.0 and (
        plays_to_learn(rule, gain, features) <= patience
        or cost_of_learning(rule, gain, middle, features) <= allowance
    )


@inlined
def _is_clear(
    rule: Rule, patience: float, allowance: float, gain: float, middle: float, scale: float, features: int
) -> bool:
    """Whether last bits cannot change ``_pays``."""
    if not 1e-6 * scale < abs(gain) < INFINITY:
        return False
    if patience == INFINITY or not gain > 0.0:
        return True
    plays = plays_to_learn(rule, gain, features)
    if not abs(plays - patience) > 1e-6 * (plays + patience):
        return False
    cost = cost_of_learning(rule, gain, middle, features)
    return plays < patience or abs(cost - allowance) > 1e-6 * (cost + abs(allowance))
