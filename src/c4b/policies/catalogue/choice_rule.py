"""The numbers by which a composition chooses, and which rounds may try what promises nothing.

docs/theory.md, section "Choice". ``c4b.policies.compiled.compiled_choice`` applies them.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.evidence.belief import Belief, believes, expected
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import Region
from c4b.ledger.books import Account, Ledger, Tally

STANDARD_ERRORS = 3.0
"""Standard errors that a difference should have before it counts as learned."""
GOLDEN = 0.6180339887498949
"""Multiples of it spread evenly between 0 and 1: they say which round of a period is optimistic."""
BASELINE_COMPETES, BANK_COMPETES, COUNTERWEIGHTS, SAVES_UP = 1, 2, 3, 4
"""Values of ``Rule.competes``. A candidate that promises no more than the baseline is played if it leaves
more in the bank than playing the baseline would; with the second and third also if it leaves more than
there is now and could be better than the baseline. The third and fourth say what is played while the
best-scored candidate is not admissible: see ``c4b.policies.compiled.compiled_choice``."""


class Rule(NamedTuple):
    """How a composition chooses among admissible candidates."""

    propose: bool  # only the best-scored candidate is tested
    boldness: float  # share of the half-width in the score
    thrift: float  # share of the bank that a choice would like to leave
    latches: bool  # an alarm against the model latches the baseline
    period: int  # one round of so many is optimistic; 0: none is
    competes: int  # a rival below: what promises and leaves no more than it is not played; 0: nobody
    trust: float  # share of the half-width in what a candidate promises above the baseline
    by_certificate: bool = False  # the score is the certificate
    optimism: float = 0.0  # so many more optimistic rounds for each unit of ``leeway``
    hope: float = 0.0  # loss, in units of ``leeway``, up to which what could be better is tried
    hopes_trust: float = 0.0  # share of the half-width in what could be
    reluctance: float = 0.0  # rounds' rewards that alpha sqrt(t) must be worth before anything is risked
    restraint: float = 0.0  # half-widths less in the score of most optimistic rounds
    boldest: int = 0  # one of so many optimistic rounds scores by the UCB, the others with restraint
    saving: float = 0.0  # share of all that alpha has granted that may be lost to learn what is cheap
    noise: float = 0.0  # sigma, by which the cost of learning is estimated
    persists: bool = False  # what was cheap to learn stays so; only features that differ count
    ambition: float = 0.0  # share of the best-scored one's possible gain that spending needs
    endures: bool = False  # what learning may cost grows with t^(3/4) once there is leeway
    believes: float = 0.0  # standard deviations in a score by what is believed of theta; 0: it is not
    unfunded: float = 0.0  # share of the leeway that the fund for optimistic rounds goes without
    shuffles: bool = False  # equal scores are ordered by the data, not by the list of candidates
    careful: bool = False  # the data say how wide the prior is; what a play saves must be worth its cost
    lessons: float = 0.0  # plays of the best-scored candidate that one counts as, in what saving is worth
    patience: float = 0.0  # hope may take so many times the past rounds to learn; 0: any number


def rule_numbers(rule: Rule) -> Array:
    """The fields in their order, as ``opened_rule`` takes them: one argument instead of many."""
    return np.array(rule, dtype=np.float64)


def completed(numbers: Array) -> Array:
    """``rule_numbers`` of an earlier version, which had fewer fields, with the defaults of the others."""
    missing = Rule._fields[len(numbers) :]
    return np.append(numbers, [float(Rule._field_defaults[field]) for field in missing])


def is_plain(numbers: Array) -> bool:
    """Whether these ``rule_numbers`` choose by UCB and margins alone: ``kernel_parts.COMPETITION``."""
    rule = Rule(*numbers.tolist()[: len(Rule._fields)])
    return rule.boldness == 1.0 and rule.thrift == rule.period == rule.competes == 0


@inlined
def opened_rule(numbers: Array) -> Rule:
    """The inverse of ``rule_numbers``."""
    return Rule(
        numbers[0] != 0.0,
        numbers[1],
        numbers[2],
        numbers[3] != 0.0,
        int(numbers[4]),
        int(numbers[5]),
        numbers[6],
        numbers[7] != 0.0,
        numbers[8],
        numbers[9],
        numbers[10],
        numbers[11],
        numbers[12],
        int(numbers[13]),
        numbers[14],
        numbers[15],
        numbers[16] != 0.0,
        numbers[17],
        numbers[18] != 0.0,
        numbers[19],
        numbers[20],
        numbers[21] != 0.0,
        numbers[22] != 0.0,
        numbers[23],
        numbers[24],
    )


@inlined
def leeway(account: Account, rule: Rule, rounds: float) -> float:
    """Rounds' rewards that t rounds may risk on what promises nothing: alpha sqrt(t) - reluctance, at
    least 0. A vanishing share of alpha t; and nothing in a short run."""
    return max(account.alpha * math.sqrt(rounds) - rule.reluctance, 0.0)


@inlined
def is_optimistic(ledger: Ledger, account: Account, rule: Rule) -> bool:
    """Whether the next round is one of those that score by the UCB and keep no cushion.

    With ``optimism`` they are where ``optimism * leeway + rounds / period`` passes a whole number.
    Without, every block of ``period`` rounds has one, at a position that differs from block to block.
    Both follow from the round's number alone.
    """
    if rule.period == 0:
        return False
    now = int(ledger.tally[Tally.ROUNDS])
    if rule.optimism > 0.0:
        before = rule.optimism * leeway(account, rule, now) + now / rule.period
        after = rule.optimism * leeway(account, rule, now + 1) + (now + 1) / rule.period
        return math.floor(after) > math.floor(before)
    block, position = now // rule.period, now % rule.period
    return position == int(rule.period * ((GOLDEN * (block + 1.0)) % 1.0))


@inlined
def hopes(
    region: Region, belief: Belief, ledger: Ledger, account: Account, rule: Rule, mean: float
) -> tuple[float, float]:
    """How many plays learning about one candidate may take in hope, 0 if there is none; and what it may
    cost without.

    There is hope if the rounds so far seem to have lost, and to have gained, less than ``hope`` units of
    leeway in rewards of this baseline. The cost, as long as there is no leeway: ``saving`` of what alpha
    has granted, less what seems lost, or gained, so far. A rule that ``persists`` goes on with what alpha
    had granted when leeway began, and one that ``endures`` with n^(3/4) times as much after n times as
    many rounds, still a vanishing share.

    ``mean`` is the estimate of the baseline's. Who has gained knows something better than to hope.
    Estimates are the middles of intervals. That of the prefix Z, or what is believed of it, is what alpha
    has left; had baselines like this one played all t rounds, it would be t times alpha x(b).
    """
    rounds = ledger.tally[Tally.ROUNDS]
    free = rule.hope * leeway(account, rule, rounds)
    if not (free > 0.0 or rule.saving > 0.0):
        return 0.0, 0.0
    if believes(belief):
        left = expected(belief, ledger.prefix)
    else:
        low, high = interval(region, ledger.prefix)
        left = 0.5 * (low + high)
    granted = mean * account.alpha * rounds
    change = abs(left - granted)
    hopeful, allowance = bool(change < mean * free), 0.0
    if not free > 0.0:
        allowance = rule.saving * granted - change
    elif rule.persists:
        granting = min(rounds, (rule.reluctance / account.alpha) ** 2)
        if rule.endures:
            granting *= math.sqrt(rounds / granting) * math.sqrt(math.sqrt(rounds / granting))
        allowance = rule.saving * mean * account.alpha * granting - change
    plays = rule.patience * rounds if rule.patience > 0.0 else np.inf
    return plays if hopeful and free > 0.0 else 0.0, allowance


@inlined
def plays_to_learn(rule: Rule, gain: float, features: int) -> float:
    """Plays that it may take to learn whether a candidate is better than the baseline, inf if it cannot
    be; ``gain`` is what it could gain.

    As many for each of the features as make what it could gain STANDARD_ERRORS standard errors, at least
    one.
    """
    if not gain > 0.0:
        return np.inf
    return features * max((STANDARD_ERRORS * rule.noise / gain) ** 2, 1.0)


@inlined
def cost_of_learning(rule: Rule, gain: float, middle: float, features: int) -> float:
    """Rewards that these plays may cost, each at the loss that it seems to be: ``middle`` is what a
    candidate seems to gain."""
    if not gain > 0.0:
        return np.inf
    return plays_to_learn(rule, gain, features) * max(-middle, 0.0)


@inlined
def fund(ledger: Ledger, account: Account, rule: Rule, low: float, high: float) -> float:
    """What a candidate that is not surely better than the baseline must leave in the bank, so that
    optimistic rounds can be paid: the leeway, or a share of it, in rewards of this baseline, whose
    interval is [low, high]; or what there is."""
    if not rule.hope > 0.0:
        return -np.inf
    share = 1.0 - rule.unfunded
    wanted = share * leeway(account, rule, ledger.tally[Tally.ROUNDS]) * 0.5 * (low + high)
    return min(wanted, float(ledger.bank[0]))


@inlined
def boldness_now(ledger: Ledger, account: Account, rule: Rule) -> float:
    """Half-widths that a score of the next round adds to the middle of the interval.

    Of ``boldest`` optimistic rounds the first scores by the UCB, the others no lower than ordinary ones.
    """
    if not is_optimistic(ledger, account, rule):
        return rule.boldness
    if rule.boldest > 1:
        now = int(ledger.tally[Tally.ROUNDS]) + 1
        number = math.floor(rule.optimism * leeway(account, rule, now) + now / rule.period)
        if number % rule.boldest != 1:
            return max(1.0 - rule.restraint, rule.boldness)
    return 1.0
