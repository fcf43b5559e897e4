"""Every round safe by itself: a bank that nobody may draw on.

The bank is the sum of the certificates of all rounds, as in ``bank_ledger``. A candidate is admissible if
its own certificate is nonnegative, whatever the bank holds; so every round's contrast is nonnegative, and
their sum is.
"""

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.ledger.books import Account, Ledger, round_slack


@inlined
def round_margins(ledger: Ledger, account: Account, details: Array, certificate: int, row: int) -> None:
    """details[row, k] = the bank after candidate k, -inf if its own round is not certified."""
    bank, least = ledger.bank[0], round_slack(account, False)
    for k in range(details.shape[1]):
        alone = details[certificate, k] >= least
        details[row, k] = bank + details[certificate, k] if alone else -np.inf


@inlined
def round_baseline_margin(ledger: Ledger, credit: float) -> float:
    """The bank after the baseline, -inf if its own round is not certified."""
    total: float = ledger.bank[0] + credit
    return total if credit >= 0.0 else -np.inf
