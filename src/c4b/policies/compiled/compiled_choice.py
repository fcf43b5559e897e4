"""Which admissible candidate a round plays: docs/theory.md, section "Choice".

It orders and removes candidates; it certifies nothing.
"""

from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined, larger, pooled
from c4b._compilation.kernel_parts import COMPETITION
from c4b._validate import Array
from c4b.certificates.contrast_kernels import structural, structural_above
from c4b.evidence.belief import Belief, believes, expected
from c4b.evidence.bounds import interval, upper
from c4b.evidence.ellipsoids import Region
from c4b.ledger.books import Account, Certificate, Ledger, Tally
from c4b.ledger.ledger_kernels import baseline_margin
from c4b.ledger.told_ledger import is_refuted
from c4b.policies.catalogue.choice_rule import (
    BANK_COMPETES,
    COUNTERWEIGHTS,
    SAVES_UP,
    Rule,
    boldness_now,
    fund,
    hopes,
    is_optimistic,
)
from c4b.policies.compiled.approach import nearest
from c4b.policies.compiled.comparison import (
    contrast_interval,
    could_gain,
    due,
    exceeds,
    is_expected,
    is_worth_trying,
    possible_gain,
    promises,
    scored,
    usable,
    write_contrast,
)
from c4b.policies.rounds.candidate_fields import MARGIN, SCORE, UCB

BASELINE = -1
"""The index that stands for the baseline in kernels."""
ALL_MARGINS, BEST_MARGINS, ONE_MARGIN = -4, -5, -6
"""Codes in the place of a choice: it needs all margins; those of the best-scored candidates, though they
may not be enough; with ONE_MARGIN - k, that of candidate k."""
FEW_BANKS = 10.0
"""If the best-scored candidate takes no more than so many banks, one that saves up is looked for among
the best-scored first: some of them are likely to be admissible."""
CUSHION = 6.0
"""A thrifty choice keeps no more than this many rounds of certified baseline credit in the bank."""
NO_SCORE = float(np.finfo(np.float64).min)
"""Of a candidate that is not admitted. Not -inf: the compiler would turn that into a branch."""
SURE = -1.0
"""Half-widths that a candidate needs below the middle to be surely better: the lower bound."""
ASKED_ONE_BY_ONE = 8
"""Candidates that are passed over one by one, best score first; then all others are looked at."""


@pooled
def best_from(details: Array, least: float, proposed: bool, lazy: bool) -> int:
    """Highest finite score among margins >= ``least``, lowest index on ties, or BASELINE.

    ``proposed``: margins do not matter. ``lazy``: a margin that is NaN is not known yet and may be large
    enough. First the highest score, then its first place, both for whole vectors at once: no branch
    depends on scores or margins, which nobody can predict.
    """
    size = details.shape[1]
    top, best = -np.inf, size
    for k in range(size):
        top = larger(top, _admitted_score(details, k, least, proposed, lazy))
    for k in range(size):
        best = min(best, k if _admitted_score(details, k, least, proposed, lazy) == top else size)
    return best if top > NO_SCORE else BASELINE


@inlined
def _admitted_score(details: Array, k: int, least: float, proposed: bool, lazy: bool) -> float:
    """The score that ``best_from`` compares; NO_SCORE or less: this candidate is not admitted."""
    value, margin = details[SCORE, k], details[MARGIN, k]
    admitted = (proposed | (margin >= least) | (lazy & np.isnan(margin))) & (value < np.inf)
    return value if admitted else NO_SCORE


@inlined
def choose(details: Array, propose: bool, least: float, lazy: bool) -> int:
    """The best-scored candidate whose margin is >= ``least``, else >= 0; else BASELINE.

    ``propose``: only the candidate of highest score is tested, against 0. ``lazy``: a candidate whose
    margin is not known is returned as ONE_MARGIN - k, if it would be chosen were its margin large enough.
    So what is chosen at last is what all margins would choose.
    """
    best = best_from(details, max(least, 0.0), propose, lazy)
    if lazy and best != BASELINE and np.isnan(details[MARGIN, best]):
        return ONE_MARGIN - best
    if propose:
        return best if best != BASELINE and details[MARGIN, best] >= 0.0 else BASELINE
    if best == BASELINE and least > 0.0:
        best = best_from(details, 0.0, False, False)
    return best


