"""What a choice needs to know of every candidate of a pool: scores, then certificates and margins.

Online rounds and simulated episodes run this.
"""

from c4b._compilation.jit import inlined
from c4b._compilation.kernel_parts import COMPETITION
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, pool_joint, pool_separate
from c4b.evidence.belief import Belief, believes, pool_belief
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.pool_bounds import pool_interval, pool_upper
from c4b.evidence.pools.pool_forms import CROSS, pool_forms
from c4b.ledger.books import Account, Certificate, Ledger
from c4b.ledger.ledger_kernels import keeps_bank, pool_margins
from c4b.policies.catalogue.choice_rule import Rule
from c4b.policies.compiled.comparison import scored
from c4b.policies.rounds.candidate_fields import JOINT, MARGIN, SCORE, SEPARATE, UCB


@inlined
def score(region: Region, belief: Belief, assessed: Assessment, boldness: float) -> None:
    """UCB and score of every candidate, and the forms of the pool.

    The score is what is believed of the reward plus ``boldness`` standard deviations; where nothing is
    believed, the middle of the reward's interval [L(x), U(x)] plus ``boldness`` half-widths; 1 is the UCB
    itself. Scores only order admissible candidates, so any score is sound.
    """
    forms, details = assessed.forms, assessed.details
    pool_forms(region, assessed.pool, forms)
    if COMPETITION and believes(belief):
        pool_upper(region, forms, assessed.pool, UCB, details)
        pool_belief(belief, belief.hoped, len(region.radius), forms, SCORE, details)
        for k in range(details.shape[1]):
            details[SCORE, k] += boldness * forms[CROSS, k]
    elif not COMPETITION or boldness == 1.0:
        pool_upper(region, forms, assessed.pool, UCB, details)
        _copy(details, UCB, SCORE)
    else:
        pool_interval(region, forms, assessed.pool, SCORE, UCB, details)
        for k in range(details.shape[1]):
            details[SCORE, k] = scored(boldness, details[SCORE, k], details[UCB, k])


@inlined
def certify(
    region: Region,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    assessed: Assessment,
    explain: bool,
) -> None:
    """Margins of scored candidates and the certificates they need, or both kinds to ``explain``."""
    banked, known = keeps_bank(account), account.certificate == Certificate.KNOWN
    wanted = explain or rule.by_certificate
    if wanted or (banked and account.certificate == Certificate.JOINT):
        pool_joint(region, assessed, account.alpha, JOINT)
    if wanted or (banked and account.certificate != Certificate.JOINT):
        pool_separate(region, assessed, account.alpha, known, SEPARATE)
    if rule.by_certificate:
        _copy(assessed.details, certificate_row(account), SCORE)
    pool_margins(ledger, account, region, assessed, certificate_row(account), MARGIN)


@inlined
def _copy(details: Array, source: int, target: int) -> None:
    for k in range(details.shape[1]):
        details[target, k] = details[source, k]


@inlined
def certificate_row(account: Account) -> int:
    """The row of ``details`` that a bank is charged by, or that says most of a candidate."""
    separate = account.certificate == Certificate.SEPARATE and keeps_bank(account)
    return SEPARATE if separate or account.certificate == Certificate.KNOWN else JOINT
