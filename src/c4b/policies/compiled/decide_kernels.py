"""Which compiled round serves which composition: the usual ones have smaller ones of their own.

A first decision on a new machine waits for the compiler, and most of what all compositions need together
is of no use to one.
"""

from collections.abc import Callable
from typing import Any

from c4b._compilation.specialised import specialised
from c4b._validate import Array
from c4b.evidence.ellipsoids import BOX, EvidenceHeading, is_spectral
from c4b.ledger import books
from c4b.ledger.books import Certificate, LedgerKind
from c4b.policies.catalogue.choice_rule import is_plain
from c4b.policies.compiled.compiled_round import decide

_IN_NEITHER = ("BOXES", "OTHER_LEDGERS")
decide_from_bank = specialised(decide, "decide_from_bank", (*_IN_NEITHER, "INVERSES"))
"""``decide`` for a set with an eigenbasis and a bank without terms of its own."""
decide_by_ucb = specialised(decide, "decide_by_ucb", (*_IN_NEITHER, "EIGENBASES", "COMPETITION"))
"""``decide`` for a set that keeps inverses, a bank without terms of its own or no gate, and a choice by
UCB and margins alone: the paper's."""


def decider(evidence_flat: Array, ledger_flat: Array, rule: Array) -> Callable[..., Any]:
    """The smallest kernel that decides for these parts; all of them give the same bits."""
    ledger, account = books.views(ledger_flat)
    if account.certificate == Certificate.KNOWN or len(ledger.terms) > 0:
        return decide
    spectral = is_spectral(evidence_flat)
    if spectral and account.kind == LedgerKind.BANK:
        return decide_from_bank
    usual = (
        account.kind in (LedgerKind.BANK, LedgerKind.NONE) and evidence_flat[EvidenceHeading.CODE] != BOX
    )
    return decide_by_ucb if usual and not spectral and is_plain(rule) else decide