class Contest(NamedTuple):
    """What a choice depends on besides the candidates."""

    refuted: bool  # a told mean contradicts the data
    alarmed: bool  # no certificate counts
    competes: bool  # the baseline does
    optimistic: bool  # this round scores by the UCB, or nearly so
    least: float  # margin that a choice would like to have
    rival: float  # the baseline's margin; NaN: nobody has asked yet
    passed_over: int  # candidates that promise no more than the baseline
    patience: float  # one of them that could be better is played where nobody promises more, if learning
    # about it takes no more plays than that,
    allowance: float  # or if it costs no more than that; 0 or less: none is
    hope: int  # the first of them that could be, or BASELINE
    hopes_score: float
    fund: float  # margin that a candidate must have that is not surely better than the baseline
    aim: float  # and what it must be able to gain, to take from the bank; NaN: nobody has asked yet
    exchange: float  # what a play must save for each reward that it is expected to lose; NaN: likewise


@inlined
def opened_contest(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    alarmed: bool,
    baseline: Array,
    mean: float,
    earned: Array,
    scratch: Array,
) -> Contest:
    """``alarmed``: the model is refuted. ``mean`` is the baseline's if it is told, ``earned`` what
    absorbed plays have earned if somebody asks; scratch (d,)."""
    least, competes, rival = 0.0, rule.competes > 0, np.nan
    refuted = False
    if account.certificate == Certificate.KNOWN:
        refuted = is_refuted(ledger, account, region, baseline, mean)
    if (
        COMPETITION and competes and not account.floor >= 0.0
    ):  # only a baseline that may be played competes
        rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
        competes = rival >= 0.0
    optimistic = False
    if COMPETITION:
        optimistic = is_optimistic(ledger, account, rule)
    patience, allowance, kept = 0.0, 0.0, -np.inf
    hoping = rule.hope > 0.0 and competes and not optimistic
    saving = rule.thrift > 0.0 and not optimistic
    if COMPETITION and (hoping or saving):
        low, high = interval(region, baseline)
        if hoping:
            patience, allowance = hopes(region, belief, ledger, account, rule, 0.5 * (low + high))
            kept = fund(ledger, account, rule, low, high)
        if saving:
            saved = structural_above(low, account.alpha, 0.0, account.tolerance)
            least = min(rule.thrift * ledger.bank[0], CUSHION * saved)
    alarmed = alarmed or (rule.latches and refuted)
    aim = np.nan if rule.ambition > 0.0 else -np.inf
    return Contest(
        refuted, alarmed, competes, optimistic, least, rival, 0, patience, allowance, BASELINE, 0.0, kept,
        aim, np.nan,
    )  # fmt: skip


