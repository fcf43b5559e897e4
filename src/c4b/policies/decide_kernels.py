"""Which compiled round serves which composition: the recommended one has a smaller one of its own.

A first decision on a new machine waits for the compiler, and most of what all compositions need together
is of no use to one.
"""

from collections.abc import Callable
from typing import Any

from c4b._specialised import specialised
from c4b._validate import Array
from c4b.evidence.ellipsoids import is_spectral
from c4b.ledger import books
from c4b.ledger.books import Certificate, LedgerKind
from c4b.policies.choice_rule import COUNTERWEIGHTS, Rule
from c4b.policies.compiled_round import decide

_COMPETES = Rule._fields.index("competes")
_WITHOUT = ("BOXES", "INVERSES", "OTHER_LEDGERS", "OTHER_CHOICES")
decide_from_bank = specialised(decide, "decide_from_bank", _WITHOUT)
"""``decide`` for a set with an eigenbasis, a bank without terms of its own, no counterweights."""


def decider(evidence_flat: Array, ledger_flat: Array, rule: Array) -> Callable[..., Any]:
    """The smallest kernel that decides for these parts; all of them give the same bits."""
    ledger, account = books.views(ledger_flat)
    told = account.certificate == Certificate.KNOWN or len(ledger.terms) > 0
    from_bank = account.kind == LedgerKind.BANK and not told
    if from_bank and is_spectral(evidence_flat) and rule[_COMPETES] != COUNTERWEIGHTS:
        return decide_from_bank
    return decide
