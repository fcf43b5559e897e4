"""What a ledger allows, charges and amends, whatever its kind: the one place that looks at the kind.

Every ledger makes claims (see ``c4b.certificates``) about the round to come: a candidate's margin is
the largest ``base + L(offset + x(a))`` over them. No function here sees a reward.
"""

from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import allocating, inlined, kernel, pooled
from c4b._compilation.kernel_parts import OTHER_LEDGERS, UNREAD
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment, structural
from c4b.evidence.ellipsoids import Region
from c4b.evidence.ellipsoids import opened as opened_evidence
from c4b.ledger.bank_ledger import (
    amend_bank,
    bank_baseline_margin,
    bank_margins,
    keep_checkpoint,
    recertified_bank,
)
from c4b.ledger.books import (
    Account,
    Certificate,
    Ledger,
    LedgerKind,
    Tally,
    Term,
    enter_prefix,
    has_bank,
    opened,
    round_slack,
)
from c4b.ledger.budget_ledger import (
    budget_margins,
    budget_value,
    enter_instead,
    enter_savings,
    withdraw_instead,
)
from c4b.ledger.free_ledger import enter_play
from c4b.ledger.prefix_ledger import enter_sums, prefix_baseline_margin, prefix_margins
from c4b.ledger.round_ledger import round_baseline_margin, round_margins
from c4b.ledger.told_ledger import enter_told, is_refuted, told_margins, told_value


class Execution(NamedTuple):
    """What a round executed, and the baseline of that round."""

    features: Array  # (d,)
    baseline: Array  # (d,)
    is_baseline: bool
    mean: float  # of the baseline, where it is told; NaN: it is not


@inlined
def pool_margins(
    ledger: Ledger,
    account: Account,
    region: Region,
    assessed: Assessment,
    certificate: int,
    row: int,
) -> None:
    """details[row, k]: the bank that playing a candidate would leave, -inf if uncertified.

    details[certificate] holds the certificates that a ledger with a bank needs.
    """
    details = assessed.details
    if has_bank(account):
        bank_margins(ledger, account, region, assessed, certificate, row)
    elif OTHER_LEDGERS and account.kind == LedgerKind.PREFIX:
        if account.certificate == Certificate.KNOWN:
            told_margins(ledger, account, region, assessed, row)
        else:
            prefix_margins(ledger, account, region, assessed, row)
    elif OTHER_LEDGERS and account.kind == LedgerKind.ROUND:
        round_margins(ledger, account, details, certificate, row)
    elif OTHER_LEDGERS and account.kind == LedgerKind.BUDGET:
        budget_margins(ledger, account, assessed, row)
    else:
        everything = account.kind == LedgerKind.NONE
        for k in range(details.shape[1]):
            details[row, k] = np.inf if everything else -np.inf
    if account.tolerance > 0.0:
        for k in range(details.shape[1]):
            details[row, k] -= round_slack(account, False)


@inlined
def keeps_bank(account: Account) -> bool:
    """Whether certificates of single rounds are added to a bank."""
    return has_bank(account) or account.kind == LedgerKind.ROUND


@inlined
def credit(account: Account, region: Region, baseline: Array, mean: float) -> float:
    """What a round with the baseline adds: alpha times its mean, told or bounded as in (11)."""
    if account.certificate == Certificate.KNOWN:
        return account.alpha * mean
    return structural(region, baseline, account.alpha, account.floor, account.tolerance)


@pooled
def baseline_margin(
    ledger: Ledger,
    account: Account,
    region: Region,
    baseline: Array,
    mean: float,
    earned: Array,
    scratch: Array,
) -> float:
    """Margin of playing the baseline; scratch (d,). NaN when there is no gate."""
    if has_bank(account):
        gain = credit(account, region, baseline, mean)
        return bank_baseline_margin(ledger, account, region, baseline, gain, scratch)
    if OTHER_LEDGERS and account.kind == LedgerKind.PREFIX:
        if account.certificate == Certificate.KNOWN:
            gain = account.alpha * mean
            return told_value(ledger, account, region, earned, 1.0, gain, scratch)
        return prefix_baseline_margin(ledger, account, region, baseline, 1.0, scratch)
    if OTHER_LEDGERS and account.kind == LedgerKind.ROUND:
        return round_baseline_margin(ledger, credit(account, region, baseline, mean))
    if OTHER_LEDGERS and account.kind == LedgerKind.BUDGET:
        return budget_value(ledger, account, earned, baseline, account.alpha * mean)
    return np.nan