@inlined
def chosen(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    contest: Contest,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    scratch: Array,
    contrasts: Array,
    lazy: bool,
    space: Array,
) -> tuple[int, Contest]:
    """The choice among assessed candidates (K, d): an index, BASELINE, or which margins it needs first.

    details (ROWS, K); ``scratch`` (d,); ``contrasts`` as in ``comparison``; ``space`` as in ``approach``.
    """
    (
        refuted, alarmed, competes, optimistic, least, rival, passed_over, patience, allowance, hope,
        value, kept, aim, exchange,
    ) = contest  # fmt: skip
    action, hoping = BASELINE, patience > 0.0 or allowance > 0.0
    waits = rule.competes >= COUNTERWEIGHTS and competes
    if COMPETITION and waits and not (alarmed or optimistic or passed_over > 0):
        action, rival = _meanwhile(
            region, belief, ledger, account, rule, rival, candidates, baseline, mean, earned, details,
            scratch, lazy, space,
        )  # fmt: skip
    settled = alarmed or action != BASELINE
    while not settled:
        action = choose(details, rule.propose, least, lazy)
        if action < 0:
            break
        if not usable(candidates, action):
            _never_admit(details, action)
        elif COMPETITION and competes and optimistic:
            if not details[SCORE, action] > _baselines_score(
                region, baseline, boldness_now(ledger, account, rule)
            ):
                action = BASELINE  # it has the highest score of all
            break
        elif COMPETITION and competes:
            low, high = contrast_interval(region, candidates, action, baseline, scratch)
            promising = scored(rule.trust, low, high) > 0.0
            promising = promising and is_expected(region, belief, rule, scratch)
            if promising and scored(SURE, low, high) > 0.0:
                break
            if np.isnan(aim):
                top = best_from(details, 0.0, True, lazy)  # its margin is known: ``choose`` asked
                if top != action or not (promising and details[MARGIN, action] >= kept):
                    aim = _aim(
                        region, belief, ledger, account, rule, patience, allowance, candidates, top,
                        baseline, details, contrasts, scratch,
                    )  # fmt: skip
            beyond = True  # also where there is no aim, or nobody has asked
            if aim > -np.inf:
                gain = possible_gain(region, belief, rule, candidates, action, baseline, scratch)
                beyond = not gain <= aim
            if promising and details[MARGIN, action] >= kept and beyond:
                break
            if np.isnan(rival):
                rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
            spares = BANK_COMPETES <= rule.competes <= COUNTERWEIGHTS
            spare = ledger.bank[0] if spares else np.inf
            if np.isnan(exchange):
                top = best_from(details, 0.0, True, lazy)
                price = rival - details[MARGIN, top] if top != BASELINE else 0.0
                exchange = _exchange(
                    region, belief, account, rule, candidates, top, price, baseline, scratch
                )
            needed = rival + due(belief, exchange, candidates, action, baseline, scratch)
            if details[MARGIN, action] > needed or (
                details[MARGIN, action] > spare and scored(1.0, low, high) > 0.0
            ):
                break
            if (
                hoping
                and hope == BASELINE
                and not promising
                and beyond
                and is_worth_trying(
                    region,
                    belief,
                    rule,
                    patience,
                    allowance,
                    candidates,
                    action,
                    baseline,
                    contrasts,
                    scratch,
                )
            ):
                hope, value = action, details[SCORE, action]
            details[SCORE, action] = -np.inf
            passed_over += 1
            if passed_over == ASKED_ONE_BY_ONE and lazy:
                action, passed_over = ALL_MARGINS, passed_over - 1
                break
            if passed_over == ASKED_ONE_BY_ONE:
                if hoping and hope == BASELINE:
                    hope, value = _first_hope(
                        region, belief, rule, patience, allowance, candidates, baseline, rival, exchange,
                        least, aim, details, contrasts, scratch,
                    )  # fmt: skip
                _pass_over(
                    region, belief, rule, candidates, baseline, rival, exchange, spare, kept, aim,
                    details, contrasts, scratch,
                )  # fmt: skip
        else:
            break
    if action == BASELINE and hope != BASELINE:
        action = hope
        details[SCORE, hope] = value
    if action >= 0 and _is_baseline(account, candidates, action, baseline):
        action = BASELINE
    return action, Contest(
        refuted, alarmed, competes, optimistic, least, rival, passed_over, patience, allowance, hope,
        value, kept, aim, exchange,
    )  # fmt: skip


@inlined
def _aim(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    patience: float,
    allowance: float,
    candidates: Array,
    top: int,
    baseline: Array,
    details: Array,
    contrasts: Array,
    scratch: Array,
) -> float:
    """What a candidate must be able to gain, if it takes from the bank and is not surely better: a share
    of what ``top``, the best-scored one, could gain. -inf if that would not be played, or if saving for
    it would take more rounds than there were."""
    if not usable(candidates, top):
        return -np.inf
    saved = structural(region, baseline, account.alpha, 0.0, account.tolerance)
    if not -details[MARGIN, top] <= saved * ledger.tally[Tally.ROUNDS]:
        return -np.inf
    if promises(region, belief, rule, candidates, top, baseline, contrasts, scratch) or is_worth_trying(
        region, belief, rule, patience, allowance, candidates, top, baseline, contrasts, scratch
    ):
        return rule.ambition * possible_gain(region, belief, rule, candidates, top, baseline, scratch)
    return -np.inf


@inlined
def _exchange(
    region: Region,
    belief: Belief,
    account: Account,
    rule: Rule,
    candidates: Array,
    top: int,
    price: float,
    baseline: Array,
    scratch: Array,
) -> float:
    """What a play must leave in the bank, above what the baseline leaves, for each reward that it is
    expected to lose. inf if nothing is gained; 0, everything may be lost, where nothing is believed.

    ``top``, the best-scored candidate, leaves less than the baseline by ``price``. So much is what a play
    of it takes, over what it is expected to gain: a play costs no more than is gained in the plays of
    ``top`` that it pays for. As ``top`` also teaches, one play of it counts as ``lessons``. And at least
    what a round of the baseline saves; that alone for a rule without lessons.
    """
    if not (rule.careful and believes(belief)):
        return 0.0
    if top == BASELINE or not usable(candidates, top):
        return np.inf
    write_contrast(candidates, top, baseline, scratch)
    gain = expected(belief, scratch)
    if not gain > 0.0:
        return np.inf
    saved = structural(region, baseline, account.alpha, max(account.floor, 0.0), account.tolerance)
    return (max(saved, price / rule.lessons) if rule.lessons > 0.0 else saved) / gain


@inlined
def _baselines_score(region: Region, baseline: Array, boldness: float) -> float:
    """The baseline's score in an optimistic round."""
    if boldness == 1.0:
        return upper(region, baseline)
    low, high = interval(region, baseline)
    return scored(boldness, low, high)


@inlined
def _never_admit(details: Array, k: int) -> None:
    """Leave out a candidate that could overflow when it is absorbed."""
    details[UCB, k], details[SCORE, k], details[MARGIN, k] = np.inf, np.inf, -np.inf


@inlined
def _meanwhile(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    rival: float,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    scratch: Array,
    lazy: bool,
    space: Array,
) -> tuple[int, float]:
    """What to play because the best-scored candidate is not admissible, and the baseline's margin.

    If that candidate promises more than the baseline (for COUNTERWEIGHTS by the set alone): the one that
    brings it ``nearest``, for a careful rule. Else, of those that leave more in the bank than the
    baseline, ``rival``, would, the best-scored one (SAVES_UP) or the lowest-scored one (COUNTERWEIGHTS).
    It undoes what earlier plays left uncertain, so that the best-scored ones are admissible again, and
    the lowest-scored one teaches about the same direction as they do. BASELINE if there is none, or the
    code of margins that are needed first.
    """
    top = best_from(details, 0.0, True, lazy)
    while top != BASELINE and not usable(candidates, top):
        _never_admit(details, top)
        top = best_from(details, 0.0, True, lazy)
    action = BASELINE
    if top != BASELINE and lazy and np.isnan(details[MARGIN, top]):
        action = ONE_MARGIN - top
    elif (
        top != BASELINE
        and not details[MARGIN, top] >= 0.0
        and scored(rule.trust, *contrast_interval(region, candidates, top, baseline, scratch)) > 0.0
        and (rule.competes == COUNTERWEIGHTS or is_expected(region, belief, rule, scratch))
    ):
        near, ahead = details[MARGIN, top] >= (1.0 - FEW_BANKS) * ledger.bank[0], rule.careful
        ahead = ahead and believes(belief)
        if lazy and (ahead or not (near and rule.competes == SAVES_UP)):
            return ALL_MARGINS, rival
        if ahead:
            if rule.lessons > 0.0 and np.isnan(rival):
                rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
            price = rival - details[MARGIN, top]
            exchange = _exchange(region, belief, account, rule, candidates, top, price, baseline, scratch)
            action = nearest(
                region, belief, ledger, account, exchange, top, candidates, baseline, details, scratch,
                space,
            )  # fmt: skip
            return action, rival
        if np.isnan(rival):
            rival = baseline_margin(ledger, account, region, baseline, mean, earned, scratch)
        sign = 1.0 if rule.competes == SAVES_UP else -1.0
        best, least = -np.inf, max(rival, 0.0)
        for k in range(details.shape[1]):
            value, margin = sign * details[SCORE, k], details[MARGIN, k]
            saves = margin > least or (lazy and np.isnan(margin))
            if saves and best < value < np.inf and usable(candidates, k):
                action, best = k, value
        if action != BASELINE and np.isnan(details[MARGIN, action]):
            action = BEST_MARGINS
    return action, rival