@inlined
def charge(ledger: Ledger, account: Account, margin: float, played: Execution, refuted: bool) -> None:
    """Write B and Z for what is executed, before any reward is seen (step 10 of Algorithm 1).

    ``refuted``: the baseline's told mean lies outside of its interval.
    """
    if refuted:
        ledger.terms[Term.ALARM] = 1.0
    if account.kind != LedgerKind.NONE:
        ledger.bank[0] = margin
    _enter(ledger, account, played, 1.0)
    ledger.tally[Tally.ROUNDS] += 1.0
    if account.tolerance > 0.0:
        slack = round_slack(account, played.is_baseline)
        ledger.tally[Tally.SLACK] += slack
        for m in range(int(ledger.tally[Tally.KEPT])):
            ledger.kept_bank[m] -= slack  # every claim about later rounds pays for this one
    if len(ledger.kept_bank) > 1:
        keep_checkpoint(ledger)


@inlined
def _enter(ledger: Ledger, account: Account, played: Execution, sign: float) -> None:
    """Add a round to what is remembered of all rounds, or take it out again."""
    if UNREAD or len(ledger.kept_bank) > 0 or account.kind == LedgerKind.FREE:
        enter_prefix(ledger, account, played.features, played.baseline, sign)
    if OTHER_LEDGERS and account.kind == LedgerKind.PREFIX:  # nobody else reads the sums
        enter_sums(ledger, played.features, played.baseline, played.is_baseline, sign)
    if OTHER_LEDGERS and account.kind == LedgerKind.FREE:
        enter_play(ledger, played.baseline, played.is_baseline, sign)
    if OTHER_LEDGERS and account.kind == LedgerKind.BUDGET:
        enter_savings(ledger, played.features, played.baseline, played.is_baseline, sign)
    if OTHER_LEDGERS and len(ledger.terms) > 0:
        enter_told(ledger, account, played.is_baseline, played.mean, sign)


@kernel
def recharge(
    ledger_flat: Array,
    evidence_flat: Array,
    margin: float,
    features: Array,
    baseline: Array,
    is_baseline: bool,
    mean: float,
) -> None:
    """``charge`` with a recorded margin; features and baseline (d,)."""
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    refuted = is_refuted(ledger, account, region, baseline, mean)
    charge(ledger, account, margin, Execution(features, baseline, is_baseline, mean), refuted)


@allocating
def amend(
    ledger_flat: Array,
    evidence_flat: Array,
    earned: Array,
    decided: Array,
    decided_is_baseline: bool,
    executed: Array,
    executed_is_baseline: bool,
    baseline: Array,
    mean: float,
    round_: int,
) -> None:
    """Another action than the decided one was executed at ``round_``, the first being 0."""
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    if keeps_bank(account):
        amend_bank(ledger, account, region, decided, executed, executed - decided, round_)
    if account.tolerance > 0.0:  # what that round cost every claim that spans it
        more = round_slack(account, executed_is_baseline) - round_slack(account, decided_is_baseline)
        ledger.tally[Tally.SLACK] += more
        for m in range(int(ledger.tally[Tally.KEPT])):
            if ledger.kept_round[m] <= round_:
                ledger.kept_bank[m] -= more
    _enter(ledger, account, Execution(decided, baseline, decided_is_baseline, mean), -1.0)
    _enter(ledger, account, Execution(executed, baseline, executed_is_baseline, mean), 1.0)
    nothing = np.zeros(len(baseline))
    if account.kind == LedgerKind.BUDGET:
        if not executed_is_baseline:
            enter_instead(ledger, account, region, executed, mean)
        ledger.bank[0] = budget_value(ledger, account, earned, nothing, 0.0)
    if account.kind == LedgerKind.PREFIX:  # its bank is not carried: revalue the corrected sums
        if account.certificate == Certificate.KNOWN:
            ledger.bank[0] = told_value(ledger, account, region, earned, 0.0, 0.0, nothing)
        else:
            value = prefix_baseline_margin(ledger, account, region, nothing, 0.0, nothing.copy())
            ledger.bank[0] = value


@allocating
def withdraw(ledger_flat: Array, evidence_flat: Array, entered: Array, mean: float) -> None:
    """Before ``amend``, in the ledger ``budget``: the candidate (d,) on record was executed instead of a
    decision, too."""
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    withdraw_instead(ledger, account, region, entered, mean)


@allocating
def recertify(ledger_flat: Array, evidence_flat: Array, baseline: Array) -> None:
    """After ``amend``: raise a bank to the largest claim about the rounds so far."""
    ledger, account = opened(ledger_flat)
    region, _, _ = opened_evidence(evidence_flat)
    if has_bank(account):
        ledger.bank[0] = recertified_bank(ledger, account, region, baseline, np.empty(len(baseline)))