@inlined
def _pass_over(
    region: Region,
    belief: Belief,
    rule: Rule,
    candidates: Array,
    baseline: Array,
    rival: float,
    exchange: float,
    spare: float,
    kept: float,
    aim: float,
    details: Array,
    contrasts: Array,
    scratch: Array,
) -> None:
    """Give a score of -inf to all admissible candidates that promise no more than the baseline, leave no
    more than ``rival``, the baseline's margin, and leave no more than ``spare`` or cannot be better; and
    to those that promise more, but not surely, and leave less than ``kept`` or cannot gain ``aim``.

    Asking the best-scored one again and again would take time quadratic in the number of candidates.
    """
    for k in range(details.shape[1]):
        if not (details[MARGIN, k] >= 0.0 and usable(candidates, k)):
            continue
        margin = details[MARGIN, k]
        if margin > rival and margin > rival + due(belief, exchange, candidates, k, baseline, scratch):
            continue
        if promises(region, belief, rule, candidates, k, baseline, contrasts, scratch):
            spends = details[MARGIN, k] < kept or not could_gain(
                region, belief, rule, aim, candidates, k, baseline, contrasts, scratch
            )
            if spends and not exceeds(region, SURE, 0.0, candidates, k, baseline, contrasts, scratch):
                details[SCORE, k] = -np.inf
            continue
        if not details[MARGIN, k] > spare or not exceeds(
            region, 1.0, 0.0, candidates, k, baseline, contrasts, scratch
        ):
            details[SCORE, k] = -np.inf


@inlined
def _first_hope(
    region: Region,
    belief: Belief,
    rule: Rule,
    patience: float,
    allowance: float,
    candidates: Array,
    baseline: Array,
    rival: float,
    exchange: float,
    least: float,
    aim: float,
    details: Array,
    contrasts: Array,
    scratch: Array,
) -> tuple[int, float]:
    """The first candidate, in the order of ``choose``, that ``_pass_over`` would pass over although it
    is worth trying and could gain ``aim``; and its score."""
    first, top, thrifty = BASELINE, -np.inf, False
    for k in range(details.shape[1]):
        score, margin = details[SCORE, k], details[MARGIN, k]
        saves = margin >= max(least, 0.0)
        later = (thrifty and not saves) or (thrifty == saves and not score > top)
        if later or not (margin >= 0.0 and -np.inf < score < np.inf and usable(candidates, k)):
            continue
        if (
            not margin > rival + due(belief, exchange, candidates, k, baseline, scratch)
            and not promises(region, belief, rule, candidates, k, baseline, contrasts, scratch)
            and could_gain(region, belief, rule, aim, candidates, k, baseline, contrasts, scratch)
            and is_worth_trying(
                region, belief, rule, patience, allowance, candidates, k, baseline, contrasts, scratch
            )
        ):
            first, top, thrifty = k, score, saves
    return first, top


@inlined
def _is_baseline(account: Account, candidates: Array, k: int, baseline: Array) -> bool:
    """Whether a candidate is the incumbent offered again.

    Where means are linear in the features, equal features are one action. With declared misspecification
    they may be two actions with different means.
    """
    if account.tolerance > 0.0:
        return False
    for i in range(len(baseline)):
        if candidates[k, i] != baseline[i]:
            return False
    return True
